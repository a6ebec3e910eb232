"""Tournament tree of thresholds: which of the members that follow a row are to be told its new value?

Every member waits in a cell of its own until the value leaves its interval, (low, high), or the time passes `last`. Cells
stand side by side, members in order of arrival. Above every `1 << fan` cells stands a node with the largest low, the least high
and the least last of them, above those nodes the next level, and so on:

    nodes          [ max low, min high, min last ]        only nodes with somebody due are opened
    cells   [low, high, last]  [low, high, last]  ..      up to `1 << fan` cells are scanned flat, without nodes

Finding k of n members costs at most k scans of a block per level; a member that was told gets its new thresholds in place.

Interval ends are int64 codes of doubles, so all is integers. A run of cells has four parts, of which the first three have room
for nodes: lows, highs, lasts, versions last told. Capacities are powers of two; unused cells never are due.
"""
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np

from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64, Int

MOVED, MOVED_PERCENT, MOVED_RATIO = 0, 1, 2
"""Kinds of movement."""

NO_TIME = -(2**63)
NEVER = 2**63 - 1
_BEFORE_ALL = -(2**63)
_AFTER_ALL = 2**63 - 1
_MIRROR = np.int64(2**63 - 1)


@kernel
def double_of(code: Int) -> float:
    """The double a code stands for."""
    return np.int64(code if code >= 0 else code ^ _MIRROR).view(np.float64)


@kernel
def code_of_double(value: float) -> Int:
    bits = np.float64(value + 0.0).view(np.int64)
    return bits if bits >= 0 else bits ^ _MIRROR


@kernel
def interval_around(kind: Int, told: float, least: float) -> tuple[Int, Int]:
    """Codes of the thresholds: the very expressions of `tidings.families.drift.movement`."""
    if kind == MOVED:
        return code_of_double(told - least), code_of_double(told + least)
    if kind == MOVED_PERCENT:
        step = abs(told) * least / 100.0
        return code_of_double(told - step), code_of_double(told + step)
    return code_of_double(told / least), code_of_double(told * least)


@kernel
def patient_until(time: Int, patience: Int) -> Int:
    """The last time by a row's clock that is not yet too long after `time`; NEVER where it never will be."""
    if patience == 0 or time == NO_TIME or time > NEVER - (patience - 1):
        return NEVER
    return time + (patience - 1)


@kernel
def stride_of(size: Int, fan: Int) -> Int:
    """Cells and nodes of a tree with room for `1 << size` members."""
    count = total = 1 << size
    while count > 1 << fan:
        count >>= fan
        total += count
    return total


@kernel
def words_of(size: Int, fan: Int) -> Int:
    """Words that a run of `1 << size` cells takes."""
    return 3 * stride_of(size, fan) + (1 << size)


@kernel
def clear(words: I64, cells: Int, size: Int, fan: Int, first: Int) -> None:
    """Empties all cells from the first on, and all nodes."""
    stride = stride_of(size, fan)
    for i in range(first, stride):
        words[cells + i] = _BEFORE_ALL
        words[cells + stride + i] = _AFTER_ALL
        words[cells + 2 * stride + i] = _AFTER_ALL


@kernel
def _sum_up(words: I64, cells: Int, stride: Int, first: Int, fan: Int, node: Int) -> None:
    """Sets a node from its children."""
    low, high, last = np.int64(_BEFORE_ALL), np.int64(_AFTER_ALL), np.int64(_AFTER_ALL)
    for i in range(cells + first, cells + first + (1 << fan)):
        low = max(low, words[i])
        high = min(high, words[i + stride])
        last = min(last, words[i + 2 * stride])
    words[cells + node] = low
    words[cells + stride + node] = high
    words[cells + 2 * stride + node] = last


@kernel
def refresh(words: I64, cells: Int, size: Int, fan: Int, place: Int) -> None:
    """Corrects the nodes above a cell that has changed."""
    stride = stride_of(size, fan)
    level, count, at = 0, 1 << size, place
    while count > 1 << fan:
        at >>= fan
        _sum_up(words, cells, stride, level + (at << fan), fan, level + count + at)
        level += count
        count >>= fan


@kernel
def refresh_several(words: I64, cells: Int, size: Int, fan: Int, places: I64, start: Int, stop: Int) -> None:
    """Corrects the nodes above changed cells, places[start:stop] in ascending order; the list is overwritten."""
    stride = stride_of(size, fan)
    level, count = 0, 1 << size
    while count > 1 << fan:
        kept = start
        for i in range(start, stop):
            parent = places[i] >> fan
            if kept == start or places[kept - 1] != parent:
                _sum_up(words, cells, stride, level + (parent << fan), fan, level + count + parent)
                places[kept] = parent
                kept += 1
        stop = kept
        level += count
        count >>= fan


@kernel
def rebuild(words: I64, cells: Int, size: Int, fan: Int) -> None:
    """Sets all nodes."""
    stride = stride_of(size, fan)
    level, count = 0, 1 << size
    while count > 1 << fan:
        for parent in range(count >> fan):
            _sum_up(words, cells, stride, level + (parent << fan), fan, level + count + parent)
        level += count
        count >>= fan


@kernel
def find_due(words: I64, cells: Int, size: Int, fan: Int, value: Int, time: Int, found: I64) -> tuple[Int, Int]:
    """Members due at a value (its code) and time: their places are found[start:stop], ascending.

    `found` must have room for all cells and nodes.
    """
    stride = stride_of(size, fan)
    count, level = 1 << size, 0
    while count > 1 << fan:
        level += count
        count >>= fan
    stop = 0
    for i in range(cells + level, cells + level + count):
        if value >= words[i + stride] or value <= words[i] or time > words[i + 2 * stride]:
            found[stop] = i - cells - level
            stop += 1
    start = 0
    while level > 0 and start < stop:
        count <<= fan
        level -= count
        end = stop
        for at in range(start, end):
            first = cells + level + (found[at] << fan)
            for i in range(first, first + (1 << fan)):
                if value >= words[i + stride] or value <= words[i] or time > words[i + 2 * stride]:
                    found[stop] = i - cells - level
                    stop += 1
        start = end
    return start, stop
