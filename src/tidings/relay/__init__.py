"""Relay: views over documents that feed each other.

`parse_pattern` reads the tree pattern of a view, `evaluate_pattern` says what it returns of a document. `parse_row_query` reads
the SQL of a view over rows, which come in batches (`parse_rows`). `tidings.relay.files` reads files of views and documents.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.relay.document import Document as Document
    from tidings.relay.errors import DocumentError as DocumentError
    from tidings.relay.errors import PatternError as PatternError
    from tidings.relay.errors import RowsError as RowsError
    from tidings.relay.evaluate import evaluate_pattern as evaluate_pattern
    from tidings.relay.pattern import Axis as Axis
    from tidings.relay.pattern import Pattern as Pattern
    from tidings.relay.pattern import PatternNode as PatternNode
    from tidings.relay.pattern import Returned as Returned
    from tidings.relay.pattern import Row as Row
    from tidings.relay.pattern import parse_pattern as parse_pattern
    from tidings.relay.row_views.document import RowDocument as RowDocument
    from tidings.relay.row_views.document import parse_rows as parse_rows
    from tidings.relay.row_views.query import RowQuery as RowQuery
    from tidings.relay.row_views.query import parse_row_query as parse_row_query

_PATTERNS = ("Axis", "Pattern", "PatternNode", "Returned", "Row", "parse_pattern")
_PLACES = {"Document": "document", "RowDocument": "row_views.document", "parse_rows": "row_views.document"}
_PLACES |= {"RowQuery": "row_views.query", "parse_row_query": "row_views.query", "evaluate_pattern": "evaluate"}
_PLACES |= dict.fromkeys(("DocumentError", "PatternError", "RowsError"), "errors") | dict.fromkeys(_PATTERNS, "pattern")
__all__ = ["Axis", "Document", "DocumentError", "Pattern", "PatternError", "PatternNode", "Returned", "Row"]
__all__ += [
    "RowDocument",
    "RowQuery",
    "RowsError",
    "evaluate_pattern",
    "parse_pattern",
    "parse_row_query",
    "parse_rows",
]


def __getattr__(name: str) -> Any:
    """Loaded when asked for: `tidings --help` shows the commands of this package, and starts at once."""
    if name not in _PLACES:
        raise AttributeError(f"module 'tidings.relay' has no attribute {name!r}")
    return getattr(import_module(f"tidings.relay.{_PLACES[name]}"), name)
