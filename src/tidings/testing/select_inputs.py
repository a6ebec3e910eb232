"""Hypothesis strategies for workloads. Values are few, so that ties, equal ends and rows that come back are the rule.

A family has its own strategy of queries and gets whole workloads from `workload_strategy`: subscriptions that are created,
dropped and created again in mid-stream, and changes with gaps in seqs, nulls, deletes, repeated inserts and, rarely, invalid
records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tidings.model.catalog import Catalog, Column, Table
from tidings.model.types import ColumnType
from tidings.sql import parse_catalog
from tidings.testing.workload import Record, Workload

SELECT_CATALOG = """
CREATE TABLE things (
    id BIGINT PRIMARY KEY, kind TEXT, name TEXT, size BIGINT, small INT, price DOUBLE,
    is_open BOOLEAN, day DATE, moment TIMESTAMP, data BINARY
);
CREATE TABLE places (code TEXT, part INT, height DOUBLE, label TEXT, PRIMARY KEY (code, part));
"""

SMALL_CATALOGS = (
    "CREATE TABLE texts (id INT PRIMARY KEY, kind TEXT, name TEXT);",
    "CREATE TABLE numbers (id INT PRIMARY KEY, kind INT, price DOUBLE);",
)
"""Few columns, so that one query meets many kinds of changes."""

LONG_CATALOGS = (
    "CREATE TABLE notes (id INT PRIMARY KEY, price DOUBLE, body TEXT);",
    "CREATE TABLE notes (id INT PRIMARY KEY, kind BOOLEAN, price DOUBLE, body TEXT, data BINARY);",
)

LONG_POOLS: dict[ColumnType, list[Any]] = {
    ColumnType.DOUBLE: [0.0, 1.0, 1.5, 2.0],
    # Most are long, which differ at the end only; the last two are just short enough and just long enough.
    ColumnType.TEXT: ["short", "long " * 24 + "a", "long " * 24 + "b", "\u00fc" * 50, "x" * 64, "x" * 65],
    ColumnType.BINARY: ["AAE=", "AAEC" * 40, "AAED" * 40],
}
"""Values for columns that no predicate need look at, long enough to be treated apart."""

VALUES: dict[ColumnType, list[Any]] = {
    ColumnType.BIGINT: [0, 1, 2, 3, -1, 2**53 + 1, 2**63 - 1, -(2**63)],
    ColumnType.INT: [0, 1, 2, -1, 2**31 - 1, -(2**31)],
    ColumnType.DOUBLE: [0.0, 1.0, 1.5, 2.0, -1.5, -0.0, 5e-324, 1.7976931348623157e308, 2],
    # Many share their first eight bytes, which are all that a code holds.
    ColumnType.TEXT: ["prefix08", "prefix08a", "prefix08b", "", "a", "prefix09", "it's", "ü€𝄞", "prefix0ü"],
    ColumnType.BOOLEAN: [False, True],
    ColumnType.DATE: ["2024-02-28", "2024-02-29", "2024-03-01", "0001-01-01", "9999-12-31"],
    ColumnType.TIMESTAMP: [
        "2024-03-01T00:00:00",
        "2024-03-01T00:00:00.000001",
        "2024-02-29T23:59:59.999999",
        "2024-03-01T01:00:00+01:00",
        "1969-12-31T23:59:59Z",
    ],
    ColumnType.BINARY: ["", "AAE=", "/w=="],
}
"""Values of each type in their JSON form; early ones are drawn more often."""

IDS = ["a", "b", "a/b", "ü", "s10", "s9"]


def _weighted(pool: list[Any]) -> list[Any]:
    """The pool with its first three values four times as often as all others together."""
    return pool[:3] * (4 * len(pool) // 3) + pool


_LIKELY = {type: _weighted(pool) for type, pool in VALUES.items()}


def values(type: ColumnType) -> SearchStrategy[Any]:
    """A value of the type in its JSON form, never null; mostly one of the first three."""
    return st.sampled_from(_LIKELY[type])


def nullable(type: ColumnType, pool: list[Any] | None = None) -> SearchStrategy[Any]:
    """A value of the type, or one of the pool if that is given, or null now and then."""
    likely = _LIKELY[type] if pool is None else pool * 8
    return st.sampled_from([*likely, *[None] * (len(likely) // 8)])


def literal(type: ColumnType, value: Any) -> str:
    """A value as SQL."""
    if type in (ColumnType.TEXT, ColumnType.DATE, ColumnType.TIMESTAMP):
        return "'" + str(value).replace("'", "''") + "'"
    return str(value).upper() if type is ColumnType.BOOLEAN else repr(value)


_PREDICATES = (
    # Each with the number of its values. Wide ones come more often, for a query that no row satisfies says little.
    *[("{0} >= {1}", 1), ("{0} <= {1}", 1), ("{0} > {1}", 1), ("{0} < {1}", 1)] * 2,
    *[("{0} = {1}", 1), ("{0} IN ({1}, {2})", 2), ("{0} BETWEEN {1} AND {2}", 2)] * 3,
    *[("{0} IN ({1}, {2}, {3})", 3)] * 6,
    ("{0} > {1} AND {0} < {2}", 2),
    ("{0} >= {1} AND {0} < {2} AND {0} <= {3}", 3),
    ("{0} IN ({1}, {2}) AND {0} >= {3}", 3),
    ("{0} = {1} AND {0} = {2}", 2),
)


@st.composite
def predicates(draw: DrawFn, column: Column) -> str:
    """A predicate on a column: equality, IN, open, half-open and closed ranges, empty ones and contradictions included."""
    form, count = draw(st.sampled_from(_PREDICATES))
    literals = [literal(column.type, draw(values(column.type))) for _ in range(count)]
    return form.format(column.name, *literals)


@st.composite
def conditions(draw: DrawFn, table: Table) -> str:
    """A WHERE clause on up to three columns of the table, or none at all."""
    comparable = [column for column in table.columns if column.type.is_comparable]
    # Predicates on the key name single rows; those on other columns say more.
    others = [column for column in comparable if column.name not in table.key]
    if len(others) <= 2 and draw(st.booleans()):
        chosen = others
    else:
        count = draw(st.sampled_from([2, 1, 2, 0, 3]))
        drawn = [draw(st.sampled_from([*comparable, *others * 3])) for _ in range(count)]
        chosen = list({column.name: column for column in drawn}.values())
    terms = [draw(predicates(column)) for column in chosen]
    return f" WHERE {' AND '.join(terms)}" if terms else ""


_COMPARISONS = (
    # Of boolean expressions, each with the number of its values.
    *[("{0} = {1}", 1), ("{0} <> {1}", 1), ("{0} < {1}", 1), ("{0} >= {1}", 1)] * 2,
    *[("{0} IS NULL", 0), ("{0} IS NOT NULL", 0)] * 2,
    ("{0} IN ({1}, {2})", 2),
    ("{0} NOT IN ({1}, {2})", 2),
    ("{0} BETWEEN {1} AND {2}", 2),
    ("{0} NOT BETWEEN {1} AND {2}", 2),
)
_PATTERNS = ("{} LIKE '{}%'", "{} NOT LIKE '{}%'", "{} LIKE '{}'")
_PREFIXES = ("prefix08", "prefix0", "p", "", "prefix08a", "ü")


@st.composite
def _comparisons(draw: DrawFn, columns: list[Column]) -> str:
    """One comparison of any kind that select serves."""
    column = draw(st.sampled_from(columns))
    if column.type is ColumnType.TEXT and draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(_PATTERNS)).format(column.name, draw(st.sampled_from(_PREFIXES)))
    form, count = draw(st.sampled_from(_COMPARISONS))
    return form.format(column.name, *(literal(column.type, draw(values(column.type))) for _ in range(count)))


def boolean_conditions(table: Table) -> SearchStrategy[str]:
    """A WHERE clause of comparisons on up to three columns, joined and nested by AND, OR and NOT."""
    comparable = [column for column in table.columns if column.type.is_comparable]

    def nested(columns: list[Column]) -> SearchStrategy[str]:
        return st.recursive(
            _comparisons(columns),
            lambda inner: st.one_of(
                st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' AND '.join(parts)})"),
                st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' OR '.join(parts)})"),
                inner.map("NOT ({})".format),
            ),
            max_leaves=5,
        )

    chosen = st.lists(st.sampled_from(comparable), min_size=1, max_size=3)
    return chosen.flatmap(nested).map(" WHERE {}".format)


@st.composite
def select_queries(draw: DrawFn, catalog: Catalog) -> str:
    table = draw(st.sampled_from([catalog.tables[0], *catalog.tables]))
    names = st.lists(st.sampled_from(table.column_names), min_size=1, max_size=3, unique=True)
    shown = draw(st.one_of(st.just(["*"]), names))
    condition = draw(st.one_of(conditions(table), boolean_conditions(table)))
    return f"SELECT {', '.join(shown)} FROM {table.name}" + condition


@st.composite
def change_records(
    draw: DrawFn,
    catalog: Catalog,
    *,
    keys: int = 4,
    length_max: int = 25,
    pools: Mapping[ColumnType, list[Any]] | None = None,
) -> list[Record]:
    """Changes of all value tables, in sequence with gaps. One in eight ignores the current rows and may contradict them.

    pools: values that replace the usual ones of columns outside the key.
    """
    rows: dict[tuple[str, tuple[Any, ...]], dict[str, Any]] = {}
    records: list[Record] = []
    seq = 0
    tables = [table for table in catalog.tables if table.rows == "values"]
    for _ in range(draw(st.integers(min(12, length_max), length_max))):
        is_wild = draw(st.integers(0, 7)) == 7
        table = draw(st.sampled_from([tables[0], *tables]))
        key_pools = {name: VALUES[table.column(name).type][: keys if len(table.key) == 1 else 2] for name in table.key}
        key = {name: draw(st.sampled_from(pool)) for name, pool in key_pools.items()}
        known = rows.get((table.name, tuple(key.values())))
        ops = ["upsert", "insert"] if known is None else ["update", "update", "update", "upsert", "delete"]
        op = draw(st.sampled_from(["insert", "update", "upsert", "delete"] if is_wild else ops))
        seq += draw(st.sampled_from([1, 1, 2, 5, 0] if is_wild else [1, 1, 2, 5]))
        row = dict(key) if op == "delete" and draw(st.booleans()) else draw(_rows(table, key, known, pools or {}))
        records.append({"seq": max(seq, 1), "table": table.name, "op": op, "row": row})
        if op == "delete":
            rows.pop((table.name, tuple(key.values())), None)
        else:
            rows[table.name, tuple(key.values())] = row
    return records


@st.composite
def _rows(
    draw: DrawFn,
    table: Table,
    key: dict[str, Any],
    known: dict[str, Any] | None,
    pools: Mapping[ColumnType, list[Any]],
) -> dict[str, Any]:
    """A full row: a new one, or the known one with a column or two altered, or not altered at all."""
    others = [column for column in table.columns if column.name not in key]
    if known is None or draw(st.integers(0, 3)) == 0:
        redrawn, row = others, {}
    else:
        redrawn, row = [draw(st.sampled_from(others)) for _ in range(draw(st.integers(0, 2)))], known
    fresh = {column.name: draw(nullable(column.type, pools.get(column.type))) for column in redrawn}
    merged = {**row, **fresh, **key}
    return {name: merged[name] for name in table.column_names}


@st.composite
def subscription_records(
    draw: DrawFn, queries: SearchStrategy[str], *, seq_max: int, lives_max: int = 3
) -> list[Record]:
    """Subscriptions with up to three lives each: created, dropped, and created again, perhaps at the same moment."""
    records: list[Record] = []
    for id in draw(st.lists(st.sampled_from(IDS), min_size=3, unique=True)):
        after = draw(st.sampled_from([*[0] * seq_max, *range(seq_max + 1)]))
        for _ in range(draw(st.integers(1, lives_max))):
            records.append({"id": id, "sql": draw(queries), "after": after})
            if draw(st.integers(0, 2)):
                break
            after += draw(st.sampled_from([0, 1, 2, 4, 8, 16]))
            records.append({"id": id, "drop": True, "after": after})
            after += draw(st.integers(0, 3))
    return records


def workload_strategy(
    catalog_sql: str,
    queries: SearchStrategy[str],
    *,
    changes_max: int = 25,
    keys: int = 4,
    pools: Mapping[ColumnType, list[Any]] | None = None,
) -> SearchStrategy[Workload]:
    """Workloads of any family: these queries over changes of the catalog's tables."""
    catalog = parse_catalog(catalog_sql)

    @st.composite
    def workloads(draw: DrawFn) -> Workload:
        changes = draw(change_records(catalog, length_max=changes_max, keys=keys, pools=pools))
        subscriptions = draw(subscription_records(queries, seq_max=changes[-1]["seq"] + 2))
        return Workload(catalog_sql, subscriptions, changes)

    return workloads()


