"""What `Ladders` means: sorted lists, recomputed; and a check of all that the arrays promise."""

from __future__ import annotations

import numpy as np

from tidings.kernels.ladders import CODE_MAX, CODE_MIN, Ladders
from tidings.kernels.ladders_arrays import (
    BLOCK,
    CLASSES,
    FREE,
    FREE_LISTS,
    HEIGHT,
    OFFSET,
    ROOM,
    ROOM_MIN,
    SIZE,
    TOP,
)

Pair = tuple[int, int]
"""A code and an entry."""


def gap(pairs: list[Pair], code: int) -> tuple[int, int] | None:
    """The range around a code that is free of others' codes; None if another has the very code."""
    codes = [other for other, _ in pairs]
    if code in codes:
        return None
    below, above = [c for c in codes if c < code], [c for c in codes if c > code]
    return (max(below) + 1 if below else CODE_MIN, min(above) - 1 if above else CODE_MAX)


def nearest(pairs: list[Pair], marks: list[int]) -> list[int]:
    found = set()
    for mark in marks:
        below, above = [c for c, _ in pairs if c <= mark], [c for c, _ in pairs if c >= mark]
        found |= {max(below)} if below else set()
        found |= {min(above)} if above else set()
    return sorted(found)


def check_invariants(ladders: Ladders) -> None:
    """Pairs are in order, no block of a tall ladder is empty, and every word of the pool has one use."""
    extents: list[tuple[int, int]] = []
    codes, entries = ladders._codes.tolist(), ladders._entries.tolist()
    for ladder in range(len(ladders)):
        offset, room, size, height = (int(ladders._ladders[ladder, f]) for f in (OFFSET, ROOM, SIZE, HEIGHT))
        if room:
            extents.append((offset, room))
        if height == 0:
            assert size <= room <= BLOCK and (room <= max(ROOM_MIN, 4 * size))
            assert bool(room) == bool(size)
            blocks = [(offset, size)]
        else:
            assert 1 < height <= room // 2
            half = offset + room // 2
            blocks = list(zip(codes[half : half + height], entries[half : half + height], strict=True))
            assert all(0 < count <= BLOCK for _, count in blocks)
            assert sum(count for _, count in blocks) == size
            extents += [(start, BLOCK) for start, _ in blocks]
        pairs: list[Pair] = []
        for i, (start, count) in enumerate(blocks):
            part = list(zip(codes[start : start + count], entries[start : start + count], strict=True))
            if i:
                assert pairs[-1] < (codes[offset + i], entries[offset + i]) <= part[0]
            pairs += part
        assert pairs == sorted(set(pairs))
    free = 0
    for k in range(CLASSES):
        at = int(ladders._head[FREE_LISTS + k])
        while at >= 0:
            extents.append((at, ROOM_MIN << k))
            free += ROOM_MIN << k
            at = entries[at]
    end = 0
    for offset, room in sorted(extents):
        assert offset == end
        end += room
    assert end == ladders._head[TOP] <= len(codes)
    assert free == ladders._head[FREE]


def check(ladders: Ladders, expected: list[set[Pair]], marks: list[int]) -> None:
    """The ladders hold just these pairs, and tell so in every way."""
    check_invariants(ladders)
    # In another order than that of their numbers, and one of them twice.
    asked = [*range(len(expected))[::-1], 0]
    contents = [sorted(expected[ladder]) for ladder in asked]
    assert ladders.sizes(asked).tolist() == [len(pairs) for pairs in contents]
    starts, entries, codes = ladders.gather(asked)
    distinct_starts, distinct = ladders.distinct(asked)
    nearest_starts, near = ladders.nearest(asked, np.array(sorted(marks), np.int64))
    for i, pairs in enumerate(contents):
        part = slice(starts[i], starts[i + 1])
        assert list(zip(codes[part].tolist(), entries[part].tolist(), strict=True)) == pairs
        assert distinct[distinct_starts[i] : distinct_starts[i + 1]].tolist() == sorted({c for c, _ in pairs})
        assert near[nearest_starts[i] : nearest_starts[i + 1]].tolist() == nearest(pairs, marks)
    assert (starts[-1], distinct_starts[-1], nearest_starts[-1]) == (len(codes), len(distinct), len(near))
