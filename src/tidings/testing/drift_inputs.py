"""Workloads of drift subscriptions: values that meet thresholds exactly, come back, go through zero and out of bounds."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tidings.model.catalog import Catalog, Column, Table
from tidings.model.types import ColumnType
from tidings.sql import parse_catalog
from tidings.testing.select_inputs import VALUES, literal, workload_strategy
from tidings.testing.workload import Workload

CATALOGS = (
    "CREATE TABLE quotes (symbol TEXT PRIMARY KEY, price DOUBLE, note INT);",
    "CREATE TABLE quotes (symbol TEXT PRIMARY KEY, price DOUBLE, volume BIGINT, at TIMESTAMP);",
    "CREATE TABLE depth (market INT, price DOUBLE, tick INT, day DATE, PRIMARY KEY (day, market));",
)
POOLS: dict[ColumnType, list[Any]] = {
    ColumnType.DOUBLE: [
        *[10.0, 11.0, 12.0, 9.0, 8.0, 10.5, 9.5, 12.5, 15.0, 20.0, 5.0, 14.0] * 3,
        *[10.1, 10.2, 10.3, 0.1, 0.2, 0.3, 0.0, -0.0, -5.0, -10.0, 1e300, 5e-324, 1.7976931348623157e308],
    ],
    ColumnType.BIGINT: [0, 1, 2, 3, 5, 8, -3, 2**53, 2**53 + 1, 2**63 - 1],
    ColumnType.INT: [0, 1, 2, 3, 5, 8, -3],
}
_NUMBERS = {
    "moved": ["1", "2", "0.5", "1.5", "3", "5", "0.1", "0.2", "1e-300", "1e300"],
    "moved_percent": ["10", "50", "20", "5", "100", "0.001", "250"],
    "moved_ratio": ["1.5", "2", "1.1", "1.25", "1.0000000001", "1e10"],
}
_RANGES = {
    "moved": ["1 AND 2", "0.5 AND 3", "2 AND 2", "1.4 AND 1.6", "0.1 AND 0.3"],
    "moved_percent": ["5 AND 20", "9 AND 11", "50 AND 50", "0.001 AND 250"],
    "moved_ratio": ["1.1 AND 1.3", "1.5 AND 2.5", "2 AND 2", "1.0000000001 AND 1.01"],
}
_INTERVALS = ["INTERVAL '1 microsecond'", "INTERVAL '1 second'", "INTERVAL '1 day'", "INTERVAL '30 days'"]


@st.composite
def movements(draw: DrawFn, table: Table) -> str:
    """A movement predicate, with an option of silence now and then."""
    numbers = [column for column in table.columns if column.type in POOLS and column.name not in table.key]
    column = draw(st.sampled_from([numbers[0], *numbers]))
    kind = draw(st.sampled_from(["moved", "moved", *_NUMBERS]))
    if draw(st.integers(0, 3)) == 0:
        moved = f"{kind}({column.name}) BETWEEN {draw(st.sampled_from(_RANGES[kind]))}"
    else:
        moved = f"{kind}({column.name}) >= {draw(st.sampled_from(_NUMBERS[kind]))}"
    clocks = [other for other in table.columns if _is_clock(other) and other is not column]
    if not clocks or draw(st.integers(0, 2)):
        return moved
    clock = draw(st.sampled_from(clocks))
    is_time = clock.type in (ColumnType.TIMESTAMP, ColumnType.DATE)
    least = draw(st.sampled_from(_INTERVALS)) if is_time else str(draw(st.integers(1, 3)))
    return f"({moved} OR silent_for({clock.name}) >= {least})"


def _is_clock(column: Column) -> bool:
    return column.type in (ColumnType.TIMESTAMP, ColumnType.DATE, ColumnType.BIGINT, ColumnType.INT)


@st.composite
def drift_queries(draw: DrawFn, catalog: Catalog) -> str:
    """Subscriptions that pin the whole key, a part of it or nothing, some with IN, some that contradict themselves."""
    (table,) = catalog.tables
    terms = [draw(movements(table))]
    for name in table.key:
        type = table.column(name).type
        values = [literal(type, value) for value in VALUES[type][:3]]
        form = draw(st.sampled_from(["{0} = {1}"] * 6 + ["{0} IN ({1}, {2})", "{0} = {1} AND {0} = {2}", "", ""]))
        terms.append(form.format(name, draw(st.sampled_from(values)), draw(st.sampled_from(values))))
    names = st.lists(st.sampled_from(table.column_names), min_size=1, max_size=3, unique=True)
    shown = draw(st.one_of(st.just(["*"]), st.just(["*"]), names))
    condition = " AND ".join(term for term in terms if term)
    return f"SELECT {', '.join(shown)} FROM {table.name} WHERE {condition}"


def drift_workloads(*, changes_max: int = 40) -> SearchStrategy[Workload]:
    """Workloads of drift subscriptions on few rows that move a lot."""
    return st.sampled_from(CATALOGS).flatmap(
        lambda sql: workload_strategy(
            sql, drift_queries(parse_catalog(sql)), changes_max=changes_max, keys=2, pools=POOLS
        )
    )
