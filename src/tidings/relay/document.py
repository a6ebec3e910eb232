"""Documents as trees: one form for XML and JSON, in columns, a node being its number in document order.

A document's text content is kept once: that of a node is a slice of it.

    <a k="v">x<b>y</b></a>          number  label  id     parent  end  slice of "xy"
                                    0       a      1      -1      3    0:2
                                    1       @k     1.@k   0       2    (own text "v")
                                    2       b      1.1    0       3    1:2

The descendants of node n are the numbers n + 1 .. ends[n] - 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from tidings.relay.dewey import Dewey, Key, dewey_text, key_part
from tidings.relay.errors import DocumentError
from tidings.relay.pattern import Returned

DOCUMENT_BYTES_MAX = 32 * 1024 * 1024
"""Size of a document as it is read."""
DOCUMENT_NODES_MAX = 1_000_000
"""Elements, attributes and keys of a document."""
DOCUMENT_DEPTH_MAX = 200
"""Nodes from the root to the deepest, both included."""


@dataclass(frozen=True, eq=False)
class Document:
    """A tree. All columns are indexed by a node's number.

    labels: names of elements and keys, and of attributes with @ before.
    parents: -1 of the root. ends: the number behind the node's last descendant.
    contents: what `serialise` makes the node's canonical text of.
    """

    labels: tuple[str, ...]
    ids: tuple[Dewey, ...]
    parents: tuple[int, ...]
    ends: tuple[int, ...]
    contents: tuple[object, ...] = field(repr=False)
    serialise: Callable[[object], str] = field(repr=False)
    _text: str = field(repr=False)
    _slices: tuple[slice, ...] = field(repr=False)
    _own_texts: dict[int, str] = field(repr=False)

    def __len__(self) -> int:
        return len(self.labels)

    def id(self, node: int) -> str:
        """The node's Dewey number as text."""
        return dewey_text(self.ids[node])

    def val(self, node: int) -> str:
        """The node's text content: all texts within it, one after the other; of an attribute its value."""
        own = self._own_texts.get(node)
        return self._text[self._slices[node]] if own is None else own

    def cont(self, node: int) -> str:
        """The node's subtree: canonical XML (C14N, without comments), or JSON with sorted keys; of an attribute its value."""
        own = self._own_texts.get(node)
        return self.serialise(self.contents[node]) if own is None else own

    def value(self, node: int, returned: Returned) -> str:
        """What a result row says of the node."""
        match returned:
            case Returned.ID:
                return self.id(node)
            case Returned.VAL:
                return self.val(node)
            case Returned.CONT:
                return self.cont(node)

    @cached_property
    def nodes_of(self) -> dict[str, tuple[int, ...]]:
        """The nodes of each label, in document order."""
        found: dict[str, list[int]] = {}
        for node, label in enumerate(self.labels):
            found.setdefault(label, []).append(node)
        return {label: tuple(nodes) for label, nodes in found.items()}

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """The nodes' ids as messages have them."""
        found: list[Key] = []
        for id, parent in zip(self.ids, self.parents, strict=True):
            above = found[parent] if parent >= 0 else ""
            found.append(above + key_part(id[-1]))
        return tuple(found)


class DocumentBuilder:
    """Makes a document of calls in document order: `open`, then `attribute`s, `text` and inner nodes, then `close`."""

    def __init__(self) -> None:
        self._labels: list[str] = []
        self._ids: list[Dewey] = []
        self._parents: list[int] = []
        self._ends: list[int] = []
        self._contents: list[object] = []
        self._starts: list[int] = []
        self._stops: list[int] = []
        self._own_texts: dict[int, str] = {}
        self._texts: list[str] = []
        self._length = 0
        self._path: list[int] = []
        self._children: list[int] = [0]

    def open(self, label: str, content: object) -> None:
        if len(self._path) == DOCUMENT_DEPTH_MAX:
            raise DocumentError(f"the document is too deep: the limit is {DOCUMENT_DEPTH_MAX} levels")
        self._children[-1] += 1
        part = self._children[-1]
        self._path.append(self._add(label, part, content))
        self._children.append(0)

    def attribute(self, name: str, value: str) -> None:
        node = self._add(f"@{name}", f"@{name}", None)
        self._own_texts[node] = value

    def text(self, text: str) -> None:
        self._texts.append(text)
        self._length += len(text)

    def close(self) -> None:
        node = self._path.pop()
        self._children.pop()
        self._ends[node] = len(self._labels)
        self._stops[node] = self._length

    def build(self, serialise: Callable[[object], str]) -> Document:
        return Document(
            tuple(self._labels),
            tuple(self._ids),
            tuple(self._parents),
            tuple(self._ends),
            tuple(self._contents),
            serialise,
            "".join(self._texts),
            tuple(map(slice, self._starts, self._stops)),
            self._own_texts,
        )

    def _add(self, label: str, part: int | str, content: object) -> int:
        node = len(self._labels)
        if node == DOCUMENT_NODES_MAX:
            raise DocumentError(f"the document is too large: the limit is {DOCUMENT_NODES_MAX:,} nodes")
        parent = self._path[-1] if self._path else -1
        self._labels.append(label)
        self._ids.append((*self._ids[parent], part) if self._path else (part,))
        self._parents.append(parent)
        self._ends.append(node + 1)
        self._contents.append(content)
        self._starts.append(self._length)
        self._stops.append(self._length)
        return node


def check_size(data: bytes) -> None:
    """DocumentError for what is too large to be read."""
    if len(data) > DOCUMENT_BYTES_MAX:
        raise DocumentError(f"the document is too large: the limit is {DOCUMENT_BYTES_MAX:,} bytes")
