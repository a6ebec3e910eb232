"""Evaluates all select subscriptions over shared rows: one index of boxes for all tables, one compiled pass per micro-batch.

A subscription has a box for each channel of each of its disjuncts. Every table has these axes in the index: one per column; one
that boxes without equalities are bound to; and per column a second one, which boxes with IS NULL are bound to.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from json.encoder import encode_basestring
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from tidings.families.evaluator import Evaluator, RowSource
from tidings.families.select.kernels.match import (
    BOX_BITS,
    BOXES,
    CELLS_MAX,
    CHANGES,
    CHANGES_NEEDED,
    COUNTS,
    FIRST_AXIS,
    HITS_NEEDED,
    MEMORY_FIELDS,
    SEVERAL,
    TABLE,
    TABLE_FIELDS,
    TAILS,
    TOLD,
    TOLD_NEEDED,
    Matching,
    Members,
    apply_events,
    hash_texts,
    link_boxes,
    list_boxes,
)
from tidings.families.select.subscription import Details, TextRange, is_disjunct, space_of
from tidings.families.spec import Form
from tidings.kernels.events import NOBODY, Events, Projections, Told
from tidings.kernels.handles import handles_of
from tidings.kernels.lives import PROJECTION, Lives
from tidings.kernels.rows import I64, NONE
from tidings.kernels.stabbing import VECTOR_FIELDS, BoxShape, StabbingIndex, TextEnds, Texts, ranges_of
from tidings.model.catalog import Catalog
from tidings.model.codes import CODE_MAX, CODE_MIN
from tidings.model.points import PointBatch, on_some_channel
from tidings.model.types import ColumnType

_details = msgspec.msgpack.Decoder(Details)


class _Layout(NamedTuple):
    """Axes of the boxes of a form. table: number of the table; watch: mask of the columns whose changes concern a box."""

    table: int
    shape: BoxShape
    is_text: tuple[bool, ...]
    """[equality columns]: whether the column is TEXT."""
    text_ranges: tuple[int, ...]
    """Places of text columns among the ranges."""
    watch: int
    is_disjunct: bool
    """Whether subscriptions of the form have boxes of other forms too."""


class SelectEvaluator(Evaluator):
    name = "select"
    remembers = False
    scan_cells_max: ClassVar[int] = 20_000_000
    """New boxes are compared with all rows while there are at most this many (box, row) pairs; an index is faster beyond."""

    def __init__(self, catalog: Catalog, store: RowSource) -> None:
        self.catalog, self.store = catalog, store
        widths = [2 * len(table.columns) + 1 for table in catalog.tables]
        axes = sum(widths)
        self.index = StabbingIndex(axes)
        tables = np.zeros((len(widths), TABLE_FIELDS), np.int64)
        for table in catalog.tables:
            tables[store.number(table.name), FIRST_AXIS] = 2 * len(table.columns) + 1
        tables[:, FIRST_AXIS] = np.cumsum(tables[:, FIRST_AXIS]) - tables[:, FIRST_AXIS]
        self._members = Members(
            first=_longer(np.empty(0, np.int64), 64),
            next=np.empty(0, np.int64),
            marks=np.empty(0, np.int64),
            tables=tables,
            has_predicate=np.zeros(axes, np.int64),
        )
        counts = np.zeros(COUNTS, np.int64)
        counts[TABLE], counts[CELLS_MAX] = NONE, self.scan_cells_max
        self._matching = Matching(
            counts=counts,
            vectors=np.zeros((2, axes, VECTOR_FIELDS), np.int64),
            hits=np.empty((1024, 2), np.int64),
            memory=np.zeros((16, MEMORY_FIELDS), np.int64),
            told=np.empty((3, 1024), np.int64),
            tails=np.empty((1024, 4), np.int64),
            changes=np.empty((1024, 2), np.int64),
        )
        self._layout = lru_cache(maxsize=4096)(self._lay_out)
        self._used: tuple[Any, ...] = (None, None, None)
        self._known_handles = np.empty((0, 3), np.int64)

    def add(self, points: PointBatch, slots: I64, lives: Lives) -> None:
        self.place(points, slots, lives[slots, PROJECTION])

    def place(self, points: PointBatch, slots: I64, projections: I64) -> None:
        """Adds the boxes of points. projections: [points], what each one's subscription shows."""
        layout = self._layout(points.form)
        tags = projections << 1
        if layout.is_disjunct or not points.home.all():
            tags[np.isin(slots, slots[~points.home]) | layout.is_disjunct] |= SEVERAL
        members = self._members = self._covering(
            int(slots.max(initial=-1)) + 1, has_several=bool((tags & SEVERAL).any())
        )
        members.first[slots] = np.where(members.first[slots] == NONE, layout.table << 32, members.first[slots])
        can_match = on_some_channel(points) & (points.coords[:, 0::2] <= points.coords[:, 1::2]).all(axis=1)
        text_ends = _text_ends(points, layout)
        if not can_match.all():
            points, slots, tags = points.take(can_match), slots[can_match], tags[can_match]
            text_ends = text_ends and [text_ends[i] for i in np.flatnonzero(can_match).tolist()]
        if not len(points):
            return
        equal, texts = _constants(points, layout)
        distinct, number = np.unique(tags, return_inverse=True)
        kinds = np.array([self.index.kind(layout.shape, layout.watch, tag) for tag in distinct.tolist()])[number]
        boxes = self.index.add(layout.shape, slots, kinds, equal, texts, points.coords, text_ends)
        members.tables[layout.table, BOXES] += len(boxes)
        members.has_predicate[[*layout.shape.equal_axes, *layout.shape.range_axes]] = 1
        if len(members.marks) and int(boxes.max()) >= len(members.next):
            self._members = members = members._replace(next=_longer(members.next, int(boxes.max()) + 1))
        link_boxes(members.first, members.next, slots, boxes)

    def ends(self, table: str, slots: I64) -> I64:
        """[slots, 2 * columns]: lo, hi, lo, hi .. of one box of each subscription on a table, along all columns of the table.

        Equality codes are both ends. All is empty for subscriptions without a box.
        """
        first = int(self._members.tables[self.store.number(table), FIRST_AXIS])
        axes = first + np.arange(len(self.catalog.table(table).columns))
        boxes = (self._members.first[slots] & BOX_BITS) - 1
        ends = np.tile(np.array([CODE_MAX, CODE_MIN]), (len(slots), len(axes)))
        ranges, equal = (
            ranges_of(self.index.boxes, boxes[boxes != NONE], axes, np.full(len(axes), is_equal)) for is_equal in (0, 1)
        )
        is_equal = np.repeat(equal[:, 0::2] == equal[:, 1::2], 2, axis=1)
        ends[boxes != NONE] = np.where(is_equal, equal, ranges)
        return ends

    def apply(self, events: Events, lives: Lives, projections: Projections) -> Told:
        m, starts, column = self._matching, projections.starts, projections.column
        if len(starts) > len(m.memory):
            self._matching = m = m._replace(memory=np.zeros((2 * len(starts), MEMORY_FIELDS), np.int64))
        told = apply_events(self.store.handles, self._handles(), events.words, lives, starts, column, True)
        while told == NONE:
            m = self._make_room()
            told = apply_events(self.store.handles, self._handles(), events.words, lives, starts, column, False)
        if not told:
            return NOBODY
        return Told(m.told, told, m.tails[: m.counts.item(TAILS)], m.changes)

    def _handles(self) -> I64:
        """Handles of the arrays of index, members and matching; kept until one of these is another."""
        boxes, (known_boxes, known_members, known_matching) = self.index.boxes, self._used
        if boxes is not known_boxes or self._members is not known_members or self._matching is not known_matching:
            self._used = (boxes, self._members, self._matching)
            self._known_handles = handles_of(chain.from_iterable(self._used))
        return self._known_handles

    def remove(self, slots: I64) -> None:
        members = self._members
        boxes = np.empty(len(slots), np.int64)
        count = list_boxes(members.first, members.next, slots, boxes)
        if count > len(boxes):
            boxes = np.empty(count, np.int64)
            list_boxes(members.first, members.next, slots, boxes)
        self.index.remove(boxes[:count])
        members.first[slots] = NONE
        if not len(self.index):
            # Rows are compared with boxes along the axes that some box has ever restricted.
            members.has_predicate[:] = 0
            members.tables[:, BOXES] = 0

    @property
    def nbytes(self) -> int:
        return self.index.nbytes + sum(array.nbytes for array in (*self._members, *self._matching))

    def _covering(self, slots: int, *, has_several: bool) -> Members:
        """Members that cover so many slots; with marks, if some subscription has several boxes."""
        members = self._members
        if slots > len(members.first):
            members = members._replace(first=_longer(members.first, slots))
        if has_several and slots > len(members.marks):
            members = members._replace(marks=_longer(members.marks, slots))
        return members

    def _lay_out(self, form_key: str) -> _Layout:
        form = Form.from_key(form_key)
        space = space_of(form, self.catalog)
        table = self.store.number(space.table.name)
        first = int(self._members.tables[table, FIRST_AXIS])
        axis_of = {name: first + i for i, name in enumerate(space.table.column_names)}
        equal_axes = tuple(axis_of[column.name] for column in space.equalities)
        range_axes = tuple(axis_of[column.name] for column in space.ranges)
        null_axes = tuple(len(axis_of) + 1 + axis_of[column.name] for column in space.nulls)
        texts = tuple(i for i, column in enumerate(space.ranges) if column.type.is_lossy)
        watch = 0
        # One disjunct may contain the row before and after a change, another only after. So a box must be found with
        # every change of a column that any disjunct compares; else a row already in the answer would be inserted.
        for name in (*space.projection, *space.compared):
            watch |= 1 << (axis_of[name] & 63)
        return _Layout(
            table,
            BoxShape(
                (*equal_axes, *null_axes) or (first + len(axis_of),), range_axes, tuple(range_axes[i] for i in texts)
            ),
            tuple(column.type is ColumnType.TEXT for column in space.equalities),
            texts,
            watch,
            is_disjunct(form),
        )

    def _make_room(self) -> Matching:
        """Lengthens the arrays that the kernel found too short. The kernel then resumes at the event where it stopped."""
        m = self._matching
        counts = m.counts
        told, tails, changes = counts[TOLD : CHANGES + 1].tolist()
        if counts[HITS_NEEDED] > len(m.hits):
            m = m._replace(hits=np.empty((int(counts[HITS_NEEDED]), 2), np.int64))
        if counts[TOLD_NEEDED] > m.told.shape[1]:
            size = 2 * int(counts[TOLD_NEEDED])
            longer, longer_tails = np.empty((3, size), np.int64), np.empty((size, 4), np.int64)
            longer[:, :told], longer_tails[:tails] = m.told[:, :told], m.tails[:tails]
            m = m._replace(told=longer, tails=longer_tails)
        if counts[CHANGES_NEEDED] > len(m.changes):
            longer = np.empty((2 * int(counts[CHANGES_NEEDED]), 2), np.int64)
            longer[:changes] = m.changes[:changes]
            m = m._replace(changes=longer)
        self._matching = m
        return m


