"""What all sets of a mesh have in common: how their records are laid out, and in which order kinds are combined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.meshes_arrays import CELL_WORDS, ENTRY_WORDS, I64, KNOT_HEADS, KNOT_WORDS, NONE

# Fields of a step: the kind to add, the edge it is found by, the kind that this leads to, and its checks.
STEP_KIND, STEP_EDGE, STEP_OTHER, STEP_CHECKS, STEP_CHECKS_END, STEP_FIELDS = range(6)


class Plan(NamedTuple):
    """Kinds are numbered from 0; the last number, one beyond, is that of whole combinations."""

    words: I64
    """Length of an entry of each kind, of an entry of a whole combination, and of a knot."""
    cells: I64
    """[kind, edge]: where in an entry of the kind its cell of the edge is; NONE if the edge is not of the kind."""
    heads: I64
    """[kind, edge]: where in a knot the first entry of the kind is."""
    steps: NDArray[np.int64]
    """[kind, step, STEP_FIELDS]: from an item of the kind to all others."""
    checks: I64
    """[check, 2]: (edge, other kind): there the added item must be tied to that of the other kind as well."""


def plan_of(kinds: int, edges: Sequence[tuple[int, int]]) -> Plan:
    """For kinds 0 .. kinds - 1, all connected by edges between two different ones each."""
    words = np.full(kinds + 2, ENTRY_WORDS, np.int64)
    cells = np.full((kinds + 1, len(edges)), NONE, np.int64)
    heads = np.full((kinds + 1, len(edges)), NONE, np.int64)
    for edge, ends in enumerate(edges):
        for end, kind in enumerate(ends):
            cells[kind, edge], heads[kind, edge] = words[kind], KNOT_HEADS + end
            words[kind] += CELL_WORDS
    words[-1] = KNOT_WORDS
    steps = np.zeros((kinds, kinds - 1, STEP_FIELDS), np.int64)
    checks: list[tuple[int, int]] = []
    for kind in range(kinds):
        for at, (added, found) in enumerate(_order(kinds, edges, kind)):
            steps[kind, at] = added, *found[0], len(checks), len(checks) + len(found) - 1
            checks.extend(found[1:])
    return Plan(words, cells, heads, steps, np.array(checks, np.int64).reshape(-1, 2))


def _order(kinds: int, edges: Sequence[tuple[int, int]], first: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """The other kinds, each after one that it has an edge with: (kind, [(edge, kind it leads to)])."""
    placed = [first]
    order: list[tuple[int, list[tuple[int, int]]]] = []
    while len(placed) < kinds:
        before = len(placed)
        for kind in range(kinds):
            found = [
                (number, other)
                for number, (one, two) in enumerate(edges)
                for own, other in ((one, two), (two, one))
                if own == kind and other in placed
            ]
            if kind not in placed and found:
                placed.append(kind)
                order.append((kind, found))
        if len(placed) == before:
            raise ValueError("kinds without edges to the others have no combinations")
    return order
