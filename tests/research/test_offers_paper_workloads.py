"""The offers workloads of the paper obey the file contract, are the same for the same seed, and match as often as it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from offers_lines import check_canonical, check_changes, check_constraints, check_subscriptions, every_size, records

from research.workloads import find
from research.workloads.offers.paper import (
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
from tidings.workloads.workload import WorkloadLines

PAPER: dict[str, tuple[Callable[[int, int], PaperCase[Any]], PaperGenerator]] = {
    "offers-fixed": (fixed, offers_fixed),
    "offers-proportional": (proportional, offers_proportional),
    "offers-conjunctions": (conjunctions, offers_conjunctions),
    "offers-geometric": (geometric, offers_geometric),
}

every_workload = pytest.mark.parametrize("name", PAPER)


def made(name: str, seed: int = 3, rows: int = 0, subscriptions: int = 1_000, changes: int = 3_000) -> WorkloadLines:
    return find(name).load()(seed=seed, rows=rows, subscriptions=subscriptions, changes=changes)


@every_workload
@every_size
def test_lines_obey_the_contract(name: str, rows: int, subscriptions: int, changes: int) -> None:
    workload = made(name, rows=rows, subscriptions=subscriptions, changes=changes)
    check_subscriptions(workload, subscriptions)
    check_changes(workload, changes)


@every_workload
def test_lines_are_canonical(name: str) -> None:
    check_canonical(made(name))


@every_workload
def test_same_seed_same_lines(name: str) -> None:
    first, same, other = ([*w.subscriptions, b"", *w.changes] for w in (made(name), made(name), made(name, seed=4)))
    assert first == same != other


@every_workload
def test_tables_hold_constraints(name: str) -> None:
    check_constraints(made(name))


def _matches(case: PaperCase[Any], wanted: np.ndarray, offered: np.ndarray) -> int:
    if isinstance(case, Equalities):
        return sum(int((wanted == offer).all(axis=1).sum()) for offer in offered)
    x1, y1, x2, y2 = wanted.T
    return sum(int(((x1 <= o[2]) & (o[0] <= x2) & (y1 <= o[3]) & (o[1] <= y2)).sum()) for o in offered)


@every_workload
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


@every_workload
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


@every_workload
def test_fewer_publications_are_the_first_of_more(name: str) -> None:
    case = PAPER[name][0](1_000, 1)
    np.testing.assert_array_equal(case.publications(5, 10), case.publications(5, 3_000)[:10])
    assert (case.publications(5, 10) != case.publications(6, 10)).any()


@every_workload
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
