"""The join workloads obey the file contract, are the same for the same seed, and are distributed as they say."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from research.workloads import WORKLOADS, find
from research.workloads.join.binary import BinaryCase, BinaryScene
from research.workloads.join.draws import DOMAIN, zipf_counts
from research.workloads.join.multi import SIGNATURES, GeneralCase, MultiScene, R, S, StarCase, T, U
from research.workloads.join.stocks import JoinStocksCase
from tidings.engine import Engine
from tidings.model.change import Op
from tidings.sql import Compiler, parse_catalog

Record = dict[str, Any]
JOINS = [name for name in WORKLOADS if name.startswith("join-")]
BETWEEN = re.compile(r"(\w+)\.\w+ BETWEEN (\S+) AND (\S+)")

every_workload = pytest.mark.parametrize("name", JOINS)
every_size = pytest.mark.parametrize(
    ("rows", "subscriptions", "changes"), [(0, 300, 9_000), (7, 300, 1_000), (90, 0, 2_000), (0, 50, 0), (9, 40, 3)]
)


def made(name: str, seed: int = 3, rows: int = 0, subscriptions: int = 500, changes: int = 6_000) -> list[list[bytes]]:
    workload = find(name).load()(seed=seed, rows=rows, subscriptions=subscriptions, changes=changes)
    return [list(workload.subscriptions), list(workload.changes)]


def records(*arguments: Any, **options: Any) -> tuple[list[Record], list[Record]]:
    subscriptions, changes = made(*arguments, **options)
    return [json.loads(line) for line in subscriptions], [json.loads(line) for line in changes]


def ranges_of(subscriptions: list[Record]) -> list[list[tuple[str, float, float]]]:
    return [
        [(table, float(low), float(high)) for table, low, high in BETWEEN.findall(one["sql"])] for one in subscriptions
    ]


def sizes_after(changes: list[Record], keys: dict[str, str]) -> Iterator[Counter[str]]:
    """Rows per table after every change, which must be one that can be made."""
    rows: set[tuple[str, Any]] = set()
    sizes: Counter[str] = Counter()
    for change in changes:
        row = (change["table"], change["row"][keys[change["table"]]])
        assert (change["op"] == "insert") == (row not in rows)
        if change["op"] == "insert":
            rows.add(row)
            sizes[change["table"]] += 1
        elif change["op"] == "delete":
            rows.remove(row)
            sizes[change["table"]] -= 1
        yield sizes


def keys_of(name: str) -> dict[str, str]:
    catalog = parse_catalog(find(name).load()(seed=0, rows=9, subscriptions=0, changes=0).catalog_sql)
    return {table.name: table.key[0] for table in catalog.tables}


@every_workload
@every_size
def test_lines_obey_the_contract(name: str, rows: int, subscriptions: int, changes: int) -> None:
    people, lines = records(name, rows=rows, subscriptions=subscriptions, changes=changes)
    assert [one["id"] for one in people] == [f"s{i + 1}" for i in range(subscriptions)]
    assert all(one.keys() == {"id", "sql", "after"} and one["after"] == 0 for one in people)
    assert all(low <= high for one in ranges_of(people) for _, low, high in one)
    assert [change["seq"] for change in lines] == list(range(1, changes + 1))
    for sizes in sizes_after(lines, keys_of(name)):
        assert min(sizes.values()) >= 0


@every_workload
def test_replay_refuses_nothing_and_tells_somebody(name: str) -> None:
    workload = find(name).load()(seed=2, rows=40, subscriptions=150, changes=1_500)
    engine = Engine(parse_catalog(workload.catalog_sql))
    assert engine.door.read(list(workload.subscriptions)) == []
    changes = list(workload.changes)
    told = 0
    for start in range(0, len(changes), 500):
        result = engine.feed(changes[start : start + 500])
        assert result.refused == []
        told += len(result.notifications)
    assert engine.finish().refused == []
    assert engine.stats.changes == 1_500
    assert told > 0


@every_workload
def test_queries_are_joins_with_a_range_on_every_table(name: str) -> None:
    workload = find(name).load()(seed=1, rows=0, subscriptions=200, changes=10)
    compiler = Compiler(parse_catalog(workload.catalog_sql))
    shapes = [compiler.compile(json.loads(line)["sql"]).shape for line in workload.subscriptions]
    assert all([ref.table for ref in shape.ranges] == list(shape.tables) for shape in shapes)
    assert {len(shape.tables) for shape in shapes} == ({2, 3, 4} if name in {"join-multi", "join-star"} else {2})


@every_workload
def test_same_seed_same_lines(name: str) -> None:
    assert made(name) == made(name)
    assert all(one != other for one, other in zip(made(name, seed=4), made(name, seed=5), strict=True))


@every_workload
def test_fewer_are_the_beginning_of_more(name: str) -> None:
    fewer, more = made(name, rows=50, subscriptions=200, changes=2_500), made(name, rows=50)
    assert fewer == [more[0][:200], more[1][:2_500]]


def test_lines_say_what_the_arrays_of_a_binary_scene_do() -> None:
    people, changes = records("join-binary", seed=7, rows=200, subscriptions=100, changes=600)
    scene = BinaryCase().sized(200).scene(seed=7, subscriptions=100, changes=600 - 264)
    assert [[end for _, *ends in one for end in ends] for one in ranges_of(people)] == scene.ranges.tolist()
    rows = [change["row"] for change in changes]
    assert [change["table"] for change in changes] == ["s"] * 64 + ["r"] * 536
    assert [(row["id"], row["b"], row["c"]) for row in rows[:64]] == list(
        zip(range(64), scene.s_b.tolist(), scene.s_c.tolist(), strict=True)
    )
    assert [(row["id"], row["b"], row["a"]) for row in rows[64:264]] == list(
        zip(range(200), scene.r_b[:200].tolist(), scene.r_a[:200].tolist(), strict=True)
    )
    assert [row["id"] for row in rows[264:]] == scene.changed.tolist()
    assert [change["op"] == "insert" for change in changes[264:]] == scene.is_insert.tolist()
    assert all(row["a"] == scene.r_a[row["id"]] for row in rows[264::2])
    assert {len(row["note"]) for row in rows if "note" in row} == {100}


def test_lines_say_what_the_arrays_of_a_star_do() -> None:
    people, changes = records("join-star", seed=7, rows=500, subscriptions=100, changes=2_000)
    scene = StarCase().sized(500).scene(seed=7, subscriptions=100, changes=2_000 - 560)
    names = ("customers", "sales", "products", "stores")
    for one, signature, ends in zip(ranges_of(people), scene.signature, scene.ranges, strict=True):
        joined = SIGNATURES[signature]
        assert one == [(names[table], *ends[2 * table : 2 * table + 2]) for table in joined]
        assert np.isnan(ends).sum() == 8 - 2 * len(joined)
    steps = scene.steps
    for change, table, op, image in zip(changes[560:], steps.table, steps.op, steps.image, strict=True):
        row, images = change["row"], scene.tables[table]
        assert (change["table"], change["op"]) == (names[table], Op(op).name.lower())
        assert next(iter(row.values())) == images.key[image]
        if op != Op.DELETE:
            assert list(row.values())[-2] == images.value[image]
            assert len(row["note"]) == scene.payloads[table]
        if op == Op.INSERT:
            assert [row["customer"], row["product"], row["store"]] == images.links[image].tolist()


@pytest.fixture(scope="module")
def binary() -> BinaryScene:
    return BinaryCase().scene(seed=1, subscriptions=50_000, changes=60_000)


def test_binary_sizes_are_those_of_the_paper(binary: BinaryScene) -> None:
    assert (binary.size, binary.changes, binary.r_size, len(binary.s_b)) == (50_000, 60_000, 16_000, 5_100)
    assert binary.ranges.shape == (50_000, 4)
    assert len(binary.r_b) == len(binary.r_a) == 16_000 + 30_000
    assert binary.payload == 100


def test_r_keeps_its_size_by_deleting_the_oldest(binary: BinaryScene) -> None:
    there = list(range(binary.r_size))
    for row, is_insert in zip(binary.changed[:500].tolist(), binary.is_insert[:500].tolist(), strict=True):
        if is_insert:
            assert len(there) == 16_000
            there.append(row)
        else:
            assert there.pop(0) == row
    assert len(there) == 16_000


def test_most_insertions_find_a_partner(binary: BinaryScene) -> None:
    inserted = binary.r_b[binary.changed[binary.is_insert]]
    finds = np.isin(inserted, binary.s_b)
    assert finds.mean() == pytest.approx(0.7, abs=0.02)
    assert len(np.unique(binary.r_b)) == 100 and len(np.unique(binary.s_b)) == 70
    # Any join value is as likely as any other.
    assert np.bincount(binary.r_b).std() < 0.1 * np.bincount(binary.r_b).mean()
    partners = Counter(binary.s_b.tolist())
    assert binary.join_output_rate == pytest.approx(np.mean([partners[b] for b in inserted.tolist()]))
    assert binary.join_output_rate == pytest.approx(51, rel=0.05)


@pytest.mark.parametrize("share", [0.0, 0.35, 1.0])
def test_share_with_partners_can_be_chosen(share: float) -> None:
    scene = BinaryCase(partner_share=share).scene(seed=1, subscriptions=0, changes=10_000)
    assert np.isin(scene.r_b, scene.s_b).mean() == pytest.approx(share, abs=0.02)


def test_join_output_rate_grows_with_s() -> None:
    rates = [
        BinaryCase(s_size=size).scene(seed=1, subscriptions=0, changes=20_000).join_output_rate
        for size in (500, 5_000, 50_000)
    ]
    assert rates == pytest.approx([5, 50, 500], rel=0.05)


def test_s_rows_per_join_value_are_zipf(binary: BinaryScene) -> None:
    counts = np.bincount(binary.s_b)
    rank = np.arange(1, len(counts) + 1)
    assert counts[0] / counts[9] == pytest.approx(10**0.8, rel=0.03)
    assert np.polyfit(np.log(rank), np.log(counts), 1)[0] == pytest.approx(-0.8, abs=0.02)
    assert zipf_counts(7, 70, 0.8).sum() == 7 and zipf_counts(100, 3, 0.0).tolist() == [33, 34, 33]


def test_ranges_are_around_hot_spots_low_and_high(binary: BinaryScene) -> None:
    assert binary.ranges.min() >= 0 and binary.ranges.max() <= DOMAIN
    for column, sigma, width in ((0, 13_000, 4_000), (2, 7_500, 2_500)):
        low, high = binary.ranges[:, column], binary.ranges[:, column + 1]
        centre, is_inside = (low + high) / 2, (low > 0) & (high < DOMAIN)
        assert np.mean(centre > DOMAIN / 2) == pytest.approx(0.5, abs=0.02)
        # Beyond a spot, on the side of the nearer end of the domain, the other spot does not reach.
        beyond = 25_000 - centre[is_inside & (centre < 25_000)]
        assert np.median(beyond) == pytest.approx(0.67 * sigma, rel=0.1)
        assert np.mean((high - low)[is_inside]) == pytest.approx(width, rel=0.02)
        assert np.std((high - low)[is_inside]) == pytest.approx(width / 5, rel=0.05)


def test_the_more_overlap_the_fewer_join_and_the_more_are_selected() -> None:
    """What the paper says of its overlap experiment, which is all we know of where its rows lie."""
    selected, joined = [], []
    for overlap in (0.0, 3_000.0, 6_000.0):
        scene = BinaryCase(overlap=overlap).scene(seed=1, subscriptions=20_000, changes=600)
        of_a, of_both = [], []
        for row in scene.changed[scene.is_insert].tolist():
            a_lo, a_hi, c_lo, c_hi = scene.ranges.T
            wants = (a_lo <= scene.r_a[row]) & (scene.r_a[row] <= a_hi)
            c = np.sort(scene.s_c[scene.s_b == scene.r_b[row]])
            of_a.append(int(wants.sum()))
            joins = np.searchsorted(c, c_hi[wants], "right") > np.searchsorted(c, c_lo[wants])
            of_both.append(int(joins.sum()))
        selected.append(np.mean(of_a))
        joined.append(np.mean(of_both))
    assert selected[0] < selected[1] < selected[2]
    assert joined[0] > joined[1] > joined[2] > 0


def share_of_changes(scene: MultiScene) -> np.ndarray:
    """Per table: insertions and updates."""
    counted = np.bincount(scene.steps.table[scene.steps.op != Op.DELETE], minlength=4)
    return np.asarray(counted / counted.sum())


def test_general_schema_is_that_of_the_paper() -> None:
    scene = GeneralCase().scene(seed=1, subscriptions=170_000, changes=40_000)
    assert (scene.size, scene.changes) == (170_000, 40_000)
    assert [table.start for table in scene.tables] == [1_000, 7_000, 7_000, 3_000]
    assert [table.links.shape[1] for table in scene.tables] == [1, 3, 1, 1]
    for table in scene.tables:
        per_value = np.bincount(table.links[: table.start, 0], minlength=100)
        assert len(per_value) == 100 and per_value.std() < 2 * np.sqrt(per_value.mean())
    assert np.bincount(scene.signature) == pytest.approx([50_000, 50_000, 50_000, 20_000], rel=0.02)
    assert share_of_changes(scene) == pytest.approx([0.25] * 4, abs=0.02)
    assert SIGNATURES == ((R, S), (R, S, T), (R, S, T, U), (S, T, U))


def test_star_schema_is_that_of_the_paper() -> None:
    scene = StarCase().scene(seed=1, subscriptions=1_000, changes=40_000)
    assert [table.start for table in scene.tables] == [1_000, 25_000, 1_000, 1_000]
    assert scene.payloads == (100, 0, 100, 100)
    assert share_of_changes(scene) == pytest.approx([0.02, 0.94, 0.02, 0.02], abs=0.005)
    for link, number in enumerate((R, T, U)):
        dimension = scene.tables[number]
        # Every fact has its row in the dimension, which is updated and never goes.
        assert scene.tables[S].links[:, link].max() < dimension.start
        assert (dimension.links[:, 0] == dimension.key).all() and dimension.key.max() < dimension.start
        assert set(scene.steps.op[scene.steps.table == number].tolist()) == {Op.UPDATE}


@pytest.mark.parametrize("case", [GeneralCase(), GeneralCase().sized(30), StarCase().sized(90)])
def test_tables_keep_their_sizes(case: GeneralCase | StarCase) -> None:
    scene = case.scene(seed=1, subscriptions=0, changes=3_001)
    there = [list(range(table.start)) for table in scene.tables]
    for table, op, image in zip(*(column.tolist() for column in vars(scene.steps).values()), strict=True):
        key = int(scene.tables[table].key[image])
        if op == Op.INSERT:
            there[table].append(key)
        elif op == Op.DELETE:
            assert there[table].pop(0) == key
        else:
            assert key in there[table]
    apart = [len(rows) - table.start for rows, table in zip(there, scene.tables, strict=True)]
    # An insertion may be the last change.
    assert sorted(apart) in ([0, 0, 0, 0], [0, 0, 0, 1])
    assert all(len(images) == scene.steps.images_of(i, images.start) for i, images in enumerate(scene.tables))


def test_stocks_are_quoted_in_turn_and_most_are_reviewed() -> None:
    scene = JoinStocksCase().scene(seed=1, subscriptions=100, changes=20_000)
    assert (scene.size, len(scene.s_b), scene.r_size) == (100, 2_300, 16_000)
    assert all(sorted(half) == list(range(100)) for half in scene.r_b.reshape(-1, 100).tolist())
    assert np.isin(scene.r_b, scene.s_b).mean() == pytest.approx(0.7)
    assert scene.join_output_rate == pytest.approx(23)
    for values in (scene.r_a, scene.s_c):
        assert values.min() >= 0 and values.max() <= DOMAIN and len(np.unique(values)) > 1_000


def test_reviews_are_replaced_and_stocks_stay() -> None:
    _, changes = records("join-stocks", seed=1, rows=20, changes=3_000)
    assert Counter((one["table"], one["op"]) for one in changes[:480]) == {
        ("stocks", "insert"): 20,
        ("reviews", "insert"): 460,
    }
    later = Counter((one["table"], one["op"]) for one in changes[480:])
    assert later.keys() == {("stocks", "update"), ("reviews", "insert"), ("reviews", "delete")}
    sizes = list(sizes_after(changes, keys_of("join-stocks")))[-1]
    assert sizes["stocks"] == 20 and sizes["reviews"] in {460, 461}
    assert all(1 <= one["row"]["rating"] <= 10 for one in changes if "rating" in one["row"])
