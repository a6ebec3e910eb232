"""The shape of a subscription: everything about its query except the constants.

Subscriptions of one shape differ only in their `Constants`; a shape is therefore the key under which
families are found, hashed once and compared often.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

MovementKind = Literal["moved", "moved_percent", "moved_ratio"]
MovementForm = Literal["at_least", "between"]


class ColumnRef(NamedTuple):
    """A column of one of the query's tables, both by their catalog names (aliases are gone)."""

    table: str
    column: str


class JoinEdge(NamedTuple):
    """An inner equijoin of two tables; the columns pair up. `using`: written with USING, so each pair is shown once."""

    left: str
    left_columns: tuple[str, ...]
    right: str
    right_columns: tuple[str, ...]
    using: bool


class Order(NamedTuple):
    """ORDER BY one column with its LIMIT: a top-k query. Structural: the limit k belongs to the shape."""

    column: ColumnRef
    descending: bool
    limit: int


class Silence(NamedTuple):
    """`OR silent_for(column) >= T`: also notify the row once the column has advanced by T since its last notification.

    ticks: microseconds for TIMESTAMP and DATE, else the number itself. Structural: T belongs to the shape.
    """

    column: ColumnRef
    ticks: int


class Movement(NamedTuple):
    """`moved(column) >= r` and its relatives: notify the row again only when the column has moved that far."""

    column: ColumnRef
    kind: MovementKind
    form: MovementForm
    silence: Silence | None = None


@dataclass(frozen=True)
class Shape:
    """Everything about a query except its constants.

    equalities: columns pinned by `=` or IN; ranges: columns bounded only by `<`, `<=`, `>`, `>=`, BETWEEN, LIKE or IS NOT
    NULL; nulls: columns that must be null; all in the order of FROM, then of the table's columns. projection: None for all
    columns. disjuncts: if a row must satisfy only one of several conjunctions, their shapes, which differ in these columns
    only; the columns of the whole shape are then empty.
    """

    tables: tuple[str, ...]
    joins: tuple[JoinEdge, ...] = ()
    equalities: tuple[ColumnRef, ...] = ()
    ranges: tuple[ColumnRef, ...] = ()
    projection: tuple[ColumnRef, ...] | None = None
    order: Order | None = None
    movement: Movement | None = None
    nulls: tuple[ColumnRef, ...] = ()
    disjuncts: tuple[Shape, ...] = ()

    @property
    def _fields(self) -> tuple[object, ...]:
        return (
            self.tables,
            self.joins,
            self.equalities,
            self.ranges,
            self.projection,
            self.order,
            self.movement,
            self.nulls,
            self.disjuncts,
        )

    @cached_property
    def _hash(self) -> int:
        return hash(self._fields)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        # The cached hash must not be pickled: hashes of text differ between processes.
        return (Shape, self._fields)

    @property
    def conjunctions(self) -> tuple[Shape, ...]:
        """The disjuncts, or the shape itself where it is a single conjunction."""
        return self.disjuncts or (self,)

    @property
    def is_plain(self) -> bool:
        """True for one conjunction of equalities and ranges."""
        return not self.disjuncts and not self.nulls

    def describe(self) -> str:
        """One canonical line, as in `stocks: = sector; range per, risk; all columns`."""
        parts: list[str] = []
        for edge in self.joins:
            parts.append("join " + self._edge(edge))
        if self.disjuncts:
            parts.append("any of " + ", ".join(f"({'; '.join(shape._columns())})" for shape in self.disjuncts))
        parts += self._columns()
        if self.movement is not None:
            parts.append(self._movement(self.movement))
        if self.order is not None:
            direction = "descending" if self.order.descending else "ascending"
            parts.append(f"first {self.order.limit} by {self._name(self.order.column)} {direction}")
        parts.append("all columns" if self.projection is None else "columns " + self._names(self.projection))
        return f"{', '.join(self.tables)}: {'; '.join(parts)}"

    def _columns(self) -> list[str]:
        """Texts that list the compared columns by kind of comparison."""
        ways = (("=", self.equalities), ("range", self.ranges), ("null", self.nulls))
        return [f"{way} {self._names(columns)}" for way, columns in ways if columns]

    def _movement(self, movement: Movement) -> str:
        sign = ">=" if movement.form == "at_least" else "between"
        text = f"{movement.kind}({self._name(movement.column)}) {sign}"
        if movement.silence is None:
            return text
        column, ticks = movement.silence
        return f"{text} or silent_for({self._name(column)}) >= {ticks:,}"

    def _edge(self, edge: JoinEdge) -> str:
        if edge.using:
            return f"{edge.left}-{edge.right} using {', '.join(edge.right_columns)}"
        pairs = zip(edge.left_columns, edge.right_columns, strict=True)
        return " and ".join(f"{edge.left}.{left} = {edge.right}.{right}" for left, right in pairs)

    def _names(self, columns: tuple[ColumnRef, ...]) -> str:
        return ", ".join(self._name(column) for column in columns)

    def _name(self, ref: ColumnRef) -> str:
        return ref.column if len(self.tables) == 1 else f"{ref.table}.{ref.column}"
