"""Workloads of top-k subscriptions: small numbers, so that ranks and positions tie and answers are often short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tidings.model.catalog import Catalog, Column
from tidings.model.types import ColumnType
from tidings.sql import parse_catalog
from tidings.testing.select_inputs import VALUES, literal, workload_strategy
from tidings.testing.workload import Workload

CATALOGS = (
    "CREATE TABLE stocks (id INT PRIMARY KEY, kind TEXT, risk INT, per DOUBLE, note INT);",
    "CREATE TABLE stocks (symbol TEXT PRIMARY KEY, risk DOUBLE, per BIGINT, at TIMESTAMP);",
    "CREATE TABLE stocks (per INT, symbol TEXT, market INT, day DATE, kind INT, PRIMARY KEY (symbol, market));",
)
POOLS: dict[ColumnType, list[Any]] = {
    ColumnType.INT: [0, 1, 2, 3, 4, 5, -1],
    ColumnType.BIGINT: [0, 1, 2, 3, 2**53, 2**53 + 1, -1],
    ColumnType.DOUBLE: [0.0, 1.0, 1.5, 2.0, 3.0, -0.0, -1.0, 5e-324, 1.7976931348623157e308],
    ColumnType.TEXT: ["a", "b", "prefix08a", "prefix08b"],
}
_RANGES = ["{0} >= {1}", "{0} <= {1}", "{0} BETWEEN {1} AND {2}", "{0} > {1} AND {0} < {2}", "{0} BETWEEN {1} AND {2}"]


RANGES = (1, 1, 1, 1, 2, 2, 3, 0)
"""Numbers of range columns of a query; each is drawn as often as it is there."""


@st.composite
def _range_terms(draw: DrawFn, column: Column, *, is_one_of_many: bool) -> str:
    """A range of a column; where there are others, mostly a wide one, for few rows satisfy all."""
    values = [literal(column.type, value) for value in POOLS.get(column.type, VALUES[column.type])]
    middle = len(values) // 2 if is_one_of_many and draw(st.integers(0, 3)) else 0
    first, last = draw(st.sampled_from(values[: len(values) - middle])), draw(st.sampled_from(values[middle:]))
    return draw(st.sampled_from(_RANGES)).format(column.name, first, last)


@st.composite
def topk_queries(draw: DrawFn, catalog: Catalog, *, ranges: Sequence[int] = RANGES) -> str:
    """ORDER BY one column, with ranges of others or of the same, an equality, or neither."""
    (table,) = catalog.tables
    numbers = [column for column in table.columns if not column.type.is_lossy]
    rank, count = draw(st.sampled_from(numbers)), draw(st.sampled_from(ranges))
    ranged = draw(st.lists(st.sampled_from(numbers), min_size=count, max_size=count, unique=True))
    terms = [draw(_range_terms(column, is_one_of_many=count > 1)) for column in ranged]
    pinned = [column for column in table.columns if column not in ranged]
    if draw(st.integers(0, 2)) == 0:
        column = draw(st.sampled_from(pinned))
        values = [literal(column.type, value) for value in POOLS.get(column.type, VALUES[column.type])[:3]]
        form = draw(st.sampled_from(["{0} = {1}", "{0} = {1}", "{0} IN ({1}, {2})", "{0} = {1} AND {0} = {2}"]))
        terms.append(form.format(column.name, draw(st.sampled_from(values)), draw(st.sampled_from(values))))
    names = st.lists(st.sampled_from(table.column_names), min_size=1, max_size=3, unique=True)
    shown = draw(st.one_of(st.just(["*"]), names))
    where = f" WHERE {' AND '.join(terms)}" if terms else ""
    direction = draw(st.sampled_from(["", " ASC", " DESC", " DESC"]))
    limit = draw(st.sampled_from([1, 2, 2, 3, 4, 20]))
    return f"SELECT {', '.join(shown)} FROM stocks{where} ORDER BY {rank.name}{direction} LIMIT {limit}"


def topk_workloads(*, changes_max: int = 40, ranges: Sequence[int] = RANGES) -> SearchStrategy[Workload]:
    """Workloads of top-k subscriptions on a handful of rows that overtake each other."""
    return st.sampled_from(CATALOGS).flatmap(
        lambda sql: workload_strategy(
            sql, topk_queries(parse_catalog(sql), ranges=ranges), changes_max=changes_max, keys=6, pools=POOLS
        )
    )
