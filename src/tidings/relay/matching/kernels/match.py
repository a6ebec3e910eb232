"""All patterns of a forest against one document: semi-joins up the distinct subtrees, then down the distinct trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.kernels.arrays import I32, I64, Int
from tidings.kernels.jit import kernel, uncounted
from tidings.relay.matching.kernels.list_table import (
    CHILD,
    KEEP_LOWER,
    KEEP_UPPER,
    LISTS,
    NO_ROOM,
    ListTable,
    empty_table,
    has_room,
    intern,
    semi_join,
    with_room,
)


class ForestArrays(NamedTuple):
    """Patterns as distinct subtrees and distinct trees; an edge to a subtree is 2 * its number + its axis.

    subtree_tests: what the first node of a subtree is tested for, a label or a label with a constant. Its children are
        child_edges[child_starts[s]:child_starts[s + 1]]; they have smaller numbers.
    places: nodes of distinct trees. Those of tree t are tree_starts[t]:tree_starts[t + 1], parents before their children;
        place_parents is -1 for the first.
    """

    subtree_tests: I32
    child_starts: I64
    child_edges: I32
    tree_starts: I64
    place_edges: I32
    place_parents: I32


@kernel
def match_forest(forest: ForestArrays, parents: I32, ends: I32, test_starts: I64, tested: I32) -> tuple[I32, I64, I32]:
    """(nodes, starts, place_lists): the matches of place p are list place_lists[p], nodes[starts[l]:starts[l + 1]].

    The document's nodes that pass test k are tested[test_starts[k]:test_starts[k + 1]].
    """
    table = empty_table(len(parents))
    test_lists = np.zeros(len(test_starts) - 1, np.int32)
    for test in range(len(test_lists)):
        first, stop = test_starts[test], test_starts[test + 1]
        if first < stop:
            if not has_room(table):
                table = with_room(table)
            test_lists[test] = _copied(table, tested[first:stop])
    subtree_lists = np.zeros(len(forest.subtree_tests), np.int32)
    subtree = _climb(table, forest, parents, ends, test_lists, subtree_lists, np.int64(0))
    while subtree < len(subtree_lists):
        table = with_room(table)
        subtree = _climb(table, forest, parents, ends, test_lists, subtree_lists, subtree)
    place_lists = np.zeros(len(forest.place_edges), np.int32)
    tree = _descend(table, forest, parents, ends, subtree_lists, place_lists, np.int64(0))
    while tree < len(forest.tree_starts) - 1:
        table = with_room(table)
        tree = _descend(table, forest, parents, ends, subtree_lists, place_lists, tree)
    starts = table.starts[: table.counts[LISTS] + 1].copy()
    return table.nodes[: starts[-1]].copy(), starts, place_lists


@uncounted
def _climb(
    table: ListTable, forest: ForestArrays, parents: I32, ends: I32, test_lists: I32, subtree_lists: I32, at: Int
) -> Int:
    """Sets the lists of all subtrees from `at` on, and says at which one room was short; behind the last if it was not."""
    for subtree in range(at, len(subtree_lists)):
        found = np.int64(test_lists[forest.subtree_tests[subtree]])
        first, stop = forest.child_starts[subtree], forest.child_starts[subtree + 1]
        for i in range(first, stop):
            # A part that matches nothing ends the work for all trees it is in.
            if subtree_lists[forest.child_edges[i] >> 1] == 0:
                found = np.int64(0)
        for i in range(first, stop):
            if found == 0:
                break
            edge = np.int64(forest.child_edges[i])
            lower = np.int64(subtree_lists[edge >> 1])
            found = semi_join(table, parents, ends, KEEP_UPPER + (edge & 1), found, lower)
            if found == NO_ROOM:
                return subtree
        subtree_lists[subtree] = found
    return np.int64(len(subtree_lists))


@uncounted
def _descend(
    table: ListTable, forest: ForestArrays, parents: I32, ends: I32, subtree_lists: I32, place_lists: I32, at: Int
) -> Int:
    """Sets the lists of the places of all trees from `at` on, and says at which one room was short, as `_climb`."""
    trees = np.int64(len(forest.tree_starts) - 1)
    for tree in range(at, trees):
        first, stop = forest.tree_starts[tree], forest.tree_starts[tree + 1]
        root = np.int64(forest.place_edges[first])
        found = np.int64(subtree_lists[root >> 1])
        if found != 0 and root & 1 == CHILD:
            if not has_room(table):
                return tree
            found = _only_root(table, found)
        place_lists[first] = found
        if found == 0:
            continue
        for place in range(first + 1, stop):
            edge = np.int64(forest.place_edges[place])
            upper, lower = np.int64(place_lists[forest.place_parents[place]]), np.int64(subtree_lists[edge >> 1])
            found = semi_join(table, parents, ends, KEEP_LOWER + (edge & 1), upper, lower)
            if found == NO_ROOM:
                return tree
            place_lists[place] = found
    return trees


@uncounted
def _copied(table: ListTable, nodes: I32) -> Int:
    first = table.starts[table.counts[LISTS]]
    for i in range(len(nodes)):
        table.nodes[first + i] = nodes[i]
    return intern(table, np.int64(len(nodes)))


@uncounted
def _only_root(table: ListTable, number: Int) -> Int:
    """The list of those of its nodes that are the document's root, which is node 0."""
    if table.nodes[table.starts[number]] != 0:
        return np.int64(0)
    table.nodes[table.starts[table.counts[LISTS]]] = 0
    return intern(table, np.int64(1))
