"""Relay: views over documents that feed each other.

`parse_pattern` reads the tree pattern of a view, `evaluate_pattern` says what it returns of a document. `tidings.relay.files`
reads files of views and documents.
"""

from tidings.relay.document import Document
from tidings.relay.errors import DocumentError, PatternError, RowsError
from tidings.relay.evaluate import evaluate_pattern
from tidings.relay.pattern import Axis, Pattern, PatternNode, Returned, Row, parse_pattern

__all__ = [
    "Axis",
    "Document",
    "DocumentError",
    "Pattern",
    "PatternError",
    "PatternNode",
    "Returned",
    "Row",
    "RowsError",
    "evaluate_pattern",
    "parse_pattern",
]
