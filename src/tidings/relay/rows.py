"""The rows of a pattern from the matches of its nodes: of a document, or of what messages say of one.

From the leaves of the pattern up, the distinct rows of the part below each match. Parts that return nothing are left out: as
the matches are all part of an embedding, they match. No partial row is made that is not part of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
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
    return sorted(_Rows(pattern, structure, matches, returned, rows_max).all())


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

    def all(self) -> set[Row]:
        rows = self._of(0)
        found: set[Row] = set()
        for node in self._matches[0]:
            found |= rows[node]
            self._check(len(found))
        return found

    def _of(self, number: int) -> dict[Node, set[Row]]:
        """Per match of a node of the pattern, the distinct rows of the part at and below it."""
        step = self._nodes[number]
        children = self._children[number]
        below = {
            child: self._by_parent(number, child, self._of(child)) for child in children if child in self._returning
        }
        if not below:
            self._count(1, len(self._matches[number]))
            return {node: {self._returned(number, node)} for node in self._matches[number]}
        if not step.returns and len(below) == 1:
            return next(iter(below.values()))
        branches = sum(child in below for child in children[: len(step.branches)])
        found: dict[Node, set[Row]] = {}
        for node in self._matches[number]:
            parts: list[set[Row]] = [rows[node] for rows in below.values()]
            parts.insert(branches, {self._returned(number, node)})
            self._count(prod(map(len, parts)))
            found[node] = {tuple(value for part in row for value in part) for row in product(*parts)}
        return found

    def _by_parent(self, parent: int, child: int, rows: dict[Node, set[Row]]) -> dict[Node, set[Row]]:
        """Per match of the parent, the rows of the child's matches below it."""
        found: dict[Node, set[Row]] = {}
        if self._nodes[child].axis is Axis.CHILD:
            for node, below in rows.items():
                found.setdefault(self._structure.parent(node), set()).update(below)
            return found
        for node in self._matches[parent]:
            first, behind = within(self._structure, node, self._matches[child])
            found[node] = set().union(*(rows[below] for below in self._matches[child][first:behind]))
            self._count(len(found[node]))
        return found

    def _count(self, made: int, matches: int = 1) -> None:
        """Called before partial rows of a match are kept. Each is part of another row, so too many are too many rows."""
        self._check(made)
        self._made += made * matches
        if self._made > PARTIAL_ROWS_MAX:
            raise RowsError(f"more than {PARTIAL_ROWS_MAX:,} partial rows in one document: {_HINT}")

    def _check(self, count: int) -> None:
        if count > self._rows_max:
            raise RowsError(f"more than {self._rows_max:,} rows in one document: {_HINT}")
