"""How large views are: what their messages have on average, measured on sample documents.

A view's message of a document has the matches of each node of its pattern: their ids, and where the node returns them texts and
contents. Text comes with contents, as it cannot be made of them; text that a predicate compares is known and not sent.
A message that says "no match" is a message too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tidings.kernels.arrays import F64, I32, I64
from tidings.relay.dewey import Dewey
from tidings.relay.document import Document
from tidings.relay.matching import Matches, PatternMatcher
from tidings.relay.pattern import Pattern, PatternNode, Returned
from tidings.relay.row_views.document import RowDocument

MESSAGE_BYTES = 40
"""Of a message without matches: the names of view and document, the document's number, and frames."""
TEXT_BYTES = 1
"""Of a text, beside its own bytes: its length."""

_GUESSED_MATCHES = 3.0
"""Per node of a pattern, where there is no document to count them in."""
_GUESSED_ID_BYTES, _GUESSED_VAL_BYTES, _GUESSED_CONT_BYTES, _GUESSED_DOCUMENT_BYTES = 6.0, 16.0, 400.0, 20_000.0


@dataclass(frozen=True, eq=False)
class ViewSizes:
    """Means per document.

    ids: float64[views], ids in a message, summed over the nodes of the pattern. bytes: float64[views], of a message.
    document_bytes: of a document.
    """

    ids: F64
    bytes: F64
    document_bytes: float

    def __len__(self) -> int:
        return len(self.ids)

    def of(self, views: I32 | I64) -> ViewSizes:
        """The sizes of some views, in the order in which they are named."""
        return ViewSizes(self.ids[views], self.bytes[views], self.document_bytes)


def sends_val(node: PatternNode) -> bool:
    return node.constant is None and (Returned.VAL in node.returns or Returned.CONT in node.returns)


def sends_cont(node: PatternNode) -> bool:
    return Returned.CONT in node.returns


def id_bytes(id: Dewey) -> int:
    """Of an id in a message: a character for each level, and the name of an attribute between two more."""
    return sum(len(part.encode()) + 1 if isinstance(part, str) else _character_bytes(part) for part in id)


def document_size(document: Document | RowDocument) -> int:
    """Bytes of a document."""
    return document.size if isinstance(document, RowDocument) else len(document.cont(0).encode())


def measure_views(patterns: Sequence[Pattern], documents: Iterable[Document | RowDocument]) -> ViewSizes:
    """Sizes by the documents, rows too, in which patterns find nothing; those of `guess_views` if there are none."""
    matcher = PatternMatcher(patterns)
    returning = _Returning(patterns)
    ids, bytes = np.zeros(len(patterns)), np.full(len(patterns), float(MESSAGE_BYTES))
    total = document_bytes = 0
    for document in documents:
        if isinstance(document, RowDocument):
            total += 1
            document_bytes += document.size
            continue
        of_document = _DocumentSizes(document)
        _add(matcher.match(document), returning, of_document, ids, bytes)
        total += 1
        document_bytes += of_document.cont(0)
    if total == 0:
        return guess_views(patterns)
    return ViewSizes(ids / total, MESSAGE_BYTES + (bytes - MESSAGE_BYTES) / total, document_bytes / total)


def guess_views(patterns: Sequence[Pattern]) -> ViewSizes:
    """Sizes by the number of nodes, and of those with texts and contents."""
    returning = _Returning(patterns)
    counts = np.array([len(pattern.nodes) for pattern in patterns], np.int64)
    per_node = np.full(int(counts.sum()), TEXT_BYTES + _GUESSED_ID_BYTES)
    per_node[returning.val] += TEXT_BYTES + _GUESSED_VAL_BYTES
    per_node[returning.cont] += TEXT_BYTES + _GUESSED_CONT_BYTES
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    bytes = MESSAGE_BYTES + _GUESSED_MATCHES * _sums(per_node, starts)
    return ViewSizes(_GUESSED_MATCHES * counts.astype(np.float64), bytes, _GUESSED_DOCUMENT_BYTES)


class _Returning:
    """Which nodes send texts and contents, where the nodes of all patterns are numbered one pattern after the other."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        nodes = [node for pattern in patterns for node in pattern.nodes]
        self.val = np.flatnonzero(np.fromiter(map(sends_val, nodes), np.bool_, len(nodes)))
        self.cont = np.flatnonzero(np.fromiter(map(sends_cont, nodes), np.bool_, len(nodes)))


class _DocumentSizes:
    """Bytes of the texts of a document's nodes, each measured when it is first asked for."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._conts: dict[int, int] = {}
        self.ids = np.array([TEXT_BYTES + id_bytes(id) for id in document.ids], np.int64)

    def val(self, node: int) -> int:
        return len(self._document.val(node).encode())

    def cont(self, node: int) -> int:
        found = self._conts.get(node)
        if found is None:
            found = self._conts[node] = len(self._document.cont(node).encode())
        return found

    def vals_of(self, nodes: I64) -> I64:
        return self._column(nodes, [TEXT_BYTES + self.val(node) for node in nodes.tolist()])

    def conts_of(self, nodes: I64) -> I64:
        return self._column(nodes, [TEXT_BYTES + self.cont(node) for node in nodes.tolist()])

    def _column(self, nodes: I64, sizes: list[int]) -> I64:
        """Indexed by node; 0 for those that nobody asked for."""
        column = np.zeros(len(self.ids), np.int64)
        column[nodes] = sizes
        return column


def _add(matches: Matches, returning: _Returning, sizes: _DocumentSizes, ids: F64, bytes: F64) -> None:
    """Adds what the views say of a document. All is summed over distinct lists first, which are few."""
    per_node = _list_sums(matches, sizes.ids)[matches.node_lists]
    for nodes, column_of in ((returning.val, sizes.vals_of), (returning.cont, sizes.conts_of)):
        lists = matches.node_lists[nodes]
        per_node[nodes] += _list_sums(matches, column_of(_nodes_of(matches, lists)))[lists]
    bytes += _sums(per_node, matches.node_starts)
    ids += _sums(np.diff(matches.starts)[matches.node_lists], matches.node_starts)


def _nodes_of(matches: Matches, lists: I32) -> I64:
    """The document nodes that are in any of the lists."""
    is_wanted = np.zeros(len(matches.starts) - 1, np.bool_)
    is_wanted[lists] = True
    return np.unique(matches.nodes[np.repeat(is_wanted, np.diff(matches.starts))]).astype(np.int64)


def _list_sums(matches: Matches, column: I64) -> I64:
    """Per distinct list, the sum of a column of the document over its nodes."""
    running = np.concatenate((np.zeros(1, np.int64), np.cumsum(column[matches.nodes])))
    return running[matches.starts[1:]] - running[matches.starts[:-1]]


def _sums(per_node: F64 | I64, starts: I64) -> F64:
    """Per pattern; each has a node at least."""
    return np.add.reduceat(per_node, starts[:-1]).astype(np.float64) if len(starts) > 1 else np.zeros(0)


def _character_bytes(number: int) -> int:
    """Of the character that stands for the n-th child."""
    return 1 if number < 0x80 else 2 if number < 0x800 else 3 if number < 0xF800 else 4
