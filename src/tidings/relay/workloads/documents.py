"""Random small documents of XMark's auction site, in which most views of `views.py` find something.

A document has a full specimen of everything that repeats: an item of each region, a category, an edge, a person, an open and a
closed auction, so that it has nearly every structure of the schema that is not too deep. Then more follow, each kind up to its
share of the bytes, until the document is as large as it should be.

Values come from decks: what a label has in one part of the document is dealt from the shuffled values, popular ones near the
top, and only when all were dealt again. So a part with ten quantities has ten different ones, where independent draws would
have six: a view that compares a quantity finds it sooner.

Elements have a text or children, never both; children of one name stand together. So the same tree can be written in JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np

from tidings.relay.workloads.dtd import ELEMENTS, ROOT, VALUES
from tidings.relay.workloads.uniforms import Uniforms, zipf

BYTES_MIN, BYTES_MAX = 10_000, 40_000
"""Of a document in XML; in JSON the same takes four fifths."""
_ROOM = 2_500
"""More than any item, person or auction takes."""

_PLACES: tuple[tuple[tuple[str, ...], str], ...] = (
    *(((ROOT, "regions", region), "item") for region in ELEMENTS["regions"].labels),
    ((ROOT, "categories"), "category"),
    ((ROOT, "catgraph"), "edge"),
    ((ROOT, "people"), "person"),
    ((ROOT, "open_auctions"), "open_auction"),
    ((ROOT, "closed_auctions"), "closed_auction"),
)
"""What repeats, and below which elements."""
_SHARES = (10, 7, 6, 5, 4, 4, 22, 7, 14, 10, 11)
"""Of the bytes, in percent."""

_OPTIONAL = 0.7
"""Share of those that have an optional child."""
_ANOTHER = 0.35
"""Share of those with one more of a child that repeats, among those with as many already."""
_LIST = 0.25
"""Share of descriptions that are lists, and of members of lists that have another within."""
_MARKUP = 0.3
"""Share of texts with markup instead of plain text."""
_DEPTH_MAX = 9
"""Steps from the root below which texts are plain and lists have no lists: the schema is recursive."""


@dataclass
class _Node:
    """attributes: with @ before. children: by label, in the order of the schema."""

    label: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: dict[str, list[_Node]] = field(default_factory=dict)
    text: str = ""

    @property
    def xml(self) -> str:
        attributes = "".join(f' {name[1:]}="{value}"' for name, value in self.attributes.items())
        inner = self.text + "".join(child.xml for children in self.children.values() for child in children)
        return f"<{self.label}{attributes}>{inner}</{self.label}>" if inner else f"<{self.label}{attributes}/>"

    @property
    def json(self) -> object:
        """Keys for attributes and children. A list for a child that may repeat, however often it does here."""
        if self.text:
            return self.text
        several = {child.label for child in ELEMENTS[self.label].children if child.most is None}
        members: dict[str, object] = dict(self.attributes)
        for label, children in self.children.items():
            members[label] = [child.json for child in children] if label in several else children[0].json
        return members


def document_xml(seed: int, number: int, values: int = len(VALUES)) -> bytes:
    """The document of this number; it does not depend on how many there are. values: how many different ones it may have."""
    return _document(seed, number, values).xml.encode()


def document_json(seed: int, number: int, values: int = len(VALUES)) -> bytes:
    """The same data as `document_xml`, with @ before the keys of attributes."""
    return json.dumps({ROOT: _document(seed, number, values).json}, separators=(",", ":")).encode()


def _document(seed: int, number: int, values: int) -> _Node:
    return _Grower(np.random.default_rng([seed, 4, number]), values).document()


class _Grower:
    def __init__(self, rng: np.random.Generator, values: int) -> None:
        self._rng = rng
        self._value_shares = zipf(values, 1.0, 0.0)
        self._uniforms = Uniforms(rng)
        self._decks: dict[tuple[str, ...], list[str]] = {}

    def document(self) -> _Node:
        bytes_wanted = int(self._rng.integers(BYTES_MIN, BYTES_MAX - _ROOM))
        root = _Node(ROOT)
        parts = [self._part(root, path) for path, _ in _PLACES]
        for part, (path, label) in zip(parts, _PLACES, strict=True):
            part.children[label] = [self._grown(label, path, is_full=True)]
        made = [len(part.xml) for part in parts]
        while sum(made) < bytes_wanted:
            # The one that has the least of its share.
            place = min(range(len(parts)), key=lambda place: made[place] / _SHARES[place])
            path, label = _PLACES[place]
            one = self._grown(label, path, is_full=False)
            parts[place].children[label].append(one)
            made[place] += len(one.xml)
        return root

    def _part(self, root: _Node, path: tuple[str, ...]) -> _Node:
        node = root
        for label in path[1:]:
            node = node.children.setdefault(label, [_Node(label)])[0]
        return node

    def _grown(self, label: str, above: tuple[str, ...], *, is_full: bool) -> _Node:
        """is_full: with all that is optional."""
        path = (*above, label)
        node = _Node(label, {name: self._value((*path, name)) for name in ELEMENTS[label].attributes})
        for child in self._children(path, is_full):
            node.children.setdefault(child, []).append(self._grown(child, path, is_full=is_full))
        if ELEMENTS[label].has_text and not node.children:
            node.text = self._value(path)
        return node

    def _children(self, path: tuple[str, ...], is_full: bool) -> list[str]:
        """Labels in the order of the schema, each as often as it comes."""
        label = path[-1]
        share = self._uniforms.share
        if ELEMENTS[label].is_choice or ELEMENTS[label].is_either:
            return self._chosen(label, is_full=is_full, is_deep=len(path) >= _DEPTH_MAX)
        found = []
        for child in ELEMENTS[label].children:
            if child.least == 0 and not is_full and share() >= _OPTIONAL:
                continue
            found.append(child.label)
            while child.most is None and share() < _ANOTHER:
                found.append(child.label)
        return found

    def _chosen(self, label: str, *, is_full: bool, is_deep: bool) -> list[str]:
        """Children of elements that may have any of them."""
        share = self._uniforms.share
        is_list = not is_deep and share() < _LIST
        if label == "description":
            return ["parlist"] if is_list else ["text"]
        if label == "listitem":
            return ["text", "parlist"] if is_list else ["text"]
        if is_deep or (share() >= _MARKUP and not (is_full and label == "text")):
            return []
        return [child for child in ELEMENTS[label].labels if is_full or share() < _OPTIONAL]

    def _value(self, path: tuple[str, ...]) -> str:
        """From the deck of the label and its parent in this part of the document."""
        place = (*path[1:3], *path[-2:])
        deck = self._decks.setdefault(place, [])
        if not deck:
            count = len(self._value_shares)
            dealt = self._rng.choice(count, count, replace=False, p=self._value_shares)
            deck += [VALUES[number] for number in reversed(dealt.tolist())]
        return deck.pop()
