"""The index of boxes: owns the arrays, grows them, and turns what callers have into what kernels take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidings.kernels.arrays import grow
from tidings.kernels.extents import TOP, WANTED, make_room, new_head
from tidings.kernels.rows import I64, NONE, U8
from tidings.kernels.stabbing.stabbing_change import DONE, add_boxes, rehash, remove_boxes
from tidings.kernels.stabbing.stabbing_layout import (
    BOX_FREE,
    BOX_TOP,
    BUCKETS,
    CELL_FREE,
    CELL_TOP,
    DATA,
    DIMS,
    HEAD_FIELDS,
    KIND_FIELDS,
    LIVE,
    OWNER,
    POSITION,
    ROOM,
    SET_BUCKETS,
    SETS_STOP,
    SHAPE,
    TEXT_COLUMNS,
    VECTOR_FIELDS,
    Boxes,
)
from tidings.kernels.stabbing.stabbing_query import STACK_WORDS

TextEnds = tuple[bytes | None, bytes | None, bool, bool]
"""Exact ends of a text range as canonical JSON texts: lo, hi, whether each belongs to the range."""

_NO_TEXT = np.zeros(0, np.uint8)
_RECORDS_MIN = 64
"""So many records of sets, shapes and kinds are kept without looking whether boxes still have them."""
_BOXES_PER_RECORD = 1_000
"""Looking takes time for every box: it waits until there is one more unused record for so many boxes."""


class Texts(NamedTuple):
    """Texts of a column, many of which may be equal: row i has distinct[number[i]]."""

    distinct: Sequence[bytes]
    number: I64


class BoxShape(NamedTuple):
    """Which axes the boxes restrict: by equality, by a range, and which ranges have lossy codes."""

    equal_axes: tuple[int, ...]
    range_axes: tuple[int, ...]
    text_axes: tuple[int, ...]


class StabbingIndex:
    """Which boxes hold a vector? Boxes are conjunctions of equalities and closed ranges, of few shapes or many.

    Sets, shapes and kinds that no box has any more are forgotten now and then, and with the last box everything is: their
    number is at most a constant multiple of those in use.
    """

    def __init__(self, axes: int) -> None:
        self._vector = np.zeros((1, axes, VECTOR_FIELDS), np.int64)
        self._start()

    def _start(self) -> None:
        """Makes the arrays of an index without boxes."""
        axes = self._vector.shape[1]
        self._sets: dict[tuple[int, ...], int] = {}
        self._shapes: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        self._kinds: dict[tuple[int, int], int] = {}
        self._free_sets: dict[int, list[int]] = {}
        """Number of axes -> places of records of sets that may be used again."""
        self._free_shapes: dict[int, list[int]] = {}
        """Words of the record -> places of records of shapes that may be used again."""
        self._free_kinds: list[int] = []
        self._records_max = _RECORDS_MIN
        """With more records than this, `remove` looks for unused ones."""
        arena = np.zeros(256, np.int64)
        head = new_head(HEAD_FIELDS, 1, arena)
        head[BOX_FREE], head[CELL_FREE] = NONE, NONE
        work = np.zeros(2 * axes + STACK_WORDS, np.int64)
        sets, table, cells, places, kinds = (np.zeros(16, np.int64) for _ in range(5))
        self._boxes = Boxes(head, sets, table, cells, places, arena, arena.view(np.uint8), work, kinds)

    @property
    def boxes(self) -> Boxes:
        """The arrays, for kernels. Another tuple whenever one of them may have moved, by `add` or `remove`."""
        return self._boxes

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._boxes) - self._boxes.bytes.nbytes

    def __len__(self) -> int:
        return int(self._boxes.head[LIVE])

    @property
    def records(self) -> int:
        """Number of sets of equality axes, shapes of ranges and kinds of boxes that are known."""
        return len(self._sets) + len(self._shapes) + len(self._kinds)

    def add(
        self,
        shape: BoxShape,
        owner: I64,
        kind: I64,
        equal: I64,
        equal_text: Sequence[Texts | None],
        ends: I64,
        text_ends: Sequence[Sequence[TextEnds]] | None = None,
    ) -> I64:
        """Adds boxes of one shape; their numbers, which stay theirs until they are removed.

        owner: [n], below 2**32; kind: [n], from `kind`. equal: [n, equality axes] equality codes; equal_text[j]: canonical JSON
        texts of the constants on a TEXT axis, else None. ends: [n, 2 * range axes] lo, hi, lo, hi .. text_ends[i][j]: exact
        ends of the j-th of the text axes.
        """
        n = len(owner)
        taken = np.empty(n, np.int64)
        if n == 0:
            return taken
        of, number = self._set(shape.equal_axes), self._shape(shape.range_axes, shape.text_axes)
        texts, text = _join_texts(n, shape, equal_text, text_ends)
        grow(self._boxes.places, int(self._boxes.head[BOX_TOP]) + n)
        self._boxes = Boxes(*self._boxes)
        progress = np.zeros(2, np.int64)
        arrays = (
            np.ascontiguousarray(owner, np.int64),
            np.ascontiguousarray(kind, np.int64),
            np.ascontiguousarray(equal, np.int64).reshape(n, len(shape.equal_axes)),
            np.ascontiguousarray(ends, np.int64).reshape(n, 2 * len(shape.range_axes)),
        )
        while progress[0] != DONE:
            if not add_boxes(self._boxes, of, number, self._vector, *arrays, texts, text, taken, progress):
                self._grow()
        return taken

    def kind(self, shape: BoxShape, watch: int, tag: int = 0) -> int:
        """The number of a kind of boxes: those of a shape which changes of the axes in `watch` concern too; bit (axis & 63)."""
        mask = watch & (2**64 - 1) | _bits((*shape.equal_axes, *shape.range_axes))
        number = self._kinds.get((mask, tag), NONE)
        if number == NONE:
            number = self._free_kinds.pop() if self._free_kinds else len(self._kinds)
            self._kinds[mask, tag] = number
        start = number * KIND_FIELDS
        if start + KIND_FIELDS > len(self._boxes.kinds):
            grow(self._boxes.kinds, start + KIND_FIELDS)
            self._boxes = Boxes(*self._boxes)
        self._boxes.kinds[start : start + KIND_FIELDS] = _word(mask), tag
        return number

    def remove(self, boxes: I64) -> None:
        """Forgets boxes; those that are not there are passed over."""
        gone = np.ascontiguousarray(boxes, np.int64)
        start = remove_boxes(self._boxes, gone, 0)
        while start < len(gone):
            self._grow()
            start = remove_boxes(self._boxes, gone, start)
        if self.records and not len(self):
            self._start()
        elif self.records > self._records_max:
            self._forget_unused()

    def _forget_unused(self) -> None:
        """Forgets sets, shapes and kinds that no box has. Their places are used again.

        Not while boxes are added: a caller may have asked for a kind that no box has yet.
        """
        sets, shapes, kinds = self._used()
        for axes, at in [entry for entry in self._sets.items() if entry[1] not in sets]:
            del self._sets[axes]
            self._free_sets.setdefault(len(axes), []).append(at)
        for shape, at in [entry for entry in self._shapes.items() if entry[1] not in shapes]:
            del self._shapes[shape]
            self._free_shapes.setdefault(len(_shape_record(*shape)), []).append(at)
        for kind, number in [entry for entry in self._kinds.items() if entry[1] not in kinds]:
            del self._kinds[kind]
            self._free_kinds.append(number)
        self._records_max = 2 * self.records + _RECORDS_MIN + len(self) // _BOXES_PER_RECORD

    def _used(self) -> tuple[set[int], set[int], set[int]]:
        """(places of sets, places of shapes, numbers of kinds) that some box has."""
        boxes = self._boxes
        head, arena = boxes.head, boxes.arena
        sets = {at for at in self._sets.values() if boxes.sets[at + SET_BUCKETS]}
        cells = boxes.cells[: head[CELL_TOP]]
        shapes = np.unique(arena[cells[cells >= 0] + SHAPE])
        places = boxes.places[: head[BOX_TOP]]
        places = places[places >= 0]
        cell = boxes.cells[places >> 32]
        column = 2 * arena[arena[cell + SHAPE] + DIMS] + OWNER
        kinds = np.unique(arena[arena[cell + DATA] + column * arena[cell + ROOM] + (places & POSITION)] >> 32)
        return sets, set(shapes.tolist()), set(kinds.tolist())

    def _grow(self) -> None:
        """Makes room where a kernel lacked some."""
        boxes = self._boxes
        head = boxes.head
        make_room(boxes.arena, head)
        boxes = boxes._replace(bytes=boxes.arena.view(np.uint8))
        grow(boxes.cells, int(head[CELL_TOP]) + 1)
        if 4 * (head[BUCKETS] + 1) > len(boxes.table):
            table = np.zeros(2 * len(boxes.table), np.int64)
            rehash(boxes.table, table)
            boxes = boxes._replace(table=table)
        self._boxes = boxes

    def _set(self, axes: tuple[int, ...]) -> int:
        """Where the record of a set of equality axes is."""
        found = self._sets.get(axes)
        if found is None:
            boxes = self._boxes
            record = np.array([len(axes), 0, _word(_bits(axes)), 0, *axes], np.int64)
            free = self._free_sets.get(len(axes))
            found = self._sets[axes] = free.pop() if free else int(boxes.head[SETS_STOP])
            stop = found + len(record)
            grow(boxes.sets, stop)
            self._boxes = boxes = Boxes(*boxes)
            boxes.sets[found:stop] = record
            boxes.head[SETS_STOP] = max(stop, int(boxes.head[SETS_STOP]))
        return found

    def _shape(self, axes: tuple[int, ...], text_axes: tuple[int, ...]) -> int:
        """Where the record of a shape of ranges is."""
        found = self._shapes.get((axes, text_axes))
        if found is None:
            boxes, record = self._boxes, _shape_record(axes, text_axes)
            free = self._free_shapes.get(len(record))
            found = self._shapes[axes, text_axes] = free.pop() if free else int(boxes.head[TOP])
            if found == boxes.head[TOP]:
                boxes.head[WANTED] = len(record)
                make_room(boxes.arena, boxes.head)
                self._boxes = boxes._replace(bytes=boxes.arena.view(np.uint8))
                boxes.head[TOP] += len(record)
            boxes.arena[found : found + len(record)] = record
        return found


def _shape_record(axes: tuple[int, ...], text_axes: tuple[int, ...]) -> I64:
    places = [axes.index(axis) for axis in text_axes]
    return np.array([len(axes), len(text_axes), _word(_bits(axes)), *axes, *places], np.int64)


def _bits(axes: Sequence[int]) -> int:
    mask = 0
    for axis in axes:
        mask |= 1 << (axis & 63)
    return mask


def _word(mask: int) -> np.int64:
    return np.uint64(mask).astype(np.int64)


def _join_texts(
    n: int,
    shape: BoxShape,
    equal_text: Sequence[Texts | None],
    text_ends: Sequence[Sequence[TextEnds]] | None,
) -> tuple[I64, U8]:
    """([n, ..] where each text lies, the texts): (start, stop) of constants, then (start << 1 | is closed, stop) of ends."""
    equals = len(shape.equal_axes)
    places = np.full((n, 2 * equals + TEXT_COLUMNS * len(shape.text_axes)), NONE, np.int64)
    parts: list[bytes] = []
    at = 0
    for j, column in enumerate(equal_text):
        if column is not None:
            sizes = np.fromiter(map(len, column.distinct), np.int64, len(column.distinct))
            stops = at + np.cumsum(sizes)
            places[:, 2 * j], places[:, 2 * j + 1] = (stops - sizes)[column.number], stops[column.number]
            parts += column.distinct
            at = int(stops[-1])
    for j in range(len(shape.text_axes)):
        for i, row in enumerate(text_ends or ()):
            lo, hi, lo_closed, hi_closed = row[j]
            column_at = 2 * equals + TEXT_COLUMNS * j
            for text, is_closed in ((lo, lo_closed), (hi, hi_closed)):
                if text is not None:
                    places[i, column_at] = at << 1 | bool(is_closed)
                    at += len(text)
                    places[i, column_at + 1] = at
                    parts.append(text)
                column_at += 2
    return places, np.frombuffer(bytearray(b"".join(parts)), np.uint8) if parts else _NO_TEXT