def select_workloads(*, changes_max: int = 25) -> SearchStrategy[Workload]:
    """Workloads of select subscriptions: over tables with all types, over small ones where more happens, with long values."""
    plain = st.sampled_from([*SMALL_CATALOGS, SELECT_CATALOG]).flatmap(
        lambda sql: workload_strategy(sql, select_queries(parse_catalog(sql)), changes_max=changes_max)
    )
    return st.one_of(plain, plain, long_value_workloads(changes_max=changes_max))


def long_value_workloads(*, changes_max: int = 25) -> SearchStrategy[Workload]:
    """Select subscriptions over few rows with long values; most show all columns and want prices that rows cross."""
    price = st.sampled_from(LONG_POOLS[ColumnType.DOUBLE])
    ranges = st.one_of(
        price.map("price >= {}".format),
        price.map("price <= {}".format),
        st.tuples(price, price).map(lambda ends: f"price BETWEEN {min(ends)} AND {max(ends)}"),
    )
    of_a_kind = st.one_of(ranges, ranges.map("kind AND {}".format), st.just("NOT kind"))

    def workloads(sql: str) -> SearchStrategy[Workload]:
        conditions = of_a_kind if "kind" in sql else ranges
        whole = conditions.map("SELECT * FROM notes WHERE {}".format)
        queries = st.one_of(whole, whole, whole, select_queries(parse_catalog(sql)))
        return workload_strategy(sql, queries, changes_max=changes_max, keys=2, pools=LONG_POOLS)

    return st.sampled_from(LONG_CATALOGS).flatmap(workloads)
