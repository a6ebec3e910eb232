"""Relay: views over documents that feed each other.

`parse_pattern` reads the tree pattern of a view, `evaluate_pattern` says what it returns of a document. `parse_row_query` reads
the SQL of a view over rows, which come in batches (`parse_rows`). `tidings.relay.files` reads files of views and documents.
"""

from tidings.relay.document import Document
from tidings.relay.errors import DocumentError, PatternError, RowsError
from tidings.relay.evaluate import evaluate_pattern
from tidings.relay.pattern import Axis, Pattern, PatternNode, Returned, Row, parse_pattern
from tidings.relay.row_views.document import RowDocument, parse_rows
from tidings.relay.row_views.query import RowQuery, parse_row_query

__all__ = [
    "Axis",
    "Document",
    "DocumentError",
    "Pattern",
    "PatternError",
    "PatternNode",
    "Returned",
    "Row",
    "RowDocument",
    "RowQuery",
    "RowsError",
    "evaluate_pattern",
    "parse_pattern",
    "parse_row_query",
    "parse_rows",
]
