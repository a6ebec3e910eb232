"""A join form as its region server sees it: the tables with their predicates, and what messages about their rows carry."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from tidings.families.join.result import shown_columns, shown_names
from tidings.families.join.subscription import predicates_of
from tidings.families.spec import Form
from tidings.model.catalog import Catalog, Column, Table
from tidings.model.space import range_axes

Selection = tuple[str, tuple[str, ...], tuple[int, ...]]
Wanted = tuple[str, tuple[str, ...], tuple[int, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Side:
    """One table of the join."""

    table: Table
    columns: tuple[Column, ...]
    """Columns with a predicate, each with a lower and an upper end among the coordinates."""
    first: int
    """Coordinate of the first lower end."""
    pinned: tuple[int, ...]
    """Indexes in `columns` of those with = or IN."""
    payload: tuple[str, ...]
    """Columns in a message about a row of this table: those shown, joined, with a predicate, and the key."""

    @property
    def ranged(self) -> tuple[int, ...]:
        """Indexes in `columns` of those with a range."""
        return tuple(i for i in range(len(self.columns)) if i not in self.pinned)

    @property
    def coords(self) -> slice:
        return slice(self.first, self.first + 2 * len(self.columns))

    @property
    def selection(self) -> Selection:
        """Key: sides of several spaces have equal ones if they are of the same table with predicates on the same columns."""
        return self.table.name, tuple(column.name for column in self.columns), self.pinned

    @property
    def rows(self) -> Wanted:
        """Key: as `selection`, and messages about a row have the same columns as well."""
        return *self.selection, self.payload


@dataclass(frozen=True)
class Edge:
    """An equality of columns of two sides."""

    sides: tuple[int, int]
    columns: tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Space:
    """A join form resolved against the catalog."""

    key: str
    sides: tuple[Side, ...]
    edges: tuple[Edge, ...]
    shown: tuple[tuple[int, str], ...]
    """(side, column) of every shown column of a joined row."""
    names: tuple[str, ...]
    """Name of every shown column."""
    dims: int

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return tuple(
            axis
            for side in self.sides
            for axis in range_axes(side.table.name, (column.name for column in side.columns))
        )

    @property
    def join_columns(self) -> dict[tuple[int, int], tuple[tuple[str, ...], tuple[str, ...]]]:
        """(side, other side) -> (columns, other columns) of all edges between them."""
        found: dict[tuple[int, int], tuple[tuple[str, ...], tuple[str, ...]]] = {}
        for edge in self.edges:
            (one, two), (left, right) = edge.sides, edge.columns
            if one > two:
                one, two, left, right = two, one, right, left
            known = found.get((one, two), ((), ()))
            found[one, two] = (known[0] + left, known[1] + right)
        return found

    def side_of(self, table: str) -> int:
        return next(i for i, side in enumerate(self.sides) if side.table.name == table)


@lru_cache(maxsize=4096)
def space_of(form: Form, catalog: Catalog) -> Space:
    shape = form.shape
    shown = shown_columns(shape, catalog)
    edges = tuple(
        Edge(
            (shape.tables.index(edge.left), shape.tables.index(edge.right)),
            (edge.left_columns, edge.right_columns),
        )
        for edge in shape.joins
    )
    sides: list[Side] = []
    first = 0
    for number, name in enumerate(shape.tables):
        table = catalog.table(name)
        refs = [ref for ref in predicates_of(shape) if ref.table == name]
        columns = tuple(table.column(ref.column) for ref in refs)
        pinned = tuple(i for i, ref in enumerate(refs) if ref in shape.equalities)
        joined = [
            c
            for edge in edges
            for at, names in zip(edge.sides, edge.columns, strict=True)
            if at == number
            for c in names
        ]
        wanted = [*table.key, *joined, *(c.name for c in columns), *(ref.column for ref in shown if ref.table == name)]
        payload = tuple(n for n in table.column_names if n in wanted)
        sides.append(Side(table, columns, first, pinned, payload))
        first += 2 * len(columns)
    places = tuple((shape.tables.index(ref.table), ref.column) for ref in shown)
    return Space(form.key, tuple(sides), edges, places, shown_names(shown), first)
