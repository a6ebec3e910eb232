"""Constraints as boxes: what a condition on a table of constraints is compiled to, on either side, and how it is packed.

A constraint is the union of boxes, one for each disjunct and choice of values of IN. A box has a closed interval of codes on
each axis that its disjunct compares, and none on all others: which axes these are matters to matching. Codes of TEXT are lossy,
so a box also has the exact ends of its text intervals, as bytes that sort as texts do. These are half-open, [lo, hi): the least
text above s is s + "\\0", so that open and closed ends need no distinction. Two text intervals meet iff max lo < min hi.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

from tidings.families.size import check_size
from tidings.model.catalog import Table
from tidings.model.codes import CODE_MAX, CODE_MIN, code_of
from tidings.model.errors import SqlError
from tidings.model.types import ColumnType
from tidings.sql.constants import Constants, Interval
from tidings.sql.shape import Shape

AXES_MAX = 60
"""Axes that one disjunct may compare: kernels have a bit for each in a word."""

TextEnds = tuple[bytes | None, bytes | None]
"""[lo, hi) of a text interval; None: no end."""


class Box(NamedTuple):
    """One disjunct. axes: numbers of `Table.axes`, ascending; the rest is [axes] in the same order."""

    axes: tuple[int, ...]
    lo: tuple[int, ...]
    hi: tuple[int, ...]
    texts: tuple[TextEnds | None, ...]
    """Exact ends on TEXT axes; None on others, and where there are none."""

    def is_equality(self, place: int) -> bool:
        """Whether the box has a single value on its axis at a place."""
        text = self.texts[place]
        if text is None:
            return self.lo[place] == self.hi[place]
        return text[0] is not None and text[1] == text[0] + b"\0"


def boxes_of(shape: Shape, constants: Constants, table: Table) -> tuple[Box, ...]:
    """The boxes of a compiled constraint. SqlError if there would be too many, or one of too many axes."""
    check_size(constants)
    parts = zip(shape.conjunctions, constants.disjuncts or (constants,), strict=True)
    return tuple(box for one, own in parts for box in _boxes(one, own, table))


def _boxes(shape: Shape, constants: Constants, table: Table) -> Iterator[Box]:
    axes, places, types = _layout(shape, table)
    choices = [
        [_single(type, value) for value in values] for type, values in zip(types, constants.equalities, strict=False)
    ]
    ranges = [_range(type, interval) for type, interval in zip(types[len(choices) :], constants.intervals, strict=True)]
    for chosen in product(*choices):
        ends = (*chosen, *ranges)
        ordered = [ends[place] for place in places]
        yield Box(axes, *(tuple(parts) for parts in zip(*ordered, strict=True)))


@lru_cache(maxsize=4096)
def _layout(shape: Shape, table: Table) -> tuple[tuple[int, ...], tuple[int, ...], tuple[ColumnType, ...]]:
    """(axes, ascending; for each its place among equalities and ranges; types of equalities and ranges) of a conjunction."""
    refs = (*shape.equalities, *shape.ranges)
    if len(refs) > AXES_MAX:
        hint = f"at most {AXES_MAX} are possible: split the constraint"
        raise SqlError(f"a conjunction compares {len(refs)} columns or coordinates", hint=hint)
    numbers = [table.axis_numbers[ref.column] for ref in refs]
    places = tuple(sorted(range(len(refs)), key=lambda place: numbers[place]))
    return tuple(numbers[place] for place in places), places, tuple(table.axis(ref.column).type for ref in refs)


def _single(type: ColumnType, value: Any) -> tuple[int, int, TextEnds | None]:
    code = code_of(type, value)
    if type is not ColumnType.TEXT:
        return code, code, None
    text = value.encode()
    return code, code, (text, text + b"\0")


def _range(type: ColumnType, interval: Interval) -> tuple[int, int, TextEnds | None]:
    if type is not ColumnType.TEXT:
        return interval.lo_code, interval.hi_code, None
    lo = None if interval.lo is None else interval.lo.encode() + (b"" if interval.lo_closed else b"\0")
    hi = None if interval.hi is None else interval.hi.encode() + (b"\0" if interval.hi_closed else b"")
    ends = None if lo is None and hi is None else (lo, hi)
    return (CODE_MIN if lo is None else interval.lo_code), (CODE_MAX if hi is None else interval.hi_code), ends


# The packed constraint of a publication: words, then the bytes of its texts. A header, then for each box a head and an entry
# for each of its axes; texts are given by (start, stop) from the first byte behind the words, start NONE for no end.
WORDS, BOXES, HEADER_WORDS = range(3)
BOX_AXES, BOX_EQUAL, BOX_WORDS = range(3)
AXIS, LO, HI, LO_START, LO_STOP, HI_START, HI_STOP, AXIS_WORDS = range(8)
_NO_TEXTS = (-1, -1, -1, -1)
_INTEGERS = (ColumnType.BIGINT, ColumnType.INT)
"""Types whose values are their own codes."""


def packed(shape: Shape, constants: Constants, table: Table) -> tuple[bytes, int]:
    """(a compiled constraint as bytes, number of its boxes). SqlError as from `boxes_of`."""
    if shape.disjuncts or not constants.is_single:
        boxes = boxes_of(shape, constants, table)
        return pack(boxes), len(boxes)
    # As `pack(boxes_of(..))`, for the one box that most constraints have: this runs for every publication and subscription.
    axes, places, types = _layout(shape, table)
    equalities = constants.equalities
    if ColumnType.TEXT not in types:
        codes = [
            value if type in _INTEGERS else code_of(type, value)
            for type, (value,) in zip(types, equalities, strict=False)
        ]
        lows = [*codes, *[interval.lo_code for interval in constants.intervals]]
        highs = [*codes, *[interval.hi_code for interval in constants.intervals]]
        return _pack_exact(axes, [lows[place] for place in places], [highs[place] for place in places]), 1
    ends = [_single(types[i], value) for i, (value,) in enumerate(equalities)]
    ends += [_range(types[len(equalities) + i], interval) for i, interval in enumerate(constants.intervals)]
    words, texts = [0, 1, len(axes), 0], bytearray()
    for place, source in enumerate(places):
        lo, hi, text = ends[source]
        words += (axes[place], lo, hi)
        if text is None:
            words += _NO_TEXTS
            words[3] |= (lo == hi) << place
        else:
            _put_texts(words, texts, text)
            words[3] |= (text[1] is not None and text[0] is not None and text[1] == text[0] + b"\0") << place
    words[WORDS] = len(words)
    return struct.pack(f"<{len(words)}q", *words) + texts, 1


def _pack_exact(axes: tuple[int, ...], lo: list[int], hi: list[int]) -> bytes:
    """As `pack`, for one box without texts."""
    words, write = _frame(axes)
    words = words.copy()
    first = HEADER_WORDS + BOX_WORDS
    words[first + LO :: AXIS_WORDS], words[first + HI :: AXIS_WORDS] = lo, hi
    equal = (1 << len(axes)) - 1
    if lo != hi:
        equal = sum([1 << place for place, (low, high) in enumerate(zip(lo, hi, strict=True)) if low == high])
    words[HEADER_WORDS + BOX_EQUAL] = equal
    return write(*words)


@lru_cache(maxsize=16384)
def _frame(axes: tuple[int, ...]) -> tuple[list[int], Callable[..., bytes]]:
    """(words of a box of these axes without texts, but for its ends and its mask; what makes bytes of them)."""
    words = [0, 1, len(axes), 0]
    for axis in axes:
        words += (axis, 0, 0, *_NO_TEXTS)
    words[WORDS] = len(words)
    return words, struct.Struct(f"<{len(words)}q").pack


def pack(boxes: Sequence[Box]) -> bytes:
    """A constraint as bytes, for kernels and `unpack`."""
    words = [0, len(boxes)]
    texts = bytearray()
    for box in boxes:
        equal = sum(1 << place for place in range(len(box.axes)) if box.is_equality(place))
        words += (len(box.axes), equal)
        for axis, lo, hi, text in zip(*box, strict=True):
            words += (axis, lo, hi)
            _put_texts(words, texts, text)
    words[WORDS] = len(words)
    return struct.pack(f"<{len(words)}q", *words) + texts


def _put_texts(words: list[int], texts: bytearray, ends: TextEnds | None) -> None:
    for end in ends or (None, None):
        if end is None:
            words += (-1, -1)
        else:
            words += (len(texts), len(texts) + len(end))
            texts += end


def unpack(data: bytes) -> tuple[Box, ...]:
    """The boxes that `pack` was given."""
    count = int.from_bytes(data[:8], "little")
    words = struct.unpack_from(f"<{count}q", data)
    texts = data[8 * count :]
    at, boxes = HEADER_WORDS, []
    for _ in range(words[BOXES]):
        axes = words[at + BOX_AXES]
        at += BOX_WORDS
        entries = [words[at + AXIS_WORDS * i : at + AXIS_WORDS * (i + 1)] for i in range(axes)]
        at += AXIS_WORDS * axes
        columns = zip(
            *((entry[AXIS], entry[LO], entry[HI], _text_ends(entry, texts)) for entry in entries), strict=True
        )
        boxes.append(Box(*columns))
    return tuple(boxes)


def _text_ends(entry: Sequence[int], texts: bytes) -> TextEnds | None:
    if entry[LO_START] < 0 and entry[HI_START] < 0:
        return None
    lo, hi = (
        None if start < 0 else texts[start:stop]
        for start, stop in ((entry[LO_START], entry[LO_STOP]), (entry[HI_START], entry[HI_STOP]))
    )
    return lo, hi
