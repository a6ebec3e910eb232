"""Many patterns as one forest in which equal parts are there once (hash consing).

- A *test* is what one node asks of a document node by itself: its label, or its label and a constant.
- A *subtree* is a test and a set of edges to subtrees. Order and repetition of branches, and what is returned, make no
  difference; patterns that contain a subtree share its number.
- A *tree* is a subtree and how it hangs below the document. A *place* is a node of a tree: nodes of patterns whose matches
  are the same in every document have the same place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings.kernels.arrays import I32, I64
from tidings.relay.matching.kernels.list_table import CHILD, DESCENDANT
from tidings.relay.matching.kernels.match import ForestArrays
from tidings.relay.pattern import Axis, Pattern, PatternNode


class PatternForest:
    """The nodes of pattern i, in preorder, have the places node_places[node_starts[i]:node_starts[i + 1]].

    labels: the test of each label. constants: per label that is compared with some, the test of each constant.
    """

    node_starts: I64
    node_places: I32
    arrays: ForestArrays

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        builder = _Builder()
        for pattern in patterns:
            builder.add(pattern.root)
        self.labels = builder.labels
        self.constants = builder.constants
        self.test_count = builder.test_count
        self.node_starts = np.array(builder.node_starts, np.int64)
        self.node_places = np.array(builder.node_places, np.int32)
        child_counts = np.fromiter(map(len, builder.children), np.int64, len(builder.children))
        self.arrays = ForestArrays(
            np.array(builder.subtree_tests, np.int32),
            np.concatenate((np.zeros(1, np.int64), np.cumsum(child_counts))),
            np.array([edge for edges in builder.children for edge in edges], np.int32),
            np.array([*builder.tree_starts, len(builder.place_edges)], np.int64),
            np.array(builder.place_edges, np.int32),
            np.array(builder.place_parents, np.int32),
        )


class _Builder:
    """The forest in lists that grow, and the dictionaries that know which parts are there."""

    def __init__(self) -> None:
        self.labels: dict[str, int] = {}
        self.constants: dict[str, dict[str, int]] = {}
        self.test_count = 0
        self.subtree_tests: list[int] = []
        self.children: list[tuple[int, ...]] = []
        self._subtrees: dict[tuple[int, ...], int] = {}
        self.tree_starts: list[int] = []
        self.place_edges: list[int] = []
        self.place_parents: list[int] = []
        self._places: dict[tuple[int, int], int] = {}
        self.node_starts: list[int] = [0]
        self.node_places: list[int] = []
        # Of the pattern at hand, in preorder.
        self._edges: list[int] = []
        self._parents: list[int] = []

    def add(self, root: PatternNode) -> None:
        self._edges.clear()
        self._parents.clear()
        self._edge(root, -1)
        places: list[int] = []
        for edge, parent in zip(self._edges, self._parents, strict=True):
            key = (places[parent] if parent >= 0 else -1, edge)
            place = self._places.get(key)
            if place is None:
                place = self._places[key] = len(self.place_edges)
                if parent < 0:
                    self.tree_starts.append(place)
                self.place_edges.append(edge)
                self.place_parents.append(key[0])
            places.append(place)
        self.node_places += places
        self.node_starts.append(len(self.node_places))

    def _edge(self, node: PatternNode, parent: int) -> int:
        """The edge to the node's subtree."""
        number = len(self._edges)
        self._edges.append(0)
        self._parents.append(parent)
        children = node.children
        if len(children) > 1:
            below = sorted({self._edge(child, number) for child in children})
        else:
            below = [self._edge(child, number) for child in children]
        key = (self._test(node), *below)
        subtree = self._subtrees.get(key)
        if subtree is None:
            subtree = self._subtrees[key] = len(self.children)
            self.subtree_tests.append(key[0])
            self.children.append(key[1:])
        axis = CHILD if node.axis is Axis.CHILD else DESCENDANT
        edge = self._edges[number] = 2 * subtree + axis
        return edge

    def _test(self, node: PatternNode) -> int:
        tests = self.labels if node.constant is None else self.constants.setdefault(node.label, {})
        name = node.label if node.constant is None else node.constant
        test = tests.get(name)
        if test is None:
            test = tests[name] = self.test_count
            self.test_count += 1
        return test