def _longer(array: I64, size: int) -> I64:
    longer = np.full((max(size, 5 * len(array) // 4), *array.shape[1:]), NONE, np.int64)
    longer[: len(array)] = array
    return longer


def _constants(points: PointBatch, layout: _Layout) -> tuple[I64, list[Texts | None]]:
    """Constants of the points on the axes that boxes are bound to: (equality codes, [points, axes]; texts of TEXT axes).

    Axes that are not of an equality column have code 0.
    """
    equal = np.zeros((len(points), len(layout.shape.equal_axes)), np.int64)
    texts: list[Texts | None] = [None] * equal.shape[1]
    for j, (column, is_text) in enumerate(zip(points.channel, layout.is_text, strict=True)):
        if is_text:
            equal[:, j], texts[j] = _coded_texts(column)
        else:
            equal[:, j] = np.asarray(column)
    return equal, texts


def _coded_texts(column: pa.Array) -> tuple[I64, Texts]:
    """(equality codes, [texts]; the texts as JSON). Distinct texts are encoded once."""
    if len(column) == 1:
        values, number = column.to_pylist(), np.zeros(1, np.int64)
    else:
        encoded = column.dictionary_encode()
        values, number = encoded.dictionary.to_pylist(), np.asarray(encoded.indices).astype(np.int64)
    distinct = [encode_basestring(text).encode() for text in values]
    stops = np.cumsum(np.fromiter(map(len, distinct), np.int64, len(distinct)))
    hashes = np.empty(len(distinct), np.int64)
    hash_texts(np.frombuffer(bytearray(b"".join(distinct)), np.uint8), stops, hashes)
    return hashes[number], Texts(distinct, number)


def _text_ends(points: PointBatch, layout: _Layout) -> list[list[TextEnds]] | None:
    """[points]: exact ends of the text ranges; None if there are none. A point without details has those of the one before."""
    if not layout.text_ranges:
        return None
    decoded: dict[bytes, list[TextEnds]] = {}
    found: list[list[TextEnds]] = []
    for details in points.details.to_pylist():
        ends = decoded.get(details) if details else found[-1]
        if ends is None:
            texts = _details.decode(details).texts
            ends = decoded[details] = [_encoded_ends(texts[i]) for i in layout.text_ranges]
        found.append(ends)
    return found


def _encoded_ends(text_range: TextRange | None) -> TextEnds:
    if text_range is None:
        return (None, None, False, False)
    lo, hi = (None if text is None else encode_basestring(text).encode() for text in (text_range.lo, text_range.hi))
    return (lo, hi, text_range.lo_closed, text_range.hi_closed)
