"""What `SortedLists` means: sorted lists, recomputed; and a check of all that the arrays promise."""

from __future__ import annotations

import numpy as np

from research.strategies.join.kernels.sorted_lists import BLOCK, BLOCKS, FREE, OFFSET, ROOM, ROOM_MIN, SIZE, SortedLists
from tidings.kernels.buddy import CLASSES
from tidings.kernels.extents import CAPACITY, TOP
from tidings.model.codes import CODE_MAX, CODE_MIN

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


def check_invariants(lists: SortedLists) -> None:
    """Pairs are in order, no block is empty, and every word of the pool has one use."""
    extents: list[tuple[int, int]] = []
    codes, entries = lists._codes.tolist(), lists._entries.tolist()
    for number in range(len(lists)):
        offset, room, size, height = (int(lists._lists[number, f]) for f in (OFFSET, ROOM, SIZE, BLOCKS))
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
    for k in range(CLASSES):
        at = int(lists._head[FREE + k])
        while at >= 0:
            extents.append((at, 1 << k))
            at = entries[at]
    end = 0
    for offset, room in sorted(extents):
        assert offset == end
        end += room
    assert end == lists._head[TOP] <= len(codes) == lists._head[CAPACITY]


def check(lists: SortedLists, expected: list[set[Pair]], marks: list[int]) -> None:
    """The lists hold just these pairs, and tell so in every way."""
    check_invariants(lists)
    # In another order than that of their numbers, and one of them twice.
    asked = [*range(len(expected))[::-1], 0]
    contents = [sorted(expected[number]) for number in asked]
    assert lists.sizes(asked).tolist() == [len(pairs) for pairs in contents]
    starts, entries, codes = lists.gather(asked)
    distinct_starts, distinct = lists.distinct(asked)
    nearest_starts, near = lists.nearest(asked, np.array(sorted(marks), np.int64))
    for i, pairs in enumerate(contents):
        part = slice(starts[i], starts[i + 1])
        assert list(zip(codes[part].tolist(), entries[part].tolist(), strict=True)) == pairs
        assert distinct[distinct_starts[i] : distinct_starts[i + 1]].tolist() == sorted({c for c, _ in pairs})
        assert near[nearest_starts[i] : nearest_starts[i + 1]].tolist() == nearest(pairs, marks)
    assert (starts[-1], distinct_starts[-1], nearest_starts[-1]) == (len(codes), len(distinct), len(near))
