"""The SQL front end: catalogs and subscriptions as text to catalogs, shapes and constants.

A subscription's SQL becomes a `Statement`: its `Shape` says which family it belongs to, its `Constants` which point of
that family it is. `Compiler` parses one statement of each template with sqlglot and binds the others from their
literals alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.sql.compiler import Compiler, Statement
from tidings.sql.constants import Constants, Interval
from tidings.sql.shape import ColumnRef, JoinEdge, Movement, Order, Shape, Silence

if TYPE_CHECKING:
    from tidings.sql.catalog.ddl import parse_catalog

__all__ = [
    "ColumnRef",
    "Compiler",
    "Constants",
    "Interval",
    "JoinEdge",
    "Movement",
    "Order",
    "Shape",
    "Silence",
    "Statement",
    "parse_catalog",
]


def __getattr__(name: str) -> Any:
    # The catalog parser needs sqlglot, which takes a tenth of a second to import; commands such as --help do not.
    if name == "parse_catalog":
        from tidings.sql.catalog.ddl import parse_catalog

        return parse_catalog
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
