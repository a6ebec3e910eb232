"""The matches of many patterns in a document, as `node_matches` of each of them says, with the work shared between them.

Building the matcher merges equal parts of the patterns (`forest.py`). Per document, the semi-joins of `evaluate.py` are done
once per distinct subtree of the patterns, and once per distinct pair of lists (`kernels/list_table.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tidings.kernels.arrays import I32, I64
from tidings.relay.document import Document
from tidings.relay.matching.forest import PatternForest
from tidings.relay.matching.kernels.match import match_forest
from tidings.relay.pattern import Pattern


@dataclass(frozen=True, slots=True)
class Matches:
    """What patterns match in one document. Lists of document nodes are numbered, equal ones once; 0 is the empty list.

    nodes, starts: list l is nodes[starts[l]:starts[l + 1]], in document order. node_lists: the list of each node of each
    pattern, one pattern after the other; those of pattern i are node_lists[node_starts[i]:node_starts[i + 1]].
    """

    nodes: I32
    starts: I64
    node_lists: I32
    node_starts: I64 = field(repr=False)

    def __len__(self) -> int:
        return len(self.node_starts) - 1

    def of(self, pattern: int) -> list[I32]:
        """Per node of the pattern, its images in all embeddings, in document order; all are empty if there is no embedding."""
        lists = self.node_lists[self.node_starts[pattern] : self.node_starts[pattern + 1]]
        return [self.nodes[self.starts[number] : self.starts[number + 1]] for number in lists]

    def all(self) -> list[list[list[int]]]:
        """What `of` says of every pattern, as lists of Python's; equal ones are the same object, not to be changed."""
        nodes, starts = self.nodes.tolist(), self.starts.tolist()
        lists = [nodes[first:behind] for first, behind in pairwise(starts)]
        each = [lists[number] for number in self.node_lists.tolist()]
        return [each[first:behind] for first, behind in pairwise(self.node_starts.tolist())]

    def matched(self) -> I64:
        """The patterns that have an embedding, ascending."""
        return np.flatnonzero(self.node_lists[self.node_starts[:-1]])


class PatternMatcher:
    """Matches all of the patterns against one document after the other; keeps nothing of a document."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._forest = PatternForest(patterns)

    def __len__(self) -> int:
        return len(self._forest.node_starts) - 1

    def match(self, document: Document) -> Matches:
        forest = self._forest
        parents, ends = np.array(document.parents, np.int32), np.array(document.ends, np.int32)
        test_starts, tested = self._tested(document)
        nodes, starts, place_lists = match_forest(forest.arrays, parents, ends, test_starts, tested)
        return Matches(nodes, starts, place_lists[forest.node_places], forest.node_starts)

    def _tested(self, document: Document) -> tuple[I64, I32]:
        """The document's nodes that pass each test, as `match_forest` wants them."""
        tests: list[int] = []
        passing: list[int] = []
        for label, nodes in document.nodes_of.items():
            test = self._forest.labels.get(label)
            if test is not None:
                tests += [test] * len(nodes)
                passing += nodes
            constants = self._forest.constants.get(label)
            if constants is not None:
                for node in nodes:
                    test = constants.get(document.val(node))
                    if test is not None:
                        tests.append(test)
                        passing.append(node)
        numbers = np.array(tests, np.int64)
        starts = np.concatenate(
            (np.zeros(1, np.int64), np.cumsum(np.bincount(numbers, minlength=self._forest.test_count)))
        )
        return starts, np.array(passing, np.int32)[np.argsort(numbers, kind="stable")]
