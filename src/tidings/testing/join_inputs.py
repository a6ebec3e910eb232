"""Workloads of join subscriptions: few join values, so that rows find many partners, lose them and get them back."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tidings.model.catalog import Catalog
from tidings.model.types import ColumnType
from tidings.sql import parse_catalog
from tidings.testing.select_inputs import VALUES, literal, workload_strategy
from tidings.testing.workload import Workload

PAIR = """
CREATE TABLE stocks (symbol TEXT PRIMARY KEY, sector INT, per INT, price DOUBLE);
CREATE TABLE reviews (id INT PRIMARY KEY, symbol TEXT, sector INT, rating INT, author TEXT);
"""
CHAIN = """
CREATE TABLE r (id INT PRIMARY KEY, b INT, a INT);
CREATE TABLE s (id INT PRIMARY KEY, b INT, d TEXT, c INT);
CREATE TABLE t (d TEXT, id INT, b BIGINT, e INT, PRIMARY KEY (d, id));
"""
_FROM = {
    PAIR: (
        "stocks JOIN reviews USING (symbol)",
        "stocks JOIN reviews USING (symbol)",
        "reviews JOIN stocks USING (symbol, sector)",
        "stocks AS x JOIN reviews AS y ON x.sector = y.sector",
        "stocks JOIN reviews ON stocks.symbol = reviews.author AND reviews.rating = stocks.per",
    ),
    CHAIN: (
        "r JOIN s USING (b)",
        "r JOIN s USING (b) JOIN t USING (d)",
        "s JOIN r ON r.b = s.b JOIN t ON t.d = s.d",
        "r JOIN s USING (b) JOIN t USING (b)",
        "r JOIN s ON r.b = s.b JOIN t ON t.d = s.d AND t.b = r.b",
    ),
}
POOLS: dict[ColumnType, list[Any]] = {
    ColumnType.INT: [0, 1, 2, 3],
    ColumnType.BIGINT: [0, 1, 2],
    ColumnType.TEXT: ["prefix08", "prefix08a", "prefix08b", "a"],
    ColumnType.DOUBLE: [0.0, 1.0, -0.0, 2.5],
}
_RANGES = ["{0} >= {1}", "{0} <= {1}", "{0} BETWEEN {1} AND {2}", "{0} BETWEEN {1} AND {2}", "{0} > {1} AND {0} < {2}"]
_PINS = ["{0} = {1}", "{0} IN ({1}, {2})", "{0} = {1} AND {0} = {2}"]


@st.composite
def join_queries(draw: DrawFn, catalog_sql: str) -> str:
    """Two or three tables, up to two predicates on each, all columns or some."""
    catalog: Catalog = parse_catalog(catalog_sql)
    source = draw(st.sampled_from(_FROM[catalog_sql]))
    words = source.split()
    names = {
        w: words[i + 2] if words[i + 1 : i + 2] == ["AS"] else w for i, w in enumerate(words) if w in _names(catalog)
    }
    terms = []
    for table in catalog.tables:
        if table.name not in names:
            continue
        for column in draw(st.lists(st.sampled_from(table.columns), max_size=2, unique=True)):
            pool = POOLS.get(column.type, VALUES[column.type])
            values = [literal(column.type, draw(st.sampled_from(pool))) for _ in range(2)]
            form = draw(st.sampled_from(_RANGES * 3 + _PINS))
            terms.append(form.format(f"{names[table.name]}.{column.name}", *values))
    columns = [
        f"{names[table.name]}.{c}" for table in catalog.tables if table.name in names for c in table.column_names
    ]
    some = st.lists(st.sampled_from(columns), min_size=1, max_size=3, unique=True).map(", ".join)
    shown = draw(st.one_of(st.just("*"), some))
    where = f" WHERE {' AND '.join(terms)}" if terms else ""
    return f"SELECT {shown} FROM {source}{where}"


def _names(catalog: Catalog) -> set[str]:
    return {table.name for table in catalog.tables}


def join_workloads(*, changes_max: int = 40) -> SearchStrategy[Workload]:
    """Workloads of join subscriptions over two or three tables."""
    return st.sampled_from([PAIR, CHAIN]).flatmap(
        lambda sql: workload_strategy(sql, join_queries(sql), changes_max=changes_max, keys=4, pools=POOLS)
    )
