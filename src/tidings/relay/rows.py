"""The rows of a pattern from the matches of its nodes: of a document, or of what messages say of one.

From the leaves of the pattern up, the distinct rows of the part below each match, sorted. Parts that return nothing are left
out: as the matches are all part of an embedding, they match. No partial row is made that is not part of a row.

Columns are in the order of the parts, so all combinations of sorted rows, taken in turn, are sorted and distinct by themselves.
Only where several matches come together their rows are merged.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, pairwise
from math import prod
from typing import Generic

from tidings.relay.errors import RowsError
from tidings.relay.pattern import Axis, Pattern, Row
from tidings.relay.reduction import Node, Structure, within

ROWS_MAX = 1_000_000
"""Rows of one pattern in one document: branches multiply."""
PARTIAL_ROWS_MAX = 20_000_000
"""Rows of parts of a pattern, over all matches: where matches are within each other, they have the same ones below them."""
_HINT = "return fewer nodes, or split the branches"


def pattern_rows(
    pattern: Pattern,
    structure: Structure[Node],
    matches: list[list[Node]],
    returned: Callable[[int, Node], Row],
    rows_max: int = ROWS_MAX,
) -> list[Row]:
    """The distinct rows, sorted as lists of texts. RowsError if there are more than `rows_max`.

    matches: per node of the pattern, its images in all embeddings, in document order.
    returned: the values which a node of the pattern returns of one of its matches.
    """
    if not matches[0]:
        return []
    return _Rows(pattern, structure, matches, returned, rows_max).all()


class _Rows(Generic[Node]):
    """Recursion is bounded by the depth of the pattern."""

    def __init__(
        self,
        pattern: Pattern,
        structure: Structure[Node],
        matches: list[list[Node]],
        returned: Callable[[int, Node], Row],
        rows_max: int,
    ) -> None:
        self._structure: Structure[Node] = structure
        self._returned: Callable[[int, Node], Row] = returned
        self._rows_max = rows_max
        self._made = 0
        self._nodes = pattern.nodes
        self._matches: list[list[Node]] = matches
        self._children = pattern.children
        self._returning = pattern.returning

    def all(self) -> list[Row]:
        rows = self._of(0)
        return self._union([rows[node] for node in self._matches[0]])

    def _of(self, number: int) -> dict[Node, list[Row]]:
        """Per match of a node of the pattern, the rows of the part at and below it."""
        step = self._nodes[number]
        children = self._children[number]
        below = {
            child: self._by_parent(number, child, self._of(child)) for child in children if child in self._returning
        }
        if not below:
            self._count(1, len(self._matches[number]))
            return {node: [self._returned(number, node)] for node in self._matches[number]}
        if not step.returns and len(below) == 1:
            return next(iter(below.values()))
        branches = sum(child in below for child in children[: len(step.branches)])
        found: dict[Node, list[Row]] = {}
        for node in self._matches[number]:
            parts: list[list[Row]] = [rows[node] for rows in below.values()]
            self._count(prod(map(len, parts)))
            if step.returns:
                parts.insert(branches, [self._returned(number, node)])
            found[node] = _product(parts)
        return found

    def _by_parent(self, parent: int, child: int, rows: dict[Node, list[Row]]) -> dict[Node, list[Row]]:
        """Per match of the parent, the rows of the child's matches below it."""
        found: dict[Node, list[Row]] = {}
        if self._nodes[child].axis is Axis.CHILD:
            lists: dict[Node, list[list[Row]]] = {}
            for node, below in rows.items():
                lists.setdefault(self._structure.parent(node), []).append(below)
            return {node: self._union(below) for node, below in lists.items()}
        for node in self._matches[parent]:
            first, behind = within(self._structure, node, self._matches[child])
            found[node] = self._union([rows[below] for below in self._matches[child][first:behind]])
            self._count(len(found[node]))
        return found

    def _union(self, lists: list[list[Row]]) -> list[Row]:
        if len(lists) == 1:
            return lists[0]
        if sum(map(len, lists)) > self._rows_max:  # perhaps only because there are equal ones
            found: set[Row] = set()
            for rows in lists:
                found.update(rows)
                self._check(len(found))
            return sorted(found)
        merged: list[Row] = list(chain.from_iterable(lists))
        merged.sort()  # takes what is in order as it is
        return [merged[0], *(row for before, row in pairwise(merged) if row != before)]

    def _count(self, made: int, matches: int = 1) -> None:
        """Called before partial rows of a match are kept. Each is part of another row, so too many are too many rows."""
        self._check(made)
        self._made += made * matches
        if self._made > PARTIAL_ROWS_MAX:
            raise RowsError(f"more than {PARTIAL_ROWS_MAX:,} partial rows in one document: {_HINT}")

    def _check(self, count: int) -> None:
        if count > self._rows_max:
            raise RowsError(f"more than {self._rows_max:,} rows in one document: {_HINT}")


def _product(parts: list[list[Row]]) -> list[Row]:
    """All combinations, the last part's rows changing fastest."""
    found, *others = parts
    for part in others:
        found = [row + more for row in found for more in part]
    return found
