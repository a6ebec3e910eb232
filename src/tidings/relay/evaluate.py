"""What a pattern returns of a document, in time that depends on the matches: `reference.py` says what it means.

1. Candidates: per node of the pattern, the nodes of its label whose text is the constant.
2. Semi-joins up the pattern: keep a candidate if each child of the pattern has a candidate below it. Then down: keep one if its
   parent has a candidate above it. What is left is part of an embedding (Yannakakis 1981, for acyclic joins).
3. Rows: from the leaves of the pattern up, the distinct rows of the part below each match. Parts that return nothing are left
   out, as 2. has shown that they match. No partial row is made that is not part of a row.

Lists are in document order. Of two nodes of a tree, one is within the other or they are apart; hence whether a list has a node
below n is one binary search, and whether it has one above n takes a single sweep.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import product
from math import prod

from tidings.relay.document import Document
from tidings.relay.errors import RowsError
from tidings.relay.pattern import Axis, Pattern, PatternNode, Row

ROWS_MAX = 1_000_000
"""Rows of one pattern in one document: branches multiply."""
PARTIAL_ROWS_MAX = 20_000_000
"""Rows of parts of a pattern, over all matches: where matches are within each other, they have the same ones below them."""
_HINT = "return fewer nodes, or split the branches"


def evaluate_pattern(pattern: Pattern, document: Document, rows_max: int = ROWS_MAX) -> list[Row]:
    """The distinct rows, sorted as lists of texts. RowsError if there are more than `rows_max`."""
    matches = node_matches(pattern, document)
    if not matches[0]:
        return []
    return sorted(_Rows(pattern, document, matches, rows_max).all())


def node_matches(pattern: Pattern, document: Document) -> list[list[int]]:
    """Per node of the pattern, its images in all embeddings, in document order; all are empty if there is no embedding."""
    matches = [_candidates(node, document) for node in pattern.nodes]
    if pattern.root.axis is Axis.CHILD:
        matches[0] = [node for node in matches[0] if node == 0]
    # In preorder, children are behind their parents.
    for number in range(len(matches) - 1, 0, -1):
        parent = pattern.parents[number]
        axis = pattern.nodes[number].axis
        matches[parent] = _with_one_below(document, matches[parent], axis, matches[number])
    for number in range(1, len(matches)):
        parent = pattern.parents[number]
        axis = pattern.nodes[number].axis
        matches[number] = _with_one_above(document, matches[number], axis, matches[parent])
    return matches


def _candidates(step: PatternNode, document: Document) -> list[int]:
    nodes = document.nodes_of.get(step.label, ())
    if step.constant is None:
        return list(nodes)
    return [node for node in nodes if document.val(node) == step.constant]


def _with_one_below(document: Document, upper: list[int], axis: Axis, lower: list[int]) -> list[int]:
    if axis is Axis.CHILD:
        parents = {document.parents[node] for node in lower}
        return [node for node in upper if node in parents]
    found = []
    for node in upper:
        first, behind = _within(document, node, lower)
        if first < behind:
            found.append(node)
    return found


def _with_one_above(document: Document, lower: list[int], axis: Axis, upper: list[int]) -> list[int]:
    if axis is Axis.CHILD:
        parents = set(upper)
        return [node for node in lower if document.parents[node] in parents]
    found = []
    at = end = 0
    for node in lower:
        while at < len(upper) and upper[at] < node:
            end = max(end, document.ends[upper[at]])
            at += 1
        if node < end:
            found.append(node)
    return found


def _within(document: Document, node: int, nodes: list[int]) -> tuple[int, int]:
    """Where in the list, which is in document order, the proper descendants of the node begin and end."""
    first = bisect_left(nodes, node + 1)
    return first, bisect_left(nodes, document.ends[node], first)


class _Rows:
    """Step 3. Recursion is bounded by the depth of the pattern."""

    def __init__(self, pattern: Pattern, document: Document, matches: list[list[int]], rows_max: int) -> None:
        self._document = document
        self._rows_max = rows_max
        self._made = 0
        self._nodes = pattern.nodes
        self._matches = matches
        self._children = [
            [n for n, parent in enumerate(pattern.parents) if parent == up] for up in range(len(self._nodes))
        ]
        self._returning = {number for number, _ in pattern.columns}
        for number in range(len(self._nodes) - 1, 0, -1):
            if number in self._returning:
                self._returning.add(pattern.parents[number])

    def all(self) -> set[Row]:
        rows = self._of(0)
        found: set[Row] = set()
        for node in self._matches[0]:
            found |= rows[node]
            self._check(len(found))
        return found

    def _of(self, number: int) -> dict[int, set[Row]]:
        """Per match of a node of the pattern, the distinct rows of the part at and below it."""
        step = self._nodes[number]
        below = {
            child: self._by_parent(number, child, self._of(child))
            for child in self._children[number]
            if child in self._returning
        }
        children = self._children[number]
        branches = [below[child] for child in children[: len(step.branches)] if child in below]
        following = [below[child] for child in children[len(step.branches) :] if child in below]
        found = {}
        for node in self._matches[number]:
            own = {tuple(self._document.value(node, returned) for returned in step.returns)}
            parts = [*(rows[node] for rows in branches), own, *(rows[node] for rows in following)]
            self._count(prod(map(len, parts)))
            found[node] = {tuple(value for part in row for value in part) for row in product(*parts)}
        return found

    def _by_parent(self, parent: int, child: int, rows: dict[int, set[Row]]) -> dict[int, set[Row]]:
        """Per match of the parent, the rows of the child's matches below it."""
        found: dict[int, set[Row]] = {}
        if self._nodes[child].axis is Axis.CHILD:
            for node, below in rows.items():
                found.setdefault(self._document.parents[node], set()).update(below)
            return found
        for node in self._matches[parent]:
            first, behind = _within(self._document, node, self._matches[child])
            found[node] = set().union(*(rows[below] for below in self._matches[child][first:behind]))
            self._count(len(found[node]))
        return found

    def _count(self, made: int) -> None:
        """Called before partial rows of one match are kept. Each is part of another row, so too many are too many rows."""
        self._check(made)
        self._made += made
        if self._made > PARTIAL_ROWS_MAX:
            raise RowsError(f"more than {PARTIAL_ROWS_MAX:,} partial rows in one document: {_HINT}")

    def _check(self, count: int) -> None:
        if count > self._rows_max:
            raise RowsError(f"more than {self._rows_max:,} rows in one document: {_HINT}")
