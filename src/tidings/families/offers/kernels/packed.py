"""Packed constraints (`pack` of `tidings.families.offers.constraint`) as boxes, many at once: of rows, and of subscriptions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.families.offers.constraint import (
    AXIS,
    AXIS_WORDS,
    BOX_AXES,
    BOX_EQUAL,
    BOX_WORDS,
    BOXES,
    HEADER_WORDS,
    WORDS,
)
from tidings.kernels.arrays import I64, U8, Int
from tidings.kernels.jit import kernel
from tidings.kernels.rows.read import FIRST_PAGE, NONE, PAGE, PAGE_BITS, mix, record_of, rows_at, text_at

CONSTRAINT = 2
"""Column of a row that has the packed constraint."""
SEED = 0x51ED270B35A3C4F1
"""Of hashes: `mix` wants no small numbers to begin with."""

# Fields of a box: which of the given constraints it is of, where its head is among the words, where the texts of its constraint
# begin; hashes of its axes alone, and of these with the mask of those that have a single value.
OF, AT, TEXT, AXES_HASH, KIND_HASH, BOX_FIELDS = range(6)


class BoxBatch(NamedTuple):
    """Boxes of many constraints. boxes: [boxes, BOX_FIELDS]."""

    words: I64
    boxes: I64
    text: U8

    def axes(self, box: int) -> tuple[int, ...]:
        """The axes of a box."""
        first = int(self.boxes[box, AT])
        count = int(self.words[first + BOX_AXES])
        first += BOX_WORDS + AXIS
        return tuple(self.words[first : first + AXIS_WORDS * count : AXIS_WORDS].tolist())

    def equal(self, box: int) -> int:
        """Mask of the axes on which it has a single value."""
        return int(self.words[self.boxes[box, AT] + BOX_EQUAL])


def read_batch(text: U8, starts: I64) -> BoxBatch:
    """The boxes of packed constraints that begin at these places of a text."""
    word_count, box_count = _count(text, starts)
    words, boxes = np.empty(word_count, np.int64), np.empty((box_count, BOX_FIELDS), np.int64)
    _read(text, starts, words, boxes)
    return BoxBatch(words, boxes, text)


@kernel
def _word(text: U8, at: Int) -> Int:
    """Eight bytes as a number; they need not be aligned."""
    value = np.uint64(0)
    for i in range(8):
        value |= np.uint64(text[at + i]) << np.uint64(8 * i)
    return np.int64(value)


@kernel
def _count(text: U8, starts: I64) -> tuple[Int, Int]:
    """(words, boxes) of the constraints at these places."""
    words = boxes = np.int64(0)
    for start in starts:
        words += _word(text, start + 8 * WORDS)
        boxes += _word(text, start + 8 * BOXES)
    return words, boxes


@kernel
def _read(text: U8, starts: I64, words: I64, boxes: I64) -> None:
    """Copies the words of constraints, and notes their boxes."""
    at = n = np.int64(0)
    for i in range(len(starts)):
        start = starts[i]
        count = _word(text, start + 8 * WORDS)
        for word in range(count):
            words[at + word] = _word(text, start + 8 * word)
        box = at + HEADER_WORDS
        for _ in range(words[at + BOXES]):
            axes = words[box + BOX_AXES]
            hashed = np.int64(SEED)
            for axis in range(axes):
                hashed = mix(hashed, words[box + BOX_WORDS + AXIS_WORDS * axis + AXIS])
            boxes[n, OF], boxes[n, AT], boxes[n, TEXT] = i, box, start + 8 * count
            boxes[n, AXES_HASH], boxes[n, KIND_HASH] = hashed, mix(hashed, words[box + BOX_EQUAL])
            n += 1
            box += BOX_WORDS + AXIS_WORDS * axes
        at += count


@kernel
def find_constraints(handles: I64, table: Int, versions: I64, starts: I64) -> None:
    """Where the packed constraints of versions of a table's rows begin."""
    rows = rows_at(handles)
    for i in range(len(versions)):
        starts[i], _ = text_at(rows, record_of(rows, versions[i]), table, CONSTRAINT)


@kernel
def list_versions(handles: I64, table: Int, found: I64) -> Int:
    """All versions of a table's rows, those that this micro-batch replaces included; how many, also where there is no room."""
    rows = rows_at(handles)
    n = np.int64(0)
    page = np.int64(rows.layout[table, FIRST_PAGE])
    while page != NONE:
        for version in range(page << PAGE_BITS, (page << PAGE_BITS) + PAGE):
            # Versions that were never current (of deletes, and of refused records) have since > until.
            if rows.alive[version] and rows.since[version] < rows.until[version]:
                if n < len(found):
                    found[n] = version
                n += 1
        page = np.int64(rows.page_next[page])
    return n
