"""Long semijoins send a row to those in whose answer it takes part, when it begins to, and to nobody else."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from join_told import JoinTold

TABLES = """
CREATE TABLE r (id BIGINT PRIMARY KEY, b BIGINT, e BIGINT, a BIGINT);
CREATE TABLE s (id BIGINT PRIMARY KEY, b BIGINT, d BIGINT, c BIGINT);
CREATE TABLE t (id BIGINT PRIMARY KEY, d BIGINT, e BIGINT, f BIGINT);
"""
CHAIN, TRIANGLE = "r JOIN s ON r.b = s.b JOIN t ON s.d = t.d", "r JOIN s ON r.b = s.b JOIN t ON s.d = t.d AND t.e = r.e"
WHERE = "r.a BETWEEN {} AND {} AND s.c BETWEEN {} AND {} AND t.f BETWEEN {} AND {}"
COLUMNS = {"r": ("b", "e", "a"), "s": ("b", "d", "c"), "t": ("d", "e", "f")}


def joined(strategy, source, ranges):
    return JoinTold(TABLES, strategy, [f"SELECT * FROM {source} WHERE {WHERE.format(*ends)}" for ends in ranges])


def test_a_row_with_a_partner_that_joins_nothing_is_not_sent():
    """500 subscriptions select a row and its partner in the middle table, but nothing at the other end of the chain."""
    deliveries, late = {}, {}
    for strategy in ("ref-sj:clu+", "auto", "long-sj"):
        table = joined(strategy, CHAIN, [(0, 9, 0, 9, 0, 9)] * 500)
        table.put("t", [{"id": 1, "d": 1, "e": 1, "f": 50}])
        told = [table.put("s", [{"id": 1, "b": 1, "d": 1, "c": 5}])]
        told += [table.put("r", [{"id": i, "b": 1, "e": 1, "a": i}]) for i in (1, 2)]
        deliveries[strategy] = sum(len(some.who("r")) for some in told)
        late[strategy] = table.put("t", [{"id": 2, "d": 1, "e": 1, "f": 5}])
    assert deliveries == {"ref-sj:clu+": 1_000, "auto": 1_000, "long-sj": 0}
    # Two rows of r, one of s and one of t, each to all.
    assert late["long-sj"].messages == {"r": 2, "s": 1, "t": 1} and len(late["long-sj"].rows) == 4 * 500


ENDS = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(sorted)
ranges_of = st.lists(
    st.tuples(ENDS, ENDS, ENDS).map(lambda ends: [end for pair in ends for end in pair]), min_size=1, max_size=6
)
rows_of = st.lists(
    st.tuples(st.sampled_from("rst"), st.integers(0, 2), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=14
)


def taking_part(source, ranges, tables):
    """(table, key, subscription) of all rows that are in an answer."""
    found = set()
    for r, s, t in product(*tables.values()):
        if r["b"] == s["b"] and s["d"] == t["d"] and (source == CHAIN or t["e"] == r["e"]):
            for who, (a, b, c, d, e, f) in enumerate(ranges):
                if a <= r["a"] <= b and c <= s["c"] <= d and e <= t["f"] <= f:
                    found |= {("r", r["id"], who), ("s", s["id"], who), ("t", t["id"], who)}
    return found


@pytest.mark.extended
@pytest.mark.parametrize("source", [CHAIN, TRIANGLE])
@settings(max_examples=60)
@given(ranges_of, rows_of)
def test_a_row_is_sent_when_it_begins_to_take_part(source, ranges, rows):
    table, tables = joined("long-sj", source, ranges), {"r": [], "s": [], "t": []}
    for key, (name, *values) in enumerate(rows):
        had = taking_part(source, ranges, tables)
        row = {"id": key} | dict(zip(COLUMNS[name], values, strict=True))
        tables[name].append(row)
        told = table.put(name, [row])
        assert sorted(told.rows) == sorted(taking_part(source, ranges, tables) - had)


@pytest.mark.extended
@settings(max_examples=60)
@given(ranges_of, rows_of, st.data())
def test_a_row_that_moves_brings_others_to_those_who_did_not_have_them(ranges, rows, data):
    table, tables = joined("long-sj", CHAIN, ranges), {"r": [], "s": [], "t": []}
    for key, (name, *values) in enumerate(rows):
        tables[name].append({"id": key} | dict(zip(COLUMNS[name], values, strict=True)))
        table.put(name, tables[name][-1:])
    name, *values = data.draw(st.sampled_from(rows))
    had = taking_part(CHAIN, ranges, tables)
    old = data.draw(st.sampled_from(tables[name]))
    new = old | {column: data.draw(st.integers(0, 2)) for column in COLUMNS[name]}
    tables[name][tables[name].index(old)] = new
    told = table.put(name, [new], [old])
    now = taking_part(CHAIN, ranges, tables)
    moved = {place for place in now if place[:2] == (name, old["id"])}
    assert sorted(told.rows) == sorted((now - had) | moved)
