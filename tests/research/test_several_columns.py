"""Joins with several range columns on a table: rows reach those with a partner for them, by few boxes, and few others."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from research.servers.forms import project_all
from research.strategies import JOINS
from research.strategies.join.payload import PLACED, SIDE
from research.strategies.join.semijoin.skylines import POINTS_MAX
from research.strategies.join.servers import server_of
from research.strategies.join.space import space_of
from tidings.families.spec import Form
from tidings.model.change import TableChanges
from tidings.model.points import Event, PointBatch
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog

CATALOG = parse_catalog("""
CREATE TABLE r (id BIGINT PRIMARY KEY, b BIGINT, a BIGINT);
CREATE TABLE s (id BIGINT PRIMARY KEY, b BIGINT, c BIGINT, d BIGINT);
""")
SQL = "SELECT * FROM r JOIN s ON r.b = s.b WHERE r.a BETWEEN 0 AND 9 AND s.c BETWEEN 0 AND 1 AND s.d BETWEEN 0 AND 1"
FORM = Form.from_key(Door(CATALOG).place(SQL).form)
SPACE = space_of(FORM, CATALOG)
SEMIJOINS = [name for name in ("auto", *JOINS) if name == "auto" or "sj" in name]
SEEING = ["auto", "ref-sj:clu+", "ref-sj:tup+", "ref-sj:sub", "ref-sj:min"]
"""Those that choose points by the ranges of subscriptions."""


class Table:
    """A server with subscriptions of ranges [n, 4] on c and d (lower and upper ends in turn); they select all rows of r."""

    def __init__(self, strategy, ranges):
        self.server, self.ranges, self.clock = server_of(CATALOG, strategy), np.asarray(ranges), 0
        count = len(ranges)
        ends = {"a": [0, 9]} | {"c": self.ranges[:, :2], "d": self.ranges[:, 2:]}
        coords = np.concatenate(
            [np.broadcast_to(ends[axis.split(".")[1][0]], (count, 2)) for axis in SPACE.axes[::2]], axis=1
        ).astype(np.int64)
        ids = pa.array([f"s{i}" for i in range(count)])
        nothing, none = pa.array([b""] * count, pa.binary()), np.zeros(count, np.int64)
        created = np.full(count, Event.CREATE, np.int8)
        points = PointBatch(
            FORM.key, created, none, np.arange(count), ids, (), coords, np.ones(count, np.bool_), nothing
        )
        self.points = coords
        self.server.create(points, {}, wants_snapshots=False)

    def change(self, table, rows, old=None):
        """For rows put in, in place of others if these are given: (messages, boxes, who is to hold a row), each by table."""
        schema = CATALOG.table(table).schema
        after = pa.RecordBatch.from_pylist(rows, schema)
        before = pa.RecordBatch.from_pylist(old or [dict.fromkeys(schema.names)] * len(rows), schema)
        had, has = np.full(len(rows), old is not None), np.ones(len(rows), np.bool_)
        self.clock += 1
        sent = list(self.server.change(TableChanges(table, np.full(len(rows), self.clock), had, before, has, after)))
        messages, boxes, told = Counter(), Counter(), {"r": [], "s": []}
        for batch in (own for some in sent for own in project_all(some, CATALOG)):
            for i, side in enumerate(batch.payload.column(SIDE).to_pylist()):
                name = SPACE.sides[side].table.name
                messages[name] += 1
                boxes[name] += int(np.diff(batch.regions.starts)[i])
                told[name] += [at for at, point in enumerate(self.points.tolist()) if self._hears(batch, i, at, point)]
        return messages, boxes, {name: sorted(of) for name, of in told.items()}

    def _hears(self, batch, i, at, point):
        is_meant = batch.target is None or batch.target[i].as_py() == f"s{at}"
        return is_meant and batch.regions.contains(i, point) & PLACED

    def holders(self, points):
        """Who has one of some points (c, d) in both ranges."""
        return [
            i
            for i, (c_lo, c_hi, d_lo, d_hi) in enumerate(self.ranges.tolist())
            if any(c_lo <= c <= c_hi and d_lo <= d <= d_hi for c, d in points)
        ]


def s_rows(points, first=0):
    return [{"id": first + i, "b": 1, "c": c, "d": d} for i, (c, d) in enumerate(points)]


@pytest.mark.parametrize("strategy", SEMIJOINS)
def test_nobody_is_told_who_has_a_partner_on_one_column_only(strategy):
    """2,000 subscriptions have each partner in one of their two ranges; once all of them were sent every row of r."""
    table = Table(strategy, [[0, 10, 50, 60]] * 1_000 + [[50, 60, 0, 10]] * 1_000)
    table.change("s", s_rows([(5, 5), (55, 55), (7, 3)]))
    messages, _, told = table.change("r", [{"id": 1, "b": 1, "a": 3}])
    assert told["r"] == []
    # Where points are those of subscriptions, there is nothing to send.
    assert not messages or strategy not in SEEING
    assert table.change("s", s_rows([(5, 55)], first=9))[2]["r"] == list(range(1_000))


ranges_of = st.lists(
    st.tuples(*[st.integers(0, 6)] * 4).map(lambda ends: [*sorted(ends[:2]), *sorted(ends[2:])]),
    min_size=1,
    max_size=12,
)
points_of = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=8, unique=True)


@pytest.mark.extended
@pytest.mark.parametrize("strategy", SEMIJOINS)
@settings(max_examples=25)
@given(ranges_of, points_of, st.lists(points_of, min_size=1, max_size=3))
def test_rows_reach_those_with_a_partner_and_nobody_else(strategy, ranges, points, later):
    table = Table(strategy, ranges)
    table.change("s", s_rows(points))
    _, boxes, told = table.change("r", [{"id": 1, "b": 1, "a": 3}])
    assert told["r"] == table.holders(points)
    if "enum" not in strategy:
        assert boxes["r"] <= len(points)
    for part in later:
        had = table.holders(points)
        for at, point in enumerate(part):
            _, _, told = table.change("s", s_rows([point], first=1_000 * len(points) + at))
            points = [*points, point]
            assert told["r"] == [i for i in table.holders(points) if i not in had]
            had = table.holders(points)


@pytest.mark.parametrize("strategy", ["auto", "ref-sj:tup"])
def test_a_partner_that_moves_brings_rows_to_those_who_had_none(strategy):
    table = Table(strategy, [[0, 10, 0, 10], [5, 15, 0, 10], [0, 4, 0, 10]])
    (old,), (new,) = s_rows([(2, 2)]), s_rows([(7, 2)])
    table.change("s", [old])
    assert table.change("r", [{"id": 1, "b": 1, "a": 3}])[2]["r"] == [0, 2]
    assert table.change("s", [new], [old])[2]["r"] == [1]


@pytest.mark.parametrize("strategy", ["auto", "ref-sj:tup"])
def test_regions_have_a_limited_number_of_boxes_and_miss_nobody(strategy):
    """Ranges that hold one of many partners on a falling line, and ranges between these, which hold none."""
    count = 4 * POINTS_MAX
    line = [(10 * i, 10 * (count - i)) for i in range(count)]
    table = Table(strategy, [*([c, c, d, d] for c, d in line), *([c + 1, c + 9, d - 9, d - 1] for c, d in line)])
    table.change("s", s_rows(line))
    _, boxes, told = table.change("r", [{"id": 1, "b": 1, "a": 3}])
    assert boxes["r"] == POINTS_MAX and set(told["r"]) >= set(table.holders(line))


def test_points_are_merged_where_nobody_is_between():
    """A hundred partners side by side, and subscriptions that are wide: one box instead of a hundred."""
    partners = [(i, i) for i in range(100)]
    ranges = [[i, i + 30, i, i + 30] for i in range(60)]
    boxes = {}
    for strategy in ("ref-sj:clu+", "ref-sj:tup"):
        table = Table(strategy, ranges)
        table.change("s", s_rows(partners))
        _, found, told = table.change("r", [{"id": 1, "b": 1, "a": 3}])
        boxes[strategy] = found["r"]
        assert told["r"] == list(range(60))
    assert boxes == {"ref-sj:clu+": 1, "ref-sj:tup": POINTS_MAX}


def test_a_new_partner_is_news_in_several_gaps():
    """Around a new partner, ranges may avoid an old one on either column: no box holds both and nobody else."""
    apart = [[0, 4, 0, 10], [0, 10, 0, 4], [0, 10, 0, 10]]
    table = Table("auto", apart)
    table.change("s", s_rows([(6, 6)]))
    table.change("r", [{"id": 1, "b": 1, "a": 3}])
    messages, _, told = table.change("s", s_rows([(2, 2)], first=5))
    assert messages == {"r": 1, "s": 1} and told == {"r": [0, 1], "s": [0, 1, 2]}
