"""State goes on under a catalog with more tables and columns, as if these had been there from the start."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.errors import CatalogError
from tidings.pipeline.door import Door
from tidings.pipeline.replica.replica import Replica
from tidings.sql import parse_catalog

BEFORE = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, kind TEXT, x DOUBLE); CREATE TABLE u (id BIGINT PRIMARY KEY, kind TEXT);"
)
AFTER = f"""
CREATE TABLE first (id BIGINT PRIMARY KEY, y DOUBLE);
{BEFORE}
ALTER TABLE t ADD COLUMN y DOUBLE;
ALTER TABLE t ADD COLUMN note TEXT;
"""
QUERIES = [
    "SELECT * FROM t WHERE x >= 1",
    "SELECT id, kind FROM t WHERE kind = 'a'",
    "SELECT * FROM t ORDER BY x LIMIT 2",
    "SELECT * FROM t WHERE moved(x) >= 1",
    "SELECT * FROM t JOIN u USING (kind) WHERE t.x < 2",
]
LATER = ["SELECT * FROM t WHERE y > 1", "SELECT note FROM t WHERE y IS NULL", "SELECT * FROM first WHERE y > 0"]

values = st.sampled_from([0.5, 1.5, 2.5, None])
rows = st.fixed_dictionaries({"id": st.integers(0, 3), "kind": st.sampled_from(["a", "b\\é"]), "x": values})
old_changes = st.one_of(
    st.tuples(st.just("t"), rows),
    st.tuples(st.just("u"), st.fixed_dictionaries({"id": st.integers(0, 2), "kind": st.sampled_from(["a", "b\\é"])})),
)
new_changes = st.one_of(
    old_changes,
    st.tuples(
        st.just("t"), st.builds(lambda row, y, note: {**row, "y": y, "note": note}, rows, values, st.text(max_size=3))
    ),
    st.tuples(st.just("first"), st.fixed_dictionaries({"id": st.integers(0, 2), "y": values})),
)


def lines(changes: list[tuple[str, dict[str, Any]]], first: int) -> list[bytes]:
    records = ({"table": table, "op": "upsert", "row": row} for table, row in changes)
    return [json.dumps({"seq": first + at, **record}).encode() for at, record in enumerate(records)]


@settings(max_examples=25)
@given(st.lists(old_changes, max_size=8), st.lists(new_changes, max_size=8))
def test_rows_from_before_are_as_rows_without_the_new_columns(
    before: list[tuple[str, dict[str, Any]]], after: list[tuple[str, dict[str, Any]]]
) -> None:
    catalog, wider = parse_catalog(BEFORE), parse_catalog(AFTER)
    assert wider.objection_to(catalog) is None
    replica, always = Replica(catalog, keeps_points=True), Replica(wider, keeps_points=True)
    for each, tables in ((replica, catalog), (always, wider)):
        door = Door(tables)
        for number, sql in enumerate(QUERIES):
            door.create(f"s{number}", sql, 0)
        each.apply(lines(before, 1), 0, door.take())
    grown = Replica(wider, keeps_points=True)
    grown.load(replica.dump())
    found = []
    for each in (grown, always):
        door = Door(wider)
        for number, sql in enumerate(LATER):
            door.create(f"later{number}", sql, len(before))
        told = each.apply(lines(after, len(before) + 1), len(before), door.take(), is_end=True)
        assert not told.refused
        found.append(b"".join(told.notifications.text()))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        ("CREATE TABLE t (id BIGINT PRIMARY KEY, kind TEXT, x DOUBLE);", "table 'u' is gone"),
        (BEFORE.replace("x DOUBLE", "x BIGINT"), "column 'x' of table 't' is gone, has moved or has another type"),
        (BEFORE.replace(", x DOUBLE", ""), "column 'x' of table 't' is gone"),
        (BEFORE.replace("kind TEXT, x DOUBLE", "x DOUBLE, kind TEXT"), "column 'kind' of table 't'"),
        (
            BEFORE.replace("PRIMARY KEY, kind TEXT);", ", kind TEXT PRIMARY KEY);"),
            "the key or the kind of rows of table 'u'",
        ),
    ],
)
def test_what_cannot_go_on_is_said(other: str, problem: str) -> None:
    found = parse_catalog(other).objection_to(parse_catalog(BEFORE))
    assert found is not None and problem in found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ALTER TABLE v ADD COLUMN y DOUBLE;", "there is no table 'v' before this"),
        ("ALTER TABLE t ADD COLUMN x DOUBLE;", "column 'x' is there already"),
        ("ALTER TABLE t DROP COLUMN x;", "ADD is expected"),
        ("ALTER TABLE t ADD COLUMN y BOX;", "column 'y' is BOX"),
        ("ALTER TABLE t ADD COLUMN y DOUBLE NOT NULL;", "; is expected"),
    ],
)
def test_other_alterations_are_refused(text: str, problem: str) -> None:
    with pytest.raises(CatalogError, match=problem):
        parse_catalog(BEFORE + text)
