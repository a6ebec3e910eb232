"""A check of all that the arrays of `ContainedIntervals` promise."""

from __future__ import annotations

from collections import Counter

from research.strategies.join.kernels.contained_intervals import (
    BLOCK,
    BLOCK_AT,
    BLOCKS,
    COUNT,
    FROM_HI,
    FROM_LO,
    GREATEST_HI,
    HI,
    LEAST_HI,
    LO,
    POOL_FREE,
    POOL_TOP,
    REST_HI,
    ContainedIntervals,
)

Interval = tuple[int, int]


def check_invariants(held: ContainedIntervals, intervals: Counter[Interval]) -> None:
    """The blocks hold just these intervals, in order; the directory says what is in them; no block is lost."""
    found: list[Interval] = []
    parts: list[list[Interval]] = []
    blocks = []
    for d in range(int(held._head[BLOCKS])):
        row = held._directory[:, d].tolist()
        assert 0 < row[COUNT] <= BLOCK
        block = held._pool[row[BLOCK_AT], :, : row[COUNT]]
        part = list(zip(block[LO].tolist(), block[HI].tolist(), strict=True))
        if d:
            assert found[-1] <= (row[FROM_LO], row[FROM_HI]) <= part[0]
        assert (row[LEAST_HI], row[GREATEST_HI]) == (min(block[HI]), max(block[HI]))
        found += part
        parts.append(part)
        blocks.append(row[BLOCK_AT])
    rest = None
    for d in range(len(parts) - 1, -1, -1):
        least = min(hi for _, hi in parts[d])
        rest = least if rest is None else min(rest, least)
        assert held._directory[REST_HI, d] == rest
    assert found == sorted(intervals.elements())
    assert len(held) == len(found)
    free = int(held._head[POOL_FREE])
    while free >= 0:
        blocks.append(free)
        free = int(held._pool[free, 0, 0])
    assert sorted(blocks) == list(range(int(held._head[POOL_TOP])))


def any_within(intervals: Counter[Interval], lo_from: int, at: int, hi_to: int) -> bool:
    """Whether an interval lies in a gap and contains a number: the definition."""
    return any(lo_from <= lo <= at <= hi <= hi_to for lo, hi in intervals.elements())
