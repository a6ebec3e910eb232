"""Workloads of offers: constraints on both sides, over few attributes and values, so that most pairs nearly match."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tidings.model.catalog import Column, Table
from tidings.model.errors import SqlError
from tidings.model.types import ColumnType
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog
from tidings.testing.select_inputs import VALUES, literal, subscription_records
from tidings.testing.workload import Record, Workload

OFFERS_CATALOGS = (
    "CREATE TABLE market (topic TEXT, lot BIGINT, price DOUBLE) WITH (rows = 'constraints');",
    "CREATE TABLE market (n INT, m INT) WITH (rows = 'constraints');\n"
    "CREATE TABLE stocks (symbol TEXT PRIMARY KEY, price DOUBLE);",
    "CREATE TABLE market (kind TEXT, name TEXT, day DATE, is_open BOOLEAN) WITH (rows = 'constraints');",
    "CREATE TABLE market (n INT, area BOX, spot POINT) WITH (rows = 'constraints');",
    "CREATE TABLE market (n INT, kind TEXT, moment TIMESTAMP) WITH (rows = 'constraints', matching = 'classic');",
)
UNKEPT = (
    "CREATE TABLE market (n INT, kind TEXT) WITH (rows = 'constraints', keep = 'no');\n"
    "CREATE TABLE stocks (symbol TEXT PRIMARY KEY, price DOUBLE);",
    "CREATE TABLE market (n INT, area BOX, spot POINT) WITH (rows = 'constraints', matching = 'classic', keep = 'no');",
)
"""Of publications that nobody keeps: what a subscription is told does not add up to an answer."""

_NUMBERS = [0, 1, 2, 3, 4, -1]
_POOLS: dict[ColumnType, list[Any]] = {
    ColumnType.BIGINT: [*_NUMBERS, 2**53 + 1, 2**63 - 1, -(2**63)],
    ColumnType.INT: [*_NUMBERS, 2**31 - 1],
    ColumnType.DOUBLE: [0.0, 1.0, 1.5, 2.0, -1.5, 3],
}


@st.composite
def _predicates(draw: DrawFn, column: Column) -> str:
    type, name = column.type, column.name
    if type.is_geometric:
        return draw(_places(column))
    values = st.sampled_from(_POOLS.get(type, VALUES.get(type, [])))
    one = literal(type, draw(values))
    if type is ColumnType.BOOLEAN:
        return f"{name} {draw(st.sampled_from(['=', '<>']))} {one}"
    kind = draw(st.sampled_from(["=", "=", "<", "<=", ">", ">=", "<>", "between", "in", "like"]))
    if kind == "between":
        two = literal(type, draw(values))
        ends = sorted([one, two]) if type is ColumnType.TEXT else [one, two]
        return f"{name} BETWEEN {ends[0]} AND {ends[1]}"
    if kind == "in":
        others = draw(st.lists(values, min_size=1, max_size=3, unique=True))
        return f"{name} IN ({', '.join(literal(type, value) for value in others)})"
    if kind == "like":
        return (
            f"{name} LIKE '{draw(st.sampled_from(['prefix', 'prefix08', 'a']))}%'"
            if type.is_lossy
            else f"{name} = {one}"
        )
    return f"{name} {kind} {one}"


@st.composite
def _places(draw: DrawFn, column: Column) -> str:
    corner = st.sampled_from([0.0, 1.0, 2.0, 3.0])
    x, y = draw(corner), draw(corner)
    size = st.sampled_from([1.0, 2.0])
    box = f"box({x}, {y}, {x + draw(size)}, {y + draw(size)})"
    if column.type is ColumnType.POINT:
        return draw(st.sampled_from([f"{column.name} = point({x}, {y})", f"within({column.name}, {box})"]))
    relation = draw(st.sampled_from(["=", "=", "overlaps", "contains", "within"]))
    return f"{column.name} = {box}" if relation == "=" else f"{relation}({column.name}, {box})"


@st.composite
def constraints(draw: DrawFn, table: Table) -> str:
    """A condition on the attributes of a table; rarely one that nothing satisfies."""
    columns = draw(st.lists(st.sampled_from(table.attributes), min_size=1, max_size=3, unique=True))
    parts = [draw(_predicates(column)) for column in columns]
    shape = draw(st.sampled_from(["and", "and", "and", "or", "mixed", "not"]))
    if shape == "or":
        return " OR ".join(parts)
    if shape == "mixed":
        other = draw(_predicates(draw(st.sampled_from(table.attributes))))
        return f"({' AND '.join(parts)}) OR {other}"
    if shape == "not" and not any(column.type.is_geometric for column in columns):
        return f"NOT ({' OR '.join(parts)})"
    return " AND ".join(parts)


@st.composite
def _queries(draw: DrawFn, table: Table) -> str:
    shown = draw(st.sampled_from(["*", "*", "*", "id", '"where"']))
    sql = f"SELECT {shown} FROM {table.name} WHERE {draw(constraints(table))}"
    ranked = [column for column in table.attributes if column.type.is_comparable and not column.type.is_lossy]
    if ranked and table.constraints.is_kept and draw(st.integers(0, 3)) == 0:
        direction = draw(st.sampled_from(["", " ASC", " DESC"]))
        return f"{sql} ORDER BY {draw(st.sampled_from(ranked)).name}{direction} LIMIT {draw(st.integers(1, 3))}"
    return sql


@st.composite
def _changes(draw: DrawFn, table: Table, has_others: bool, changes_max: int, has_times: bool) -> list[Record]:
    known: dict[str, str] = {}
    records: list[Record] = []
    seq = 0
    for _ in range(draw(st.integers(min(10, changes_max), changes_max))):
        seq += draw(st.sampled_from([1, 1, 1, 2, 5]))
        if has_others and draw(st.integers(0, 4)) == 0:
            row = {"symbol": draw(st.sampled_from(["A", "B"])), "price": 1.0}
            records.append({"seq": seq, "table": "stocks", "op": "upsert", "row": row})
            continue
        id = draw(st.sampled_from(["p1", "p2", "p3", "p4", "ü"]))
        is_wild = draw(st.integers(0, 9)) == 0
        ops = ["insert", "upsert"] if id not in known else ["update", "update", "upsert", "delete"]
        op = draw(st.sampled_from(["insert", "update", "upsert", "delete"] if is_wild else ops))
        record: Record = {"seq": seq, "table": table.name, "op": op, "id": id}
        if op == "delete":
            known.pop(id, None)
        else:
            is_same = id in known and draw(st.integers(0, 5)) == 0
            record["where"] = known[id] = known[id] if is_same else draw(constraints(table))
            life = draw(st.sampled_from([None, None, None, 0, 1, 3, 8]))
            if life is not None and table.constraints.is_kept:
                record["expires"] = max(1, seq + life)
                if has_times and draw(st.booleans()):
                    record["expires"] = f"2024-01-01T00:00:{min(seq + life, 59):02d}"
        if has_times and draw(st.integers(0, 2)) == 0:
            record["time"] = f"2024-01-01T00:00:{min(seq, 59):02d}"
        records.append(record)
    return records


def offers_workloads(
    *, changes_max: int = 25, has_times: bool = False, catalogs: Sequence[str] = OFFERS_CATALOGS
) -> SearchStrategy[Workload]:
    """Offers that come, change, expire and go, and subscriptions to them. has_times: some expire at a time."""

    @st.composite
    def workloads(draw: DrawFn) -> Workload:
        sql = draw(st.sampled_from(catalogs))
        catalog = parse_catalog(sql)
        table = catalog.table("market")
        changes = draw(_changes(table, len(catalog.tables) > 1, changes_max, has_times))
        valid = [record for record in changes if "where" not in record or _is_possible(sql, record["where"])]
        queries = _queries(table).filter(lambda query: _is_possible_query(sql, query))
        subscriptions = draw(subscription_records(queries, seq_max=changes[-1]["seq"] + 2))
        return Workload(sql, subscriptions, valid or changes[:1])

    return workloads()


def _is_possible(catalog_sql: str, where: str) -> bool:
    return _is_possible_query(catalog_sql, f"SELECT * FROM market WHERE {where}")


def _is_possible_query(catalog_sql: str, query: str) -> bool:
    """Whether a query is accepted: it is neither contradictory nor has too many disjuncts."""
    try:
        _door(catalog_sql).place(query)
    except SqlError:
        return False
    return True


@lru_cache
def _door(catalog_sql: str) -> Door:
    return Door(parse_catalog(catalog_sql))
