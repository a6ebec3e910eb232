"""Embeddings of patterns in patterns, for many pairs: masks of images in machine words.

A pattern's nodes are numbered in preorder, at most 64 of them, so that a set of nodes is one word. `images` is the bottom-up
and top-down pass of `tidings.relay.embedding.images`; `signature` rules most pairs out before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.intrinsics import lowest_bit
from tidings.kernels.jit import kernel

U64 = np.uint64
ONE = np.uint64(1)
WORDS = 4
"""Of a signature."""


@kernel(nogil=True)
def masks_of_nodes(first_node: Any, parent: Any, is_child: Any, masks: Any, begin: Any, end: Any) -> None:
    """Per node: masks[:, 0] its parent if it is a `/` step, 1 all nodes above, 2 its `/` children, 3 all nodes below."""
    for pattern in range(begin, end):
        start = first_node[pattern]
        stop = first_node[pattern + 1]
        masks[start:stop] = 0
        for node in range(start + 1, stop):
            above = start + parent[node]
            bit = ONE << U64(node - start)
            masks[node, 1] = masks[above, 1] | (ONE << U64(parent[node]))
            if is_child[node]:
                masks[node, 0] = ONE << U64(parent[node])
                masks[above, 2] |= bit
        for node in range(stop - 1, start, -1):
            masks[start + parent[node], 3] |= masks[node, 3] | (ONE << U64(node - start))


@kernel(nogil=True, _nrt=False)
def _set(words: Any, row: Any, value: Any) -> None:
    """Sets the bit of a signature that a number falls on."""
    mixed = U64(value) * U64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> U64(29)
    mixed *= U64(0xBF58476D1CE4E5B9)
    place = mixed >> U64(56)
    words[row, place >> U64(6)] |= ONE << (place & U64(63))


@kernel(nogil=True, _nrt=False)
def signatures(
    first_node: Any,
    label: Any,
    parent: Any,
    is_child: Any,
    constant: Any,
    labels: Any,
    words: Any,
    begin: Any,
    end: Any,
) -> None:
    """A pattern that embeds in another has no bit that the other has not: labels, pairs of them above each other, constants."""
    for pattern in range(begin, end):
        start = first_node[pattern]
        words[pattern] = 0
        if is_child[start]:
            _set(words, pattern, 5 * np.int64(label[start]) + 1)
        for node in range(start, first_node[pattern + 1]):
            _set(words, pattern, 5 * np.int64(label[node]))
            if constant[node] >= 0:
                _set(words, pattern, 5 * (np.int64(constant[node]) * labels + label[node]) + 2)
            above = start + parent[node]
            if node > start and is_child[node]:
                _set(words, pattern, 5 * (np.int64(label[above]) * labels + label[node]) + 3)
            at = node
            while at > start:
                at = start + parent[at]
                _set(words, pattern, 5 * (np.int64(label[at]) * labels + label[node]) + 4)


@kernel(nogil=True, _nrt=False)
def features(
    first_node: Any, label: Any, parent: Any, labels: Any, begin: Any, end: Any, found: Any, first: Any
) -> Any:
    """What patterns are filed under: labels (label + 1) and labels above each other ((above + 1) * labels + label + 1).

    first[i]:first[i + 1] are those of pattern begin + i in `found`. Returns how much room they take; more than there is if
    they did not fit.
    """
    at = np.int64(0)
    first[0] = 0
    for pattern in range(begin, end):
        start = first_node[pattern]
        for node in range(start, first_node[pattern + 1]):
            above = node
            key = np.int64(label[node]) + 1
            while True:
                if at < len(found):
                    found[at] = key
                at += 1
                if above == start:
                    break
                above = start + parent[above]
                key = (np.int64(label[above]) + 1) * labels + label[node] + 1
        first[pattern - begin + 1] = at
    return at


@kernel(nogil=True, _nrt=False)
def images(nodes: Any, masks: Any, source: Any, target: Any, alike: Any, found: Any) -> Any:
    """Whether the source embeds in the target; found[i] is then the mask of the images of the source's node i.

    alike: per label, the mask of the target's nodes with it.
    """
    first_node, label, parent, is_child, constant, _ = nodes
    start = first_node[source]
    count = first_node[source + 1] - start
    base = first_node[target]
    for i in range(count):
        node = start + i
        mask = alike[label[node]]
        if constant[node] >= 0:
            rest = mask
            while rest:
                if constant[base + lowest_bit(rest)] != constant[node]:
                    mask &= ~(rest & (~rest + ONE))
                rest &= rest - ONE
        if mask == 0:
            return False
        found[i] = mask
    if is_child[start]:
        found[0] &= ONE if is_child[base] else U64(0)
    for i in range(count - 1, 0, -1):
        node = start + i
        column = 0 if is_child[node] else 1
        allowed = U64(0)
        rest = found[i]
        while rest:
            allowed |= masks[base + lowest_bit(rest), column]
            rest &= rest - ONE
        found[parent[node]] &= allowed
        if found[parent[node]] == 0:
            return False
    if found[0] == 0:
        return False
    for i in range(1, count):
        node = start + i
        column = 2 if is_child[node] else 3
        allowed = U64(0)
        rest = found[parent[node]]
        while rest:
            allowed |= masks[base + lowest_bit(rest), column]
            rest &= rest - ONE
        found[i] &= allowed
    return True


@kernel(nogil=True, _nrt=False)
def coverage(nodes: Any, bits: Any, source: Any, target: Any, found: Any) -> Any:
    """Which needs of the target the source covers, its images being found.

    bits: per node and need (`tidings.relay.embedding.Need`) the bit it has among its pattern's needs, 0 if it has no such.
    """
    first_node, _, _, _, constant, carried = nodes
    start = first_node[source]
    base = first_node[target]
    covered = U64(0)
    for node in range(start, first_node[source + 1]):
        rest = found[node - start]
        while rest:
            image = base + lowest_bit(rest)
            covered |= bits[image, 0]
            if constant[node] >= 0 or carried[node] > 0:
                covered |= bits[image, 1]
            if carried[node] > 0:
                covered |= bits[image, 2]
            if carried[node] > 1:
                covered |= bits[image, 3]
            rest &= rest - ONE
    return covered
