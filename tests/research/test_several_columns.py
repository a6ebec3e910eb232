"""Joins with several range columns on a table: rows reach those with a partner for them, by few boxes, and few others."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from join_told import JoinTold

from research.strategies import JOINS
from research.strategies.join.semijoin.skylines import POINTS_MAX

TABLES = """
CREATE TABLE r (id BIGINT PRIMARY KEY, b BIGINT, a BIGINT);
CREATE TABLE s (id BIGINT PRIMARY KEY, b BIGINT, c BIGINT, d BIGINT);
"""
SQL = (
    "SELECT * FROM r JOIN s ON r.b = s.b WHERE r.a BETWEEN 0 AND 9 AND s.c BETWEEN {} AND {} AND s.d BETWEEN {} AND {}"
)
SEMIJOINS = [name for name in ("auto", *JOINS) if name == "auto" or "sj" in name]
SEEING = ["auto", "long-sj", "ref-sj:clu+", "ref-sj:tup+", "ref-sj:sub", "ref-sj:min"]
"""Those that choose points by the ranges of subscriptions."""
ROW = {"id": 1, "b": 1, "a": 3}


def joined(strategy, ranges):
    """Subscriptions with ranges (lower and upper end on c, then on d) select all rows of r."""
    return JoinTold(TABLES, strategy, [SQL.format(*ends) for ends in ranges])


def holders(ranges, points):
    """Who has one of some points (c, d) in both ranges."""
    return [
        i
        for i, (c_lo, c_hi, d_lo, d_hi) in enumerate(ranges)
        if any(c_lo <= c <= c_hi and d_lo <= d <= d_hi for c, d in points)
    ]


def s_rows(points, first=0):
    return [{"id": first + i, "b": 1, "c": c, "d": d} for i, (c, d) in enumerate(points)]


@pytest.mark.parametrize("strategy", SEMIJOINS)
def test_nobody_is_told_who_has_a_partner_on_one_column_only(strategy):
    """2,000 subscriptions have each partner in one of their two ranges; once all of them were sent every row of r."""
    table = joined(strategy, [[0, 10, 50, 60]] * 1_000 + [[50, 60, 0, 10]] * 1_000)
    table.put("s", s_rows([(5, 5), (55, 55), (7, 3)]))
    told = table.put("r", [ROW])
    assert told.rows == []
    # Where points are those of subscriptions, there is nothing to send.
    assert not told.messages or strategy not in SEEING
    assert table.put("s", s_rows([(5, 55)], first=9)).who("r") == list(range(1_000))


ranges_of = st.lists(
    st.tuples(*[st.integers(0, 6)] * 4).map(lambda ends: [*sorted(ends[:2]), *sorted(ends[2:])]),
    min_size=1,
    max_size=12,
)
points_of = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=8, unique=True)


@pytest.mark.extended
@pytest.mark.parametrize("strategy", SEMIJOINS)
@settings(max_examples=25)
@given(ranges_of, points_of, points_of)
def test_rows_reach_those_with_a_partner_and_nobody_else(strategy, ranges, points, later):
    table = joined(strategy, ranges)
    table.put("s", s_rows(points))
    told = table.put("r", [ROW])
    assert told.who("r") == holders(ranges, points)
    if "enum" not in strategy:
        assert told.boxes["r"] <= len(points)
    for new in later:
        had = holders(ranges, points)
        told = table.put("s", s_rows([new], first=len(points)))
        points = [*points, new]
        assert told.who("r") == [i for i in holders(ranges, points) if i not in had]


@pytest.mark.parametrize("strategy", ["auto", "ref-sj:tup"])
def test_a_partner_that_moves_brings_rows_to_those_who_had_none(strategy):
    table = joined(strategy, [[0, 10, 0, 10], [5, 15, 0, 10], [0, 4, 0, 10]])
    (old,), (new,) = s_rows([(2, 2)]), s_rows([(7, 2)])
    table.put("s", [old])
    assert table.put("r", [ROW]).who("r") == [0, 2]
    assert table.put("s", [new], [old]).who("r") == [1]


@pytest.mark.parametrize("strategy", ["auto", "ref-sj:tup"])
def test_regions_have_a_limited_number_of_boxes_and_miss_nobody(strategy):
    """Ranges that hold one of many partners on a falling line, and ranges between these, which hold none."""
    count = 4 * POINTS_MAX
    line = [(10 * i, 10 * (count - i)) for i in range(count)]
    ranges = [*([c, c, d, d] for c, d in line), *([c + 1, c + 9, d - 9, d - 1] for c, d in line)]
    table = joined(strategy, ranges)
    table.put("s", s_rows(line))
    told = table.put("r", [ROW])
    assert told.boxes["r"] == POINTS_MAX and {*told.who("r")} >= {*holders(ranges, line)}


def test_points_are_merged_where_nobody_is_between():
    """A hundred partners side by side, and subscriptions that are wide: one box instead of a hundred."""
    partners = [(i, i) for i in range(100)]
    ranges = [[i, i + 30, i, i + 30] for i in range(60)]
    boxes = {}
    for strategy in ("ref-sj:clu+", "ref-sj:tup"):
        table = joined(strategy, ranges)
        table.put("s", s_rows(partners))
        told = table.put("r", [ROW])
        boxes[strategy] = told.boxes["r"]
        assert told.who("r") == list(range(60))
    assert boxes == {"ref-sj:clu+": 1, "ref-sj:tup": POINTS_MAX}


def test_a_new_partner_is_news_in_several_gaps():
    """Around a new partner, ranges may avoid an old one on either column: no box holds both and nobody else."""
    apart = [[0, 4, 0, 10], [0, 10, 0, 4], [0, 10, 0, 10]]
    table = joined("auto", apart)
    table.put("s", s_rows([(6, 6)]))
    table.put("r", [ROW])
    told = table.put("s", s_rows([(2, 2)], first=5))
    assert told.messages == {"r": 1, "s": 1}
    assert told.who("r") == [0, 1] and told.who("s") == [0, 1, 2]
