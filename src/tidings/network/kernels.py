"""Compiled loops of the network: which cells regions meet, which brokers touch, and trees over those that a message meets."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.jit import kernel


@kernel
def meets(lo: Any, hi: Any, first: int, last: int, cell_lo: Any, cell_hi: Any) -> bool:
    """Whether any of the boxes first .. last - 1 meets a cell."""
    for box in range(first, last):
        does = True
        for dim in range(lo.shape[1]):
            low, high = max(lo[box, dim], cell_lo[dim]), min(hi[box, dim], cell_hi[dim])
            if low > high:
                does = False
                break
        if does:
            return True
    return False


@kernel
def mark_meetings(lo: Any, hi: Any, starts: Any, cell_lo: Any, cell_hi: Any, owner: Any, met: Any) -> None:
    """met [messages, owners] becomes true where the boxes starts[m] .. of message m meet a cell of the owner."""
    for message in range(len(starts) - 1):
        for cell in range(len(owner)):
            if not met[message, owner[cell]]:
                met[message, owner[cell]] = meets(
                    lo, hi, starts[message], starts[message + 1], cell_lo[cell], cell_hi[cell]
                )


@kernel
def mark_touching(cell_lo: Any, cell_hi: Any, owner: Any, touching: Any) -> None:
    """touching [owners, owners] becomes true for owners of cells that share a face.

    Two cells of a partition share a face if they are next to each other along one dimension and overlap along all others.
    """
    for a in range(len(owner)):
        for b in range(a):
            if owner[a] == owner[b] or touching[owner[a], owner[b]]:
                continue
            beside = 0
            for dim in range(cell_lo.shape[1]):
                if cell_lo[a, dim] <= cell_hi[b, dim] and cell_lo[b, dim] <= cell_hi[a, dim]:
                    continue
                # An upper end of INT64_MAX has no cell behind it, and the sum would overflow.
                is_below = cell_hi[a, dim] < cell_lo[b, dim] and cell_hi[a, dim] + 1 == cell_lo[b, dim]
                is_above = cell_hi[b, dim] < cell_lo[a, dim] and cell_hi[b, dim] + 1 == cell_lo[a, dim]
                beside += 1 if is_below or is_above else 2
            if beside == 1:
                touching[owner[a], owner[b]] = True
                touching[owner[b], owner[a]] = True


@kernel
def spread(met: Any, starts: Any, beside: Any, distance: Any, order: Any, parent: Any) -> int:
    """Breadth-first trees over the met owners; returns how many there are.

    Neighbours of owner o are beside[starts[o]:starts[o + 1]]. Of each connected component the owner with the least
    `distance` is the root, parent -1. In `order`, the children of an owner are next to each other, and behind it.
    """
    owners = len(starts) - 1
    seen = np.zeros(owners, np.bool_)
    found = 0
    while True:
        root = -1
        for owner in range(owners):
            if met[owner] and not seen[owner] and (root < 0 or distance[owner] < distance[root]):
                root = owner
        if root < 0:
            return found
        order[found], parent[found] = root, -1
        seen[root] = True
        at = found
        found += 1
        while at < found:
            owner = order[at]
            for k in range(starts[owner], starts[owner + 1]):
                other = beside[k]
                if met[other] and not seen[other]:
                    seen[other] = True
                    order[found], parent[found] = other, owner
                    found += 1
            at += 1


@kernel
def descend(
    lo: Any,
    hi: Any,
    child_starts: Any,
    child: Any,
    cover_starts: Any,
    cover_lo: Any,
    cover_hi: Any,
    order: Any,
    parent: Any,
) -> int:
    """Who is reached down a tree from node 0 along links whose covers meet the region; returns how many.

    Children of node n are child[child_starts[n]:child_starts[n + 1]]; the cover of the link to node c are the boxes
    cover_starts[c] .. of cover_lo, cover_hi. The root is reached if its own cover meets the region.
    """
    found = 0
    if _reaches(lo, hi, cover_starts, cover_lo, cover_hi, 0):
        order[0], parent[0] = 0, -1
        found = 1
    at = 0
    while at < found:
        node = order[at]
        for k in range(child_starts[node], child_starts[node + 1]):
            if _reaches(lo, hi, cover_starts, cover_lo, cover_hi, child[k]):
                order[found], parent[found] = child[k], node
                found += 1
        at += 1
    return found


@kernel
def _reaches(lo: Any, hi: Any, cover_starts: Any, cover_lo: Any, cover_hi: Any, node: int) -> bool:
    for box in range(cover_starts[node], cover_starts[node + 1]):
        if meets(lo, hi, 0, len(lo), cover_lo[box], cover_hi[box]):
            return True
    return False
