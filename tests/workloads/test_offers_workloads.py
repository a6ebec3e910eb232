"""The offers workloads obey the file contract, are the same for the same seed, and match as often as they say."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from constraint_sets import Geometric, columns_of, condition_of, disjuncts, matches

from tidings.sql import parse_catalog
from tidings.workloads import WORKLOADS, find
from tidings.workloads.offers.attributes import ATTRIBUTES, word
from tidings.workloads.offers.marketplace import offers_marketplace
from tidings.workloads.offers.paper import (
    POINT_WIDTH,
    Boxes,
    Equalities,
    PaperCase,
    PaperGenerator,
    conjunctions,
    fixed,
    geometric,
    offers_conjunctions,
    offers_fixed,
    offers_geometric,
    offers_proportional,
    proportional,
)
from tidings.workloads.offers.places import SIDE_KM, offers_places
from tidings.workloads.workload import WorkloadLines

Record = dict[str, Any]
OFFERS = [name for name in WORKLOADS if name.startswith("offers-")]
LIVING = ["offers-marketplace", "offers-places"]
PAPER: dict[str, tuple[Callable[[int, int], PaperCase[Any]], PaperGenerator]] = {
    "offers-fixed": (fixed, offers_fixed),
    "offers-proportional": (proportional, offers_proportional),
    "offers-conjunctions": (conjunctions, offers_conjunctions),
    "offers-geometric": (geometric, offers_geometric),
}

every_workload = pytest.mark.parametrize("name", OFFERS)
every_living = pytest.mark.parametrize("name", LIVING)
every_case = pytest.mark.parametrize("name", PAPER)
every_size = pytest.mark.parametrize(
    ("rows", "subscriptions", "changes"),
    [(0, 300, 900), (7, 40, 400), (0, 50, 0), (9, 40, 3), (0, 0, 10), (1, 1, 90)],
)


def made(name: str, seed: int = 3, rows: int = 0, subscriptions: int = 1_000, changes: int = 3_000) -> WorkloadLines:
    return find(name).load()(seed=seed, rows=rows, subscriptions=subscriptions, changes=changes)


def records(lines: Any) -> list[Record]:
    return [json.loads(line) for line in lines]


@every_workload
@every_size
def test_subscriptions_obey_the_contract(name: str, rows: int, subscriptions: int, changes: int) -> None:
    workload = made(name, rows=rows, subscriptions=subscriptions, changes=changes)
    columns = columns_of(workload.catalog_sql)
    found = records(workload.subscriptions)
    created = {record["id"]: record for record in found if "sql" in record}
    dropped = [record for record in found if "drop" in record]
    assert created.keys() == {f"s{i + 1}" for i in range(subscriptions)}
    assert len(created) + len({record["id"] for record in dropped}) == len(found)
    assert [record["after"] for record in found] == sorted(record["after"] for record in found)
    assert all(created[record["id"]]["after"] <= record["after"] for record in dropped)
    table = parse_catalog(workload.catalog_sql).tables[0]
    for record in created.values():
        assert record["sql"].startswith(f"SELECT * FROM {table.name} WHERE ")
        assert disjuncts(condition_of(record["sql"]), columns)


@every_workload
@every_size
def test_changes_obey_the_contract(name: str, rows: int, subscriptions: int, changes: int) -> None:
    """Inserts are of unknown ids, updates and deletes of known ones, where an offer that has expired is not known."""
    workload = made(name, rows=rows, subscriptions=subscriptions, changes=changes)
    columns = columns_of(workload.catalog_sql)
    found = records(workload.changes)
    assert len(found) == changes
    assert all(a["seq"] < b["seq"] for a, b in pairwise(found))
    there: dict[str, int] = {}
    for change in found:
        seq, op, id, expires = change["seq"], change["op"], change["id"], change.get("expires")
        there = {known: end for known, end in there.items() if end > seq}
        if op == "delete":
            assert change.keys() == {"seq", "table", "op", "id"}
            del there[id]
            continue
        assert change.keys() - {"expires"} == {"seq", "table", "op", "id", "where"}
        assert op == "upsert" or (op == "update") == (id in there)
        # Nothing depends on whether an update without `expires` keeps the old one.
        assert there.get(id, 2**63) == 2**63 or expires is not None
        assert expires is None or expires > seq
        assert disjuncts(change["where"], columns)
        there[id] = 2**63 if expires is None else expires


@every_workload
def test_lines_are_canonical(name: str) -> None:
    workload = made(name)
    for line in (*workload.subscriptions, *workload.changes):
        assert json.dumps(json.loads(line)).encode() == line


@every_workload
def test_same_seed_same_lines(name: str) -> None:
    first, same, other = ([*w.subscriptions, b"", *w.changes] for w in (made(name), made(name), made(name, seed=4)))
    assert first == same != other


@every_workload
def test_tables_hold_constraints(name: str) -> None:
    (table,) = parse_catalog(made(name).catalog_sql).tables
    assert table.rows == "constraints"


# The workloads of the paper


def _matches(case: PaperCase[Any], wanted: np.ndarray, offered: np.ndarray) -> int:
    if isinstance(case, Equalities):
        return sum(int((wanted == offer).all(axis=1).sum()) for offer in offered)
    x1, y1, x2, y2 = wanted.T
    return sum(int(((x1 <= o[2]) & (o[0] <= x2) & (y1 <= o[3]) & (o[1] <= y2)).sum()) for o in offered)


@every_case
@pytest.mark.parametrize(("size", "per_match"), [(20_000, 1), (3_000, 20)])
def test_as_many_match_as_the_paper_says(name: str, size: int, per_match: int) -> None:
    case = PAPER[name][0](size, per_match)
    if name == "offers-proportional":
        assert case.expected_matches == pytest.approx(size / 100)
    elif name == "offers-conjunctions":
        assert 10 / 3 <= case.expected_matches <= 20 / 3
    else:
        assert case.expected_matches == pytest.approx(5)
    batches = 100 if per_match > 1 else 400
    found = _matches(case, case.subscriptions(1), case.publications(1, batches * per_match)) / batches
    assert found == pytest.approx(case.expected_matches, rel=0.15)


@every_case
def test_numbers_are_those_of_the_lines(name: str) -> None:
    make, generator = PAPER[name]
    case = make(500, 3)
    workload = generator(seed=8, rows=50, subscriptions=500, changes=400, per_match=3)
    number = re.compile(r"(?<=[ (])[\d.]+")
    wanted = [[float(n) for n in number.findall(record["sql"])] for record in records(workload.subscriptions)]
    np.testing.assert_array_equal(wanted, case.subscriptions(8))
    published = [record["where"] for record in records(workload.changes) if "where" in record]
    assert len(published) == 50 + 350 // 2
    offered = case.publications(8, len(published))
    np.testing.assert_array_equal([[float(n) for n in number.findall(where)] for where in published], offered)
    assert list(case.constraints(offered)) == published
    assert list(case.queries(case.subscriptions(8))) == [
        record["sql"] for record in records(generator(seed=8, subscriptions=500, changes=0, per_match=3).subscriptions)
    ]


@every_case
def test_fewer_publications_are_the_first_of_more(name: str) -> None:
    case = PAPER[name][0](1_000, 1)
    np.testing.assert_array_equal(case.publications(5, 10), case.publications(5, 3_000)[:10])
    assert (case.publications(5, 10) != case.publications(6, 10)).any()


@every_case
def test_one_publication_at_a_time_unless_told_otherwise(name: str) -> None:
    """The oldest offer goes and a new one comes, in turn, so that there are always `rows` of them."""
    make, generator = PAPER[name]
    assert list(made(name).subscriptions) == list(generator(seed=3, subscriptions=1_000).subscriptions)
    assert made(name).catalog_sql == make(1_000, 1).catalog_sql
    found = [(record["op"], record["id"]) for record in records(made(name, rows=3, changes=7).changes)]
    inserts = [("insert", f"p{i}") for i in range(1, 6)]
    assert found == [*inserts[:3], ("delete", "p1"), inserts[3], ("delete", "p2"), inserts[4]]


def test_values_lie_where_the_paper_says() -> None:
    few, many = fixed(2_000, 1), proportional(2_000, 7)
    assert (few.low, few.high) == (1, 400) and (many.low, many.high) == (1, 700)
    drawn = few.subscriptions(0)
    assert drawn.dtype == np.int64 and drawn.shape == (2_000, 1)
    assert drawn.min() == 1 and drawn.max() == 400
    bits = conjunctions(100_000, 1)
    assert set(np.unique(bits.subscriptions(0))) == {0, 1}
    assert [len(conjunctions(size).columns) for size in (0, 1, 2, 3, 7, 20, 1_000, 100_000, 1_000_000)] == [
        *(1, 1, 1, 1, 1, 2, 8, 14, 18),
    ]


def test_boxes_are_ordered_and_of_the_right_size() -> None:
    for size, per_match in ((1, 1), (100_000, 1), (1_000_000, 1_000)):
        case = geometric(size, per_match)
        offered, wanted = case.publications(0, 1_000), Boxes(1_000, 1, 1.0).subscriptions(0)
        assert offered.dtype == np.float64 and offered.shape == (1_000, 4)
        for box in (offered, wanted):
            assert (box[:, :2] < box[:, 2:]).all() and (box >= 0).all() and (box <= 1 + 2 * POINT_WIDTH).all()
        area = np.prod(offered[:, 2:] - offered[:, :2], axis=1)
        assert area == pytest.approx(min(1.0, 5 / (size * per_match)), rel=1e-6)
        assert wanted[:, 2:] - wanted[:, :2] == pytest.approx(POINT_WIDTH, rel=1e-2)


# Those of our own


@every_living
def test_offers_come_change_expire_and_go(name: str) -> None:
    changes = records(made(name, rows=200, changes=8_000).changes)
    assert all(change["op"] == "insert" for change in changes[:200])
    live = changes[200:]
    ops = Counter(change["op"] for change in live)
    assert set(ops) == {"insert", "update", "upsert", "delete"}
    assert min(ops["insert"], ops["delete"]) > 0.1 * len(live) and 0.4 < ops["update"] / len(live) < 0.55
    first_seen = {change["id"] for change in changes[:200]}
    assert any(change["op"] == "insert" and change["id"] in first_seen for change in live)
    there: dict[str, int] = {}
    expired, sizes = 0, []
    for change in changes:
        over = [id for id, end in there.items() if end <= change["seq"]]
        expired += len(over)
        for id in (*over, *([change["id"]] if change["op"] == "delete" else ())):
            del there[id]
        if change["op"] != "delete":
            there[change["id"]] = change.get("expires", 2**63)
        sizes.append(len(there))
    assert expired > 0.05 * len(live)
    assert min(sizes[250:]) > 150 and max(sizes) < 250
    steps = Counter(b["seq"] - a["seq"] for a, b in pairwise(changes))
    assert max(steps) > 1 and steps[1] > 0.95 * len(changes)


@every_living
def test_subscribers_come_and_go(name: str) -> None:
    found = records(made(name, rows=100).subscriptions)
    later = [record for record in found if record["after"]]
    drops = sum("drop" in record for record in found)
    assert 60 < drops < 140 and 60 < len(later) - drops < 140
    assert all(record["after"] >= 100 for record in later)


@pytest.mark.parametrize("generator", [offers_marketplace, offers_places])
def test_without_churn_a_shorter_run_is_the_beginning_of_a_longer_one(generator: Any) -> None:
    short, long = (generator(rows=20, subscriptions=n, changes=2 * n, has_churn=False) for n in (150, 230))
    assert list(short.subscriptions) == list(islice(long.subscriptions, 150))
    assert list(short.changes) == list(islice(long.changes, 300))


@pytest.mark.parametrize(
    ("generator", "least", "most", "none"),
    [(offers_marketplace, 0.0005, 0.006, 0.85), (offers_places, 0.0005, 0.003, 0.75)],
)
def test_an_offer_matches_some_but_not_too_many(generator: Any, least: float, most: float, none: float) -> None:
    workload = generator(seed=1, rows=300, subscriptions=800, changes=300, has_churn=False)
    columns = columns_of(workload.catalog_sql)
    wanted = [disjuncts(condition_of(record["sql"]), columns) for record in records(workload.subscriptions)]
    offered = [disjuncts(record["where"], columns) for record in records(workload.changes)]
    found = np.array([[matches(offer, one) for one in wanted] for offer in offered])
    assert least < found.mean() < most
    assert (~found.any(axis=1)).mean() < none
    assert found.any(axis=0).mean() > 0.1


def test_the_marketplace_has_fifty_attributes_and_every_kind_of_predicate() -> None:
    assert len({one.name for one in ATTRIBUTES}) == 50
    assert {one.type for one in ATTRIBUTES} == {"TEXT", "BIGINT", "DOUBLE", "DATE", "BOOLEAN"}
    assert len({word(number) for number in range(4_096)}) == 4_096
    workload = made("offers-marketplace", subscriptions=1_500, changes=1_500)
    columns = columns_of(workload.catalog_sql)
    texts = {
        "subscriptions": [record["sql"] for record in records(workload.subscriptions) if "sql" in record],
        "offers": [record["where"] for record in records(workload.changes) if "where" in record],
    }
    for side, found in texts.items():
        used = Counter[str]()
        for text in found:
            sets = disjuncts(condition_of(text) or text, columns)
            names = {column for one in sets for column in one}
            assert 1 <= len(names) <= 3
            used.update(names)
        assert used.keys() == columns.keys()
        top = sum(count for _, count in used.most_common(5))
        assert 0.3 < top / used.total() < 0.7, side
        for word_used in (" = ", " IN (", " BETWEEN ", " <> ", " LIKE ", " >= ", " < ", " <= ", " > ", " OR "):
            assert 0.005 < sum(word_used in text for text in found) / len(found) < 0.97, (side, word_used)
    ranked = [sql for sql in texts["subscriptions"] if " ORDER BY price LIMIT " in sql]
    assert 0.07 < len(ranked) / len(texts["subscriptions"]) < 0.13
    assert all("price BETWEEN" in sql or "price >=" in sql for sql in ranked)


def test_places_have_every_kind_of_geometry() -> None:
    workload = made("offers-places", subscriptions=500, changes=500)
    columns = columns_of(workload.catalog_sql)
    texts = {
        "offers": [record["where"] for record in records(workload.changes) if "where" in record],
        "subscriptions": [condition_of(record["sql"]) for record in records(workload.subscriptions) if "sql" in record],
    }
    kinds: dict[str, set[tuple[str, str]]] = {}
    for side, found in texts.items():
        for text in found:
            for column, one in ((c, s) for sets in disjuncts(text, columns) for c, s in sets.items()):
                if isinstance(one, Geometric):
                    kinds.setdefault(side, set()).add((column, one.op))
                    assert min(one.box) >= 0 and max(one.box) <= SIDE_KM
    assert kinds["offers"] == {("spot", "="), ("spot", "within"), ("area", "=")}
    assert kinds["subscriptions"] == {
        *(("spot", "="), ("spot", "within"), ("area", "overlaps"), ("area", "contains"), ("area", "within")),
    }
