"""The top-k workloads obey the file contract, are the same for the same seed, and are distributed as they say."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from research.workloads import WORKLOADS, find
from research.workloads.topk.cases import ANTICORRELATED, CLUSTERED, CORRELATED, STEPS, UNIFORM, Case
from research.workloads.topk.scene import Source, scene_of
from research.workloads.topk.spread import CENTRES, GAP, ClusteredRanges, Jumps, SmallSteps, even_ranges
from research.workloads.topk.stocks import StockCase, _trendless
from tidings.sql import Compiler, parse_catalog

Record = dict[str, Any]
TOPKS = [name for name in WORKLOADS if name.startswith("topk-")]
SOURCES: dict[str, Source] = {
    "topk-uniform": UNIFORM,
    "topk-clustered": CLUSTERED,
    "topk-correlated": CORRELATED,
    "topk-anticorrelated": ANTICORRELATED,
    "topk-steps": STEPS,
    "topk-stocks": StockCase(),
}
QUERY = re.compile(r"SELECT \* FROM \w+ WHERE \w+ BETWEEN (\S+) AND (\S+) ORDER BY \w+ LIMIT 10")

every_workload = pytest.mark.parametrize("name", TOPKS)
every_size = pytest.mark.parametrize(
    ("rows", "subscriptions", "changes"), [(0, 3_000, 20_000), (7, 3_000, 1_000), (0, 50, 0), (9, 40, 3), (0, 0, 10)]
)


def made(
    name: str, seed: int = 3, rows: int = 0, subscriptions: int = 3_000, changes: int = 20_000
) -> list[list[bytes]]:
    workload = find(name).load()(seed=seed, rows=rows, subscriptions=subscriptions, changes=changes)
    return [list(workload.subscriptions), list(workload.changes)]


def records(*arguments: Any, **options: Any) -> tuple[list[Record], list[Record]]:
    subscriptions, changes = made(*arguments, **options)
    return [json.loads(line) for line in subscriptions], [json.loads(line) for line in changes]


def ends(subscriptions: list[Record]) -> np.ndarray:
    found = [QUERY.fullmatch(record["sql"]) for record in subscriptions]
    return np.array([[float(one[1]), float(one[2])] for one in found if one])


@every_workload
@every_size
def test_subscriptions_obey_the_contract(name: str, rows: int, subscriptions: int, changes: int) -> None:
    lines, _ = records(name, rows=rows, subscriptions=subscriptions, changes=changes)
    assert [record["id"] for record in lines] == [f"s{i + 1}" for i in range(subscriptions)]
    assert all(record.keys() == {"id", "sql", "after"} and record["after"] == 0 for record in lines)
    low, high = ends(lines).reshape(subscriptions, 2).T
    assert (low <= high).all()


@every_workload
@every_size
def test_changes_obey_the_contract(name: str, rows: int, subscriptions: int, changes: int) -> None:
    _, lines = records(name, rows=rows, subscriptions=subscriptions, changes=changes)
    assert [change["seq"] for change in lines] == list(range(1, changes + 1))
    place: dict[Any, float] = {}
    for change in lines:
        assert change.keys() == {"seq", "table", "op", "row"}
        key, own, _ = change["row"].values()
        assert (change["op"] == "update") == (key in place)
        assert place.setdefault(key, own) == own
    if rows:
        assert len(place) == min(rows, changes)


@every_workload
def test_queries_compile(name: str) -> None:
    workload = find(name).load()(seed=1, rows=0, subscriptions=300, changes=10)
    compiler = Compiler(parse_catalog(workload.catalog_sql))
    shapes = [compiler.compile(json.loads(line)["sql"]).shape for line in workload.subscriptions]
    assert all(shape.order is not None and shape.order.limit == 10 and len(shape.ranges) == 1 for shape in shapes)


@every_workload
def test_same_seed_same_lines(name: str) -> None:
    assert made(name) == made(name)
    assert all(one != other for one, other in zip(made(name, seed=4), made(name, seed=5), strict=True))


@every_workload
def test_a_shorter_stream_is_the_beginning_of_a_longer_one(name: str) -> None:
    assert made(name, rows=50, changes=9_000)[1] == made(name, rows=50)[1][:9_000]


@every_workload
def test_lines_say_what_the_arrays_do(name: str) -> None:
    subscriptions, changes = records(name, seed=7, rows=30, subscriptions=200, changes=530)
    scene = scene_of(SOURCES[name], seed=7, rows=30, subscriptions=200, changes=500)
    assert (scene.k, scene.rows, scene.size, scene.changes) == (10, 30, 200, 500)
    np.testing.assert_array_equal(ends(subscriptions), scene.ranges)
    keys, places, scores = zip(*(change["row"].values() for change in changes), strict=True)
    number = {key: i for i, key in enumerate(keys[:30])}
    assert places[:30] == tuple(scene.place) and scores[:30] == tuple(scene.score)
    assert [number[key] for key in keys[30:]] == scene.changed.tolist()
    assert scores[30:] == tuple(scene.new_score)


def scene(case: Source, rows: int = 2_000, subscriptions: int = 20_000, changes: int = 20_000) -> Any:
    return scene_of(case, seed=2, rows=rows, subscriptions=subscriptions, changes=changes)


def previous(made: Any) -> np.ndarray:
    """The score that every change replaces."""
    score, old = made.score.copy(), []
    for row, new in zip(made.changed.tolist(), made.new_score.tolist(), strict=True):
        old.append(score[row])
        score[row] = new
    return np.array(old)


def test_uniform_is_uniform() -> None:
    drawn = scene(UNIFORM)
    assert np.mean(drawn.place) == pytest.approx(0.5, abs=0.03)
    assert np.std(drawn.place) == pytest.approx(np.sqrt(1 / 12), rel=0.05)
    # Of the triangle low < high, a quarter lies below, and one above, the middle.
    low, high = drawn.ranges.T
    assert np.mean(high < 0.5) == pytest.approx(0.25, abs=0.02)
    assert np.mean(low > 0.5) == pytest.approx(0.25, abs=0.02)
    assert max(Counter(drawn.changed.tolist()).values()) < 40


def test_jumps_go_either_way_and_anywhere_there() -> None:
    drawn = scene(UNIFORM)
    old, new = previous(drawn), drawn.new_score
    assert new.min() >= 0 and new.max() <= 1
    assert np.mean(new > old) == pytest.approx(0.5, abs=0.02)
    assert np.mean(new[new < old] / old[new < old]) == pytest.approx(0.5, abs=0.02)
    assert np.mean((1 - new[new > old]) / (1 - old[new > old])) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("volatility", [1.0, 1 / 8])
def test_steps_are_small(volatility: float) -> None:
    drawn = scene(Case(scores=SmallSteps(volatility)))
    step = drawn.new_score - previous(drawn)
    inside = np.abs(previous(drawn) - 0.5) < 0.5 - 4 * volatility / 8 if volatility < 1 else np.abs(step) >= 0
    assert drawn.new_score.min() >= 0 and drawn.new_score.max() <= 1
    # Reflection makes some of the large steps smaller.
    assert np.std(step[inside]) == pytest.approx(volatility / 8, rel=0.03 if volatility < 1 else 0.15)


def test_scores_are_reflected() -> None:
    class Always:
        def normal(self, mean: float, sd: float, size: int) -> np.ndarray:
            return np.array([-0.3, 0.9, -0.1])

    score = [0.2, 0.5]
    assert SmallSteps().change(Always(), score, [0, 1, 0]) == pytest.approx([0.1, 0.6, 0.0])  # type: ignore[arg-type]
    assert score == pytest.approx([0.0, 0.6])


def test_a_jump_starts_where_the_last_one_ended() -> None:
    score = [0.5]
    changed = Jumps().change(np.random.default_rng(0), score, [0] * 50)
    assert score[0] == changed[-1] and len(set(changed)) == 50


def test_rows_are_in_clusters_of_the_same_size() -> None:
    place = scene(CORRELATED).place
    nearest = np.abs(place[:, None] - CENTRES).argmin(axis=1)
    assert set(np.bincount(nearest).tolist()) == {200}
    assert np.std(place - CENTRES[nearest]) == pytest.approx(GAP / 8, rel=0.05)


@pytest.mark.parametrize(("case", "shift"), [(CORRELATED, 0.0), (ANTICORRELATED, GAP / 2)])
def test_ranges_are_around_or_between_the_clusters(case: Case, shift: float) -> None:
    low, high = scene(case).ranges.T
    centres = CENTRES + shift if shift == 0 else CENTRES[:-1] + shift
    nearest = np.abs(((low + high) / 2)[:, None] - centres).argmin(axis=1)
    assert len(np.unique(nearest)) == len(centres)
    assert np.std(np.concatenate([low, high]) - np.tile(centres[nearest], 2)) == pytest.approx(GAP / 8, rel=0.05)


def test_clustered_ranges_are_near_ten_centres_inside_the_triangle() -> None:
    drawn = ClusteredRanges(width=0.04)(np.random.default_rng(5), 20_000)
    centre = even_ranges(np.random.default_rng(5), 10)
    apart = np.sqrt(((drawn[:, None] - centre) ** 2).sum(axis=2)).min(axis=1)
    assert np.mean(apart < 3 * 0.01) > 0.98
    assert (drawn[:, 0] <= drawn[:, 1]).all() and drawn.min() >= 0 and drawn.max() <= 1
    assert np.allclose(drawn * 10_000, (drawn * 10_000).round())
    assert len(drawn) == 20_000 and len(ClusteredRanges()(np.random.default_rng(5), 0)) == 0


def test_stocks_move_a_little_all_in_turn_twice_a_day() -> None:
    drawn = scene(StockCase(), rows=500, changes=10_000)
    assert (drawn.place >= 1).all() and (drawn.place <= 5).all()
    assert np.median(drawn.score) == pytest.approx(18, rel=0.1)
    halves = drawn.changed.reshape(20, 500)
    assert all(sorted(half) == list(range(500)) for half in halves.tolist())
    assert halves[0].tolist() != halves[1].tolist()
    moves = np.abs(np.log(drawn.new_score / previous(drawn)))
    assert 0.003 < np.median(moves) < 0.02
    # No split of a stock, two for one or more, is among them.
    assert scene(StockCase(), rows=50, changes=200_000).new_score.max() < 2_000


def test_histories_are_real_and_come_back_to_where_they_began() -> None:
    from bokeh_sampledata import stocks

    moves = _trendless("IBM")
    days = np.diff(np.log(np.array(stocks.IBM["close"], np.float64)))
    np.testing.assert_allclose(moves.sum(axis=1), days - days.mean(), atol=1e-9)
    np.testing.assert_allclose(moves.sum(axis=0), 0, atol=1e-9)
    # Two shares for one on 18 February 2003, and nothing else like it.
    assert len(_trendless("MSFT")) == len(stocks.MSFT["close"]) - 2
