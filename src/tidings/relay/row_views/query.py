"""Row views: selections of one table by ranges of columns, with the columns to show.

    SELECT name, price FROM stocks WHERE sector = 'steel' AND price >= 2 AND price < 5

A range is kept half-open, by what values are compared by (`order_key`): [start, stop). Open and closed ends come to the same
thing that way, as every value has a next one: of a text, the text with a zero character behind it. So `price > 2` on whole
numbers equals `price >= 3`, and one condition implies another exactly if its range is within the other's. Null is in no range.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from tidings.model.catalog import Catalog, Column
from tidings.model.codes import CODE_MAX, CODE_MIN, code_of
from tidings.model.errors import SqlError
from tidings.model.types import ColumnType
from tidings.relay.message import Part, Parts
from tidings.relay.row_views.document import OrderKey, RowDocument, order_key
from tidings.sql.compiler import Compiler, Statement
from tidings.sql.constants import Interval

if TYPE_CHECKING:
    from tidings.relay.row_views.derive import RowDerivation

_GREATEST = sys.float_info.max
_ENDS: dict[ColumnType, tuple[OrderKey, OrderKey | None]] = {
    ColumnType.TEXT: ("", None),
    ColumnType.BIGINT: (CODE_MIN, CODE_MAX + 1),
    ColumnType.INT: (-(2**31), 2**31),
    ColumnType.BOOLEAN: (0, 2),
    ColumnType.DOUBLE: (code_of(ColumnType.DOUBLE, -_GREATEST), code_of(ColumnType.DOUBLE, _GREATEST) + 1),
    ColumnType.DATE: (code_of(ColumnType.DATE, dt.date.min), code_of(ColumnType.DATE, dt.date.max) + 1),
    ColumnType.TIMESTAMP: (
        code_of(ColumnType.TIMESTAMP, dt.datetime.min),
        code_of(ColumnType.TIMESTAMP, dt.datetime.max) + 1,
    ),
}
"""Start and stop of the range of all values of a type."""
_HINT = "a view over rows has one table and for each column one range: =, <, <=, >, >= and BETWEEN, joined by AND"


ROWS = "rows"
"""The kind of a query, beside its text, where queries are sent to others."""


def after(key: OrderKey) -> OrderKey:
    """What follows next."""
    return key + "\0" if isinstance(key, str) else key + 1


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """The values that a column may have: those from `start` on that are below `stop`, and not null.

    Where a side has no bound, the end is that of the column's type, so that equal ranges are equal values. stop: None for texts
    without an upper bound, as there is no greatest text.
    """

    column: Column
    start: OrderKey
    stop: OrderKey | None

    @property
    def has_lower(self) -> bool:
        return self.start != _ENDS[self.column.type][0]

    @property
    def has_upper(self) -> bool:
        return self.stop != _ENDS[self.column.type][1]

    @property
    def is_empty(self) -> bool:
        return self.stop is not None and self.stop <= self.start  # type: ignore[operator] # both of one type

    @property
    def is_pinned(self) -> bool:
        """Whether there is a single value."""
        return self.stop == after(self.start)

    def holds(self, key: OrderKey | None) -> bool:
        """key: of the value; None if it is null."""
        return key is not None and self.start <= key and (self.stop is None or key < self.stop)  # type: ignore[operator]


@dataclass(frozen=True)
class RowQuery:
    """A view over rows. Its message has one part: the ids of rows, and the texts of the columns that are `carried`.

    columns: as selected, in order. ranges: in the order of the table's columns, each column once; none if `is_empty`.
    is_empty: no row can satisfy the conditions.
    """

    table: str
    key: tuple[Column, ...]
    columns: tuple[Column, ...]
    ranges: tuple[ColumnRange, ...] = ()
    is_empty: bool = False

    @cached_property
    def range_of(self) -> dict[str, ColumnRange]:
        return {range.column.name: range for range in self.ranges}

    @cached_property
    def carried(self) -> tuple[str, ...]:
        """Columns that messages have, by name: the selected ones, without those of the key, which ids are made of, and without
        those that can have one value only."""
        known = {column.name for column in self.key}
        known |= {range.column.name for range in self.ranges if range.is_pinned}
        return () if self.is_empty else tuple(sorted({column.name for column in self.columns} - known))

    @property
    def described(self) -> tuple[str, str]:
        return ROWS, msgspec.json.encode(self).decode()

    def match(self, document: object) -> Parts:
        """None for documents that are no rows."""
        rows = document.tables.get(self.table) if isinstance(document, RowDocument) else None
        if rows is None or self.is_empty:
            return None
        chosen: Sequence[int] = range(len(rows.ids))
        for each in self.ranges:
            keys = rows.order_keys(each.column.name)
            chosen = [row for row in chosen if each.holds(keys[row])]
        if not chosen:
            return None
        columns = [rows.texts(name) for name in self.carried]
        return (Part([rows.ids[row] for row in chosen], tuple([texts[row] for row in chosen] for texts in columns)),)

    def derivation(self, sources: Sequence[object]) -> RowDerivation | None:
        """None if the sources are no rewriting of this query."""
        from tidings.relay.row_views.derive import derivation  # needs this module

        queries = [source for source in sources if isinstance(source, RowQuery)]
        return derivation(self, queries) if len(queries) == len(sources) else None

    def rows(self, parts: Parts) -> list[tuple[Any, ...]]:
        """The distinct rows, as JSON has their values, in the order of the select list; sorted by their JSON texts."""
        from tidings.relay.row_views.derive import result_rows

        return result_rows(self, parts)


def carried_query(query: RowQuery) -> Hashable:
    """Equal for views whose messages are equal: they can feed each other as they are."""
    return query.table, query.ranges, query.is_empty, query.carried


def read_row_query(text: str) -> RowQuery:
    """The inverse of `RowQuery.described`."""
    return msgspec.json.decode(text, type=RowQuery)


def parse_row_query(sql: str, catalog: Catalog) -> RowQuery:
    """SqlError, with the construct and its place, for text that is no selection by ranges."""
    statement = _compiler(catalog).compile(sql)
    _check(statement, sql, catalog)
    shape, constants = statement.shape, statement.constants
    table = catalog.table(shape.tables[0])
    shown = table.shown if shape.projection is None else [table.column(ref.column) for ref in shape.projection]
    columns, key = tuple(shown), tuple(table.column(name) for name in table.key)
    found: dict[str, ColumnRange | None] = {}
    for ref, values in zip(shape.equalities, constants.equalities, strict=True):
        found[ref.column] = _of_value(table.column(ref.column), values[0]) if values else None
    for ref, interval in zip(shape.ranges, constants.intervals, strict=True):
        found[ref.column] = _of_interval(table.column(ref.column), interval)
    ranges = [found[name] for name in table.column_names if name in found]
    satisfiable = tuple(each for each in ranges if each is not None and not each.is_empty)
    if len(satisfiable) < len(ranges):
        return RowQuery(table.name, key, columns, (), is_empty=True)
    return RowQuery(table.name, key, columns, satisfiable)


@lru_cache(maxsize=4)
def _compiler(catalog: Catalog) -> Compiler:
    """Kept, as it parses only what is unlike anything before."""
    return Compiler(catalog)


def _of_value(column: Column, value: Any) -> ColumnRange:
    key = order_key(column.type, value)
    return ColumnRange(column, key, after(key))


def _of_interval(column: Column, interval: Interval) -> ColumnRange | None:
    """None if it is empty."""
    if interval.is_empty:
        return None
    first, last = _ENDS[column.type]
    if isinstance(first, int) and isinstance(last, int):
        return ColumnRange(column, max(interval.lo_code, first), min(interval.hi_code + 1, last))
    start = first if interval.lo is None else interval.lo if interval.lo_closed else after(interval.lo)
    stop = last if interval.hi is None else after(interval.hi) if interval.hi_closed else interval.hi
    return ColumnRange(column, start, stop)


def _check(statement: Statement, sql: str, catalog: Catalog) -> None:
    """SqlError for a subscription that is no selection by ranges."""
    shape = statement.shape
    if len(shape.tables) > 1:
        raise _refusal(statement.where("join"), "views over rows cannot join tables")
    if catalog.table(shape.tables[0]).has_constraints:
        raise _refusal(statement.where("from"), "the rows of this table are constraints")
    if shape.order is not None:
        raise _refusal(statement.where("order"), "views over rows cannot rank them")
    if shape.movement is not None:
        raise _refusal(
            statement.where("movement"), "views over rows know no earlier rows that these could have moved from"
        )
    if shape.disjuncts:
        raise _refusal(statement.where("alternative"), "the condition has several alternatives")
    if shape.nulls or any(len(values) > 1 for values in statement.constants.equalities):
        raise _refusal(_place_of_set(statement, sql, catalog), "the condition is no range of values")


def _place_of_set(statement: Statement, sql: str, catalog: Catalog) -> tuple[int, int, str]:
    """Where IS NULL or an IN with several values stands; an OR if there is none."""
    from tidings.sql.query import read_query  # imports sqlglot: only for errors

    query = read_query(sql, catalog)
    for predicate in query.predicates:
        if predicate.comparison == "is null" or len(predicate.operands) > 1:
            return query.scope.source.place(predicate.node)
    return statement.where("alternative")


def _refusal(place: tuple[int, int, str], problem: str) -> SqlError:
    line, column, construct = place
    return SqlError(problem, construct=construct, line=line, column=column, hint=_HINT)
