"""Where databases differ: names of types, and boxes, which PostgreSQL has as values with operators and an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from research.strategies.offers.relational.operators import BOX_COLUMNS, Kind, Storage

_CORNERS = {"x1": "(val[1])[0]", "y1": "(val[1])[1]", "x2": "(val[0])[0]", "y2": "(val[0])[1]"}
"""A box of PostgreSQL is the array of its upper right and its lower left corner."""

# Operators of the publication and of the subscription -> operator between their boxes.
_BOX_OPERATORS: Mapping[str, Mapping[tuple[str, str], str]] = {
    "point": {("=", "="): "~=", ("=", "within"): "<@", ("within", "="): "@>", ("within", "within"): "&&"},
    "box": {
        ("=", "="): "~=",
        ("=", "within"): "<@",
        ("=", "overlaps"): "&&",
        ("=", "contains"): "@>",
        ("within", "="): "@>",
        ("within", "within"): "&&",
        ("within", "overlaps"): "&&",
        ("within", "contains"): "@>",
        ("overlaps", "="): "&&",
        ("overlaps", "within"): "&&",
        ("contains", "="): "<@",
        ("contains", "within"): "<@",
    },
}


@dataclass(frozen=True)
class Dialect:
    """A database's SQL.

    has_indexes: each pair of operators has a query of its own, so that indexes serve it. Without them it is faster to join
    tables once for all pairs: Spark takes a fifth of a second for each join of a query, however little it has to do.
    has_boxes: the corners of a box are one value, `val`, with operators that an index serves. They are fuzzy (PostgreSQL takes
    coordinates for equal that differ by 1e-6), so they find candidates, and comparisons of the corners decide.
    """

    types: Mapping[Storage, str] = field(hash=False)
    has_indexes: bool = False
    has_boxes: bool = False

    def columns(self, kind: Kind) -> list[tuple[str, str]]:
        """(name, type) of the columns that a kind's tables have for values."""
        if self.has_boxes and kind.has_boxes:
            others = kind.columns[len(BOX_COLUMNS) :]
            return [("val", "box"), *((column, self.types[kind.storage]) for column in others)]
        return [(column, self.types[kind.storage]) for column in kind.columns]

    def value(self, kind: Kind, alias: str, column: str) -> str:
        """The expression for a value of a row."""
        if self.has_boxes and kind.has_boxes and column in _CORNERS:
            return _CORNERS[column].replace("val", f"{alias}.val")
        return f"{alias}.{column}"

    def candidates(self, kind: Kind, publication: str, subscription: str) -> str | None:
        """A condition that an index serves and that all matching rows satisfy; None: there is none, or none is needed."""
        operator = _BOX_OPERATORS.get(kind.name, {}).get((publication, subscription)) if self.has_boxes else None
        return None if operator is None else f"p.val {operator} s.val"


SQLITE = Dialect({"integer": "INTEGER", "double": "REAL", "bytes": "BLOB"}, True)
SPARK = Dialect({"integer": "BIGINT", "double": "DOUBLE", "bytes": "BINARY"})
POSTGRES = Dialect({"integer": "bigint", "double": "double precision", "bytes": "bytea"}, True, True)
