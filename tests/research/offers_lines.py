"""What the lines of all workloads of offers have in common, and checks of it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from constraint_sets import columns_of, condition_of, disjuncts
from tidings.sql import parse_catalog
from tidings.workloads.workload import WorkloadLines

Record = dict[str, Any]

every_size = pytest.mark.parametrize(
    ("rows", "subscriptions", "changes"),
    [(0, 300, 900), (7, 40, 400), (0, 50, 0), (9, 40, 3), (0, 0, 10), (1, 1, 90)],
)


def records(lines: Any) -> list[Record]:
    return [json.loads(line) for line in lines]


def check_subscriptions(workload: WorkloadLines, subscriptions: int) -> None:
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


def check_changes(workload: WorkloadLines, changes: int) -> None:
    """Inserts are of unknown ids, updates and deletes of known ones, where an offer that has expired is not known."""
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


def check_canonical(workload: WorkloadLines) -> None:
    for line in (*workload.subscriptions, *workload.changes):
        assert json.dumps(json.loads(line)).encode() == line


def check_constraints(workload: WorkloadLines) -> None:
    """The one table holds constraints."""
    (table,) = parse_catalog(workload.catalog_sql).tables
    assert table.rows == "constraints"
