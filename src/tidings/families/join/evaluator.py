"""Evaluates all join subscriptions of a replica over shared rows.

Subscriptions that join the same tables by the same edges (a signature) share plans and lists of partners, whatever they select
and show. All subscriptions are in one stabbing index, whose first axis is the signature. A changed row is joined with its
partners at that seq, and each combination is looked up in the index once; if there are many combinations, the subscriptions
that may select the row (candidates) are found first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from tidings.families.evaluator import Evaluator, Store
from tidings.families.join.kernels.candidates import SIDE_BITS
from tidings.families.join.kernels.combine import WALK_FIELDS, Newcomers, Plans
from tidings.families.join.kernels.evaluate import (
    DONE,
    FOUND_FULL,
    HITS_FULL,
    OUT_FULL,
    SIDE_WANTED,
    Sides,
    evaluate,
)
from tidings.families.join.kernels.partner_lists import fill, no_partners, wider, with_room
from tidings.families.join.kernels.tell import (
    CHANGES,
    COUNTS,
    GROUP_FIELDS,
    HEARD_FIELDS,
    ITEMS,
    LOOK_FIELDS,
    PAIR_FIELDS,
    TAILS,
    TOLD,
    WANTED,
    WIDE,
    Output,
    Scratch,
)
from tidings.families.join.plan import (
    SIGNATURE_AXIS,
    Interest,
    RelationKey,
    RelationTable,
    Signature,
    mask_of,
    plans_of,
)
from tidings.families.join.predicates import Predicates, Tested, alternatives, gathered
from tidings.families.join.result import shown_columns
from tidings.families.join.side_index import SideIndex
from tidings.families.join.subscription import AnyOf, compared_columns, is_any_of, predicates_of
from tidings.families.spec import Form
from tidings.kernels.events import NOBODY, Events, Projections, Told
from tidings.kernels.lives import SINCE, Lives
from tidings.kernels.rows import I64, NONE
from tidings.kernels.stabbing import VECTOR_FIELDS, BoxShape, StabbingIndex
from tidings.model.catalog import Catalog
from tidings.model.points import PointBatch

T = TypeVar("T")
_ROOM_MIN = 256
_any_of = msgspec.msgpack.Decoder(AnyOf)


@dataclass
class _Form:
    """A form with subscriptions. watch: mask of the axes of `shown`; users: number of subscriptions."""

    number: int
    signature: int
    tested: list[Tested]
    axes: list[int]
    """[tested]: axis of the column."""
    shown: list[set[int]]
    """[sides]: columns shown, or compared by alternatives."""
    watch: int
    relations: set[RelationKey]
    """Lists of partners that the form needs, and lists of rows by the value of an equality column."""
    has_alternatives: bool
    users: int = 0

    def shape(self, wide: tuple[int, ...]) -> BoxShape:
        """The shape of boxes. wide: pinned columns (by place in `tested`) that have a range instead of a value."""
        pinned = [i for i, one in enumerate(self.tested) if one.is_equal and i not in wide]
        ranged = [i for i in range(len(self.tested)) if i not in pinned]
        lossy = [i for i in ranged if self.tested[i].is_text and i not in wide]
        equal_axes = (SIGNATURE_AXIS, *(self.axes[i] for i in pinned))
        return BoxShape(equal_axes, tuple(self.axes[i] for i in ranged), tuple(self.axes[i] for i in lossy))


class JoinEvaluator(Evaluator):
    """Evaluator of the join family. Not thread-safe."""

    name = "join"
    looks_max: ClassVar[int] = 32
    """If a row has more partners than this, candidates are found first."""
    asked_max: ClassVar[int] = 32
    """Candidates are tested one by one if there are at most this many per combination saved; else the index is used."""

    def __init__(self, catalog: Catalog, store: Store) -> None:
        self.catalog, self.store = catalog, store
        self._columns = [len(table.columns) for table in catalog.tables]
        self._index = StabbingIndex(SIGNATURE_AXIS + 1 + sum(self._columns))
        self._side_index = SideIndex(max(self._columns, default=1))
        self._open_sides: Sides | None = None
        """None if boxes have been added or removed since it was made."""
        self._signatures: list[Signature | None] = []
        """[signatures]: None if the number is free."""
        self._signature_users: Counter[int] = Counter()
        """Signature -> forms that have it."""
        self._forms: dict[str, _Form] = {}
        self._form_keys: list[str | None] = []
        """[forms]: key of the form; None if the number is free."""
        self._relations = RelationTable(len(catalog.tables))
        self._partners = no_partners()
        self._plans: Plans | None = None
        self._coming: list[Newcomers] = []
        self._wide: dict[int, Newcomers] = {}
        """Slot -> predicates of a wide subscription, whose boxes contain more than it selects: hits are tested with them."""
        self._wide_bytes = 0
        """Bytes of `_wide`."""
        self._newcomers: Newcomers | None = None
        """`_coming` and `_wide` together; None if one of them has changed."""
        self._form_of, self._box_of, self._box_next = (np.empty(0, np.int64) for _ in range(3))
        """[slots]: number of the form; [slots]: first box; [boxes]: next box of the same subscription. NONE for none."""
        self._sides = 0
        self._counts = np.zeros(COUNTS, np.int64)
        self._make_room(2)

    def add(self, points: PointBatch, slots: I64, lives: Lives) -> None:
        form = self._form(points.form)
        form.users += len(points)
        self._open_sides = None
        any_of = [_any_of.decode(details) for details in points.details.to_pylist()] if form.has_alternatives else []
        if any_of:
            points = replace(points, details=pa.array([each.box for each in any_of], pa.binary()))
        predicates = Predicates(form.tested, points)
        self._form_of = _longer(self._form_of, slots)
        self._box_of = _longer(self._box_of, slots)
        self._form_of[slots], self._box_of[slots] = form.number, NONE
        for boxes in predicates.boxes():
            owner = slots[boxes.point]
            shape = form.shape(boxes.wide)
            ids = self._index.add(
                shape,
                owner,
                np.full(len(owner), self._index.kind(shape, form.watch)),
                np.column_stack([np.full(len(owner), form.signature), boxes.equal]),
                [None, *boxes.equal_text],
                boxes.ends,
                boxes.text_ends,
            )
            self._keep(owner, ids)
            for side in self._side_index.sides(form.signature):
                self._side_index.add(self._index.boxes, ids, form.signature, side, form.tested, form.axes)
        if any_of:
            for slot, each in zip(slots.tolist(), any_of, strict=True):
                self._widen(slot, alternatives(each, slot, form.signature, len(form.shown)))
            self._newcomers = None
            return
        is_wide = predicates.is_wide
        for at in np.flatnonzero(is_wide)[:, None]:
            self._widen(int(slots[at[0]]), predicates.newcomers(at, slots[at], form.signature, len(form.shown)))
        coming = np.flatnonzero((lives[slots, SINCE] != NONE) & ~is_wide)
        if len(coming):
            self._coming.append(predicates.newcomers(coming, slots[coming], form.signature, len(form.shown)))
        if is_wide.any() or len(coming):
            self._newcomers = None

    def _widen(self, slot: int, tests: Newcomers) -> None:
        self._wide[slot] = tests
        self._wide_bytes += _bytes_of(tests)

    def apply(self, events: Events, lives: Lives, projections: Projections) -> Told:
        plans = self._planned()
        newcomers = self._newcomers
        if newcomers is None:
            newcomers = self._newcomers = gathered([*self._coming, *self._wide.values()], self._sides)
        rows, counts = self.store.rows, self._counts
        self._partners = wider(self._partners, 1, len(rows.alive))
        self._fit(len(lives), len(projections.starts) - 1)
        counts[: ITEMS + 1] = 0
        counts[WIDE] = len(self._wide)
        sides = self._sides_opened()
        event = 0
        while True:
            event, why = evaluate(
                self.store.handles,
                events.words,
                lives,
                projections,
                self._index.boxes,
                sides,
                self._partners,
                self._relations.arrays,
                plans,
                newcomers,
                self._output,
                self._scratch,
                event,
            )
            if why == DONE:
                break
            if why == SIDE_WANTED:
                self._open(int(counts[WANTED]))
                sides = self._sides_opened()
            else:
                self._grow(why)
        if self._coming:
            self._coming.clear()
            self._newcomers = None
        if not counts[TOLD]:
            return NOBODY
        out = self._output
        return Told(
            out.told[: counts[TOLD]].T.copy(),
            int(counts[TOLD]),
            out.tails[: counts[TAILS]].copy(),
            out.changes[: counts[CHANGES]].copy(),
            out.sources[: counts[ITEMS]].copy(),
        )

    def remove(self, slots: I64) -> None:
        self._open_sides = None
        numbers, users = np.unique(self._form_of[slots], return_counts=True)
        box = self._box_of[slots]
        box = box[box != NONE]
        while len(box):
            self._index.remove(box)
            self._side_index.remove(box)
            box = self._box_next[box]
            box = box[box != NONE]
        self._form_of[slots] = self._box_of[slots] = NONE
        if self._wide:
            for slot in slots.tolist():
                tests = self._wide.pop(slot, None)
                if tests is not None:
                    self._wide_bytes -= _bytes_of(tests)
                    self._newcomers = None
        before = len(self._forms)
        for number, count in zip(numbers.tolist(), users.tolist(), strict=True):
            key = self._form_keys[number]
            assert key is not None, f"slots {slots} have no join subscription"
            self._forms[key].users -= count
            if not self._forms[key].users:
                self._forget(key)
        if len(self._forms) < before:
            self._list_partners(set().union(*(form.relations for form in self._forms.values())))

    @property
    def nbytes(self) -> int:
        arrays = (*self._output, *self._scratch, self._form_of, self._box_of, self._box_next)
        return (
            self._index.nbytes
            + self._side_index.nbytes
            + self._partners.nbytes
            + self._wide_bytes
            + sum(array.nbytes for array in arrays)
        )

    def _form(self, key: str) -> _Form:
        known = self._forms.get(key)
        if known is not None:
            return known
        named = Form.from_key(key)
        shape = named.shape
        tables = [self.catalog.table(name) for name in shape.tables]

        def place(table: str, column: str) -> tuple[int, int]:
            side = shape.tables.index(table)
            return side, tables[side].column_names.index(column)

        edges = tuple(
            (
                *(shape.tables.index(edge.left), tuple(place(edge.left, name)[1] for name in edge.left_columns)),
                *(shape.tables.index(edge.right), tuple(place(edge.right, name)[1] for name in edge.right_columns)),
            )
            for edge in shape.joins
        )
        signature = Signature(tuple(self.store.number(name) for name in shape.tables), edges)
        tested = []
        for ref in predicates_of(shape):
            is_text = self.catalog.table(ref.table).column(ref.column).type.is_lossy
            tested.append(Tested(*place(*ref), ref in shape.equalities, is_text))
        shown: list[set[int]] = [set() for _ in tables]
        for ref in (*shown_columns(shape, self.catalog), *compared_columns(named)):
            side, column = place(*ref)
            shown[side].add(column)
        first = np.cumsum([SIGNATURE_AXIS + 1, *(len(table.columns) for table in tables)]).tolist()
        axes = [first[one.side] + one.column for one in tested]
        watch = mask_of({first[side] + column for side, columns in enumerate(shown) for column in columns})
        wanted: set[RelationKey] = {(signature.tables[one.side], (one.column,)) for one in tested if one.is_equal}
        relations = wanted | signature.relations()
        number = self._number(signature, relations)
        self._signature_users[number] += 1
        form = _Form(_take(self._form_keys, key), number, tested, axes, shown, watch, relations, is_any_of(named))
        self._forms[key] = form
        self._plans = None
        return form

    def _number(self, signature: Signature, relations: set[RelationKey]) -> int:
        """Number of the signature, given if it is new. Missing lists of partners are made from the current rows."""
        if signature not in self._signatures:
            _take(self._signatures, signature)
        self._list_partners(relations.union(*(form.relations for form in self._forms.values())))
        return self._signatures.index(signature)

    def _list_partners(self, needed: set[RelationKey]) -> None:
        """Makes the lists of these relations that are missing. If most lists are not among them, all are made again."""
        if len(set(self._relations.numbers) - needed) > len(needed):
            self._relations = RelationTable(len(self.catalog.tables))
            self._partners = no_partners()
        for key in sorted(needed - set(self._relations.numbers)):
            self._relations.add(key)
            self._start(key)

    def _start(self, key: RelationKey) -> None:
        table, index = key[0], self._relations.index(key)
        versions = self.store.current(table)
        arrays, rows = self._relations.arrays, self.store.rows
        self._partners = wider(self._partners, int(np.diff(arrays.of_table).max()), len(rows.alive))
        start = fill(rows, self._partners, arrays, table, index, versions, 0)
        while start < len(versions):
            self._partners = with_room(self._partners)
            start = fill(rows, self._partners, arrays, table, index, versions, start)

    def _forget(self, key: str) -> None:
        """Removes a form without subscriptions, and its signature if no other form has it."""
        form = self._forms.pop(key)
        self._form_keys[form.number] = None
        self._plans = None
        self._signature_users[form.signature] -= 1
        if not self._signature_users[form.signature]:
            self._signatures[form.signature] = None
            self._side_index.close(form.signature)

    def _sides_opened(self) -> Sides:
        if self._open_sides is None:
            limits = np.array([self.looks_max, self.asked_max], np.int64)
            self._open_sides = Sides(self._side_index.boxes, self._side_index.opened(len(self._signatures)), limits)
        return self._open_sides

    def _open(self, key: int) -> None:
        """Enters all boxes of a signature into the side index. key: signature << SIDE_BITS | side."""
        signature, side = key >> SIDE_BITS, key & ((1 << SIDE_BITS) - 1)
        self._side_index.open(signature, side)
        self._open_sides = None
        for form in self._forms.values():
            if form.signature == signature:
                box = self._box_of[self._form_of == form.number]
                box = box[box != NONE]
                while len(box):
                    self._side_index.add(self._index.boxes, box, signature, side, form.tested, form.axes)
                    box = self._box_next[box]
                    box = box[box != NONE]

    def _keep(self, owner: I64, boxes: I64) -> None:
        """Links the boxes of each new subscription into a list. owner: [boxes], slots; boxes of one slot stand together."""
        self._box_next = _longer(self._box_next, boxes)
        self._box_next[boxes] = NONE
        is_same = owner[1:] == owner[:-1]
        self._box_next[boxes[:-1][is_same]] = boxes[1:][is_same]
        is_first = np.append(True, ~is_same)[: len(owner)]
        self._box_of[owner[is_first]] = boxes[is_first]

    def _planned(self) -> Plans:
        if self._plans is None:
            interests = [Interest(len(signature.tables) if signature else 0) for signature in self._signatures]
            for form in self._forms.values():
                for one in form.tested:
                    interests[form.signature].tested[one.side].add(one.column)
                for side, columns in enumerate(form.shown):
                    interests[form.signature].shown[side] |= columns
            self._plans = plans_of(self._signatures, interests, self._relations, self._columns)
            if self._plans.tables.shape[1] > self._sides:
                self._make_room(self._plans.tables.shape[1])
        return self._plans

    def _make_room(self, sides: int) -> None:
        """Makes the arrays of output and scratch memory for joins of at most `sides` sides."""
        self._sides = sides
        self._newcomers = None
        none, room = np.empty(0, np.int64), _ROOM_MIN
        axes = SIGNATURE_AXIS + 1 + sum(self._columns)
        self._output = Output(
            np.empty((room, 3), np.int64),
            np.empty((room, 4), np.int64),
            np.empty((room, 2), np.int64),
            np.empty((room, sides), np.int64),
            self._counts,
        )
        self._scratch = Scratch(
            np.empty((room, sides), np.int64),
            np.empty((PAIR_FIELDS, room + 1), np.int64),
            np.empty((room, 3), np.int64),
            np.empty((room, HEARD_FIELDS), np.int64),
            np.empty((room, GROUP_FIELDS), np.int64),
            np.empty(2 * room, np.int64),
            none,
            np.empty((0, LOOK_FIELDS), np.int64),
            np.zeros((2, axes, VECTOR_FIELDS), np.int64),
            np.zeros((2, self._side_index.axes, VECTOR_FIELDS), np.int64),
            np.zeros(2, np.int64),
            np.empty((WALK_FIELDS, sides), np.int64),
        )

    def _fit(self, slots: int, projections: int) -> None:
        """Makes scratch arrays long enough for all slots and projections."""
        mark, looks = self._scratch.mark, self._scratch.looks
        if slots > len(mark):
            longer = np.full(max(slots, 3 * len(mark) // 2), NONE, np.int64)
            self._scratch = self._scratch._replace(mark=longer)
        if projections > len(looks):
            shown = np.zeros((max(projections, 2 * len(looks)), LOOK_FIELDS), np.int64)
            self._scratch = self._scratch._replace(looks=shown)

    def _grow(self, why: int) -> None:
        """Doubles the arrays that the kernel found full. why: result code of `evaluate`."""
        scratch = self._scratch
        if why == OUT_FULL:
            told, tails, changes, sources, counts = self._output
            self._output = Output(_twice(told), _twice(tails), _twice(changes), _twice(sources), counts)
        elif why == FOUND_FULL:
            room = 2 * len(scratch.found)
            of_pair = np.empty((PAIR_FIELDS, room + 1), np.int64)
            self._scratch = scratch._replace(found=_twice(scratch.found), of_pair=of_pair)
        elif why == HITS_FULL:
            hits, heard, groups, table = (
                _twice(array) for array in (scratch.hits, scratch.heard, scratch.groups, scratch.table)
            )
            self._scratch = scratch._replace(hits=hits, heard=heard, groups=groups, table=table)
        else:
            self._partners = with_room(self._partners)


def _take(places: list[T | None], value: T) -> int:
    """Puts a value into the first free place. Returns the place."""
    number = places.index(None) if None in places else len(places)
    places[number : number + 1] = [value]
    return number


def _bytes_of(tests: Newcomers) -> int:
    return sum(array.nbytes for array in tests)


def _longer(array: I64, numbers: I64) -> I64:
    """The array, long enough to be indexed by these numbers; NONE in new places."""
    top = int(numbers.max(initial=NONE)) + 1
    if top <= len(array):
        return array
    longer = np.full(max(top, 3 * len(array) // 2), NONE, np.int64)
    longer[: len(array)] = array
    return longer


def _twice(array: I64) -> I64:
    """A copy of twice the length."""
    longer = np.empty((2 * len(array), *array.shape[1:]), np.int64)
    longer[: len(array)] = array
    return longer
