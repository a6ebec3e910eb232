"""Publications as rows keep them, read as boxes to search with: what `pack` of `tidings.families.offers.constraint` wrote."""

from __future__ import annotations

import numpy as np

from tidings.families.offers.constraint import (
    AXIS,
    AXIS_WORDS,
    BOX_AXES,
    BOX_EQUAL,
    BOX_WORDS,
    BOXES,
    HEADER_WORDS,
    HI,
    HI_START,
    LO,
    LO_START,
    LO_STOP,
    WORDS,
)
from tidings.kernels.arrays import I64, U8, Int
from tidings.kernels.jit import kernel
from tidings.kernels.rows.read import FIRST_PAGE, NONE, PAGE, PAGE_BITS, hash_bytes, mix, record_of, rows_at, text_at

_SEED = 0x51ED270B35A3C4F1
"""`mix` wants no small numbers to begin with."""
CONSTRAINT = 2
"""Column of a row that has the packed constraint."""

# Fields of a box that was read: which of the given versions it is of, where its head is among the words, a hash of its axes
# and of those with a single value, and where the texts of its version begin.
OF, AT, KIND, TEXT, BOX_FIELDS = range(5)


@kernel
def _word(text: U8, at: Int) -> Int:
    """Eight bytes as a number; they need not be aligned."""
    value = np.uint64(0)
    for i in range(8):
        value |= np.uint64(text[at + i]) << np.uint64(8 * i)
    return np.int64(value)


@kernel
def count_words(handles: I64, table: Int, versions: I64) -> tuple[Int, Int]:
    """(words, boxes) of the constraints of these versions."""
    rows = rows_at(handles)
    words = boxes = np.int64(0)
    for version in versions:
        start, _ = text_at(rows, record_of(rows, version), table, CONSTRAINT)
        words += _word(rows.text, start + 8 * WORDS)
        boxes += _word(rows.text, start + 8 * BOXES)
    return words, boxes


@kernel
def read_boxes(handles: I64, table: Int, versions: I64, words: I64, boxes: I64) -> None:
    """Copies the words of the constraints of these versions, and notes their boxes, [boxes, BOX_FIELDS]."""
    rows = rows_at(handles)
    at = n = np.int64(0)
    for i in range(len(versions)):
        start, _ = text_at(rows, record_of(rows, versions[i]), table, CONSTRAINT)
        count = _word(rows.text, start + 8 * WORDS)
        for word in range(count):
            words[at + word] = _word(rows.text, start + 8 * word)
        box = at + HEADER_WORDS
        for _ in range(words[at + BOXES]):
            axes = words[box + BOX_AXES]
            kind = mix(mix(_SEED, axes), words[box + BOX_EQUAL])
            for axis in range(axes):
                kind = mix(kind, words[box + BOX_WORDS + AXIS_WORDS * axis + AXIS])
            boxes[n, OF], boxes[n, AT], boxes[n, KIND], boxes[n, TEXT] = i, box, kind, start + 8 * count
            n += 1
            box += BOX_WORDS + AXIS_WORDS * axes
        at += count


@kernel
def fill_queries(text: U8, words: I64, boxes: I64, q: I64, codes: I64, ends: I64) -> bool:
    """Writes boxes of one kind as `Queries`; False if they are not all of one kind: two kinds have the same hash."""
    axes = codes.shape[1]
    head = boxes[0, AT]
    equal = words[head + BOX_EQUAL]
    for i in range(len(boxes)):
        box = boxes[i, AT]
        if words[box + BOX_AXES] != axes or words[box + BOX_EQUAL] != equal:
            return False
        for axis in range(axes):
            entry = box + BOX_WORDS + AXIS_WORDS * axis
            if words[entry + AXIS] != words[head + BOX_WORDS + AXIS_WORDS * axis + AXIS]:
                return False
            q[i, 2 * axis], q[i, 2 * axis + 1] = words[entry + HI], ~words[entry + LO]
            codes[i, axis] = words[entry + LO]
            for field in range(4):
                end = words[entry + LO_START + field]
                ends[i, 4 * axis + field] = end if end < 0 else end + boxes[i, TEXT]
            if (equal >> axis) & 1 and words[entry + HI_START] >= 0:
                start = ends[i, 4 * axis]
                codes[i, axis] = hash_bytes(text, start, start + words[entry + LO_STOP] - words[entry + LO_START])
    return True


@kernel
def list_versions(handles: I64, table: Int, found: I64) -> Int:
    """All versions of a table's rows, those that this micro-batch replaces included; how many, also where there is no room."""
    rows = rows_at(handles)
    n = np.int64(0)
    page = np.int64(rows.layout[table, FIRST_PAGE])
    while page != NONE:
        for version in range(page << PAGE_BITS, (page << PAGE_BITS) + PAGE):
            if rows.alive[version] and rows.since[version] < rows.until[version]:
                if n < len(found):
                    found[n] = version
                n += 1
        page = np.int64(rows.page_next[page])
    return n
