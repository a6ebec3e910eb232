"""Semi-joins of lists of nodes by the structure of a pattern, for nodes of a document and for keys in messages.

Of two nodes of a tree, one is within the other or they are apart. Lists are in document order; hence whether a list has a node
below n is one binary search, and whether it has one above n takes a single sweep.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from tidings.relay.dewey import Key, key_behind, key_parent
from tidings.relay.document import Document
from tidings.relay.pattern import Axis, Pattern

Node = TypeVar("Node", int, str)
"""A node's number in its document, or its key."""


@dataclass(frozen=True, slots=True)
class Structure(Generic[Node]):
    """How nodes stand to each other.

    parent: that of a node. behind: above all descendants of a node in document order, and not above what follows them.
    lowest: not above any node.
    """

    parent: Callable[[Node], Node]
    behind: Callable[[Node], Node]
    lowest: Node


KEYS: Structure[Key] = Structure(key_parent, key_behind, "")
"""Keys tell by themselves."""


def structure_of(document: Document) -> Structure[int]:
    return Structure(document.parents.__getitem__, document.ends.__getitem__, 0)


def reduce_matches(structure: Structure[Node], pattern: Pattern, matches: list[list[Node]]) -> None:
    """Keeps, per node of the pattern, what is part of an embedding into the lists (Yannakakis 1981, for acyclic joins)."""
    edges = [_Edge(structure, step.axis) for step in pattern.nodes]
    # In preorder, children are behind their parents.
    for number in range(len(matches) - 1, 0, -1):
        parent = pattern.parents[number]
        matches[parent] = edges[number].upper(matches[parent], matches[number])
    for number in range(1, len(matches)):
        matches[number] = edges[number].lower(matches[number], matches[pattern.parents[number]])


class _Edge(Generic[Node]):
    """Both semi-joins of one edge of a pattern: `upper`, then `lower` with the same lower list and part of the upper one."""

    def __init__(self, structure: Structure[Node], axis: Axis) -> None:
        self._structure: Structure[Node] = structure
        self._is_child = axis is Axis.CHILD
        self._parents: list[Node] = []
        self._complete = -1

    def upper(self, upper: list[Node], lower: list[Node]) -> list[Node]:
        """What in the upper list has a child, or a descendant, in the lower one."""
        if self._is_child:
            self._parents = list(map(self._structure.parent, lower))
            parents = set(self._parents)
            found = [node for node in upper if node in parents]
            # Then all of the lower list have their parents there, as long as the upper one does not shrink.
            self._complete = len(found) if len(found) == len(parents) else -1
            return found
        behind = self._structure.behind
        size = len(lower)
        return [node for node in upper if (at := bisect_right(lower, node)) < size and lower[at] < behind(node)]

    def lower(self, lower: list[Node], upper: list[Node]) -> list[Node]:
        """What in the lower list has its parent, or an ancestor, in the upper one."""
        if self._is_child:
            if len(upper) == self._complete:
                return lower
            parents = set(upper)
            return [node for node, parent in zip(lower, self._parents, strict=True) if parent in parents]
        found = []
        at, size, end = 0, len(upper), self._structure.lowest
        for node in lower:
            while at < size and upper[at] < node:
                if upper[at] >= end:  # else it is within an earlier one, which ends no sooner
                    end = self._structure.behind(upper[at])
                at += 1
            if node < end:
                found.append(node)
        return found


def within(structure: Structure[Node], node: Node, nodes: list[Node]) -> tuple[int, int]:
    """Where in the list the proper descendants of the node begin and end."""
    first = bisect_right(nodes, node)
    return first, bisect_left(nodes, structure.behind(node), first)
