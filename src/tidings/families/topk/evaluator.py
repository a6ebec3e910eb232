"""Evaluates all top-k subscriptions over shared rows: each subscription has a list of its first rows, updated by every change.

Subscriptions that rank a table by the same column and direction share a `RankedTable`. A change looks up its old and new row
there, in a stabbing index, to find the lists it may alter: a box has the ranges of a subscription and, on one more axis, the
rank up to which rows matter to it.
"""

from __future__ import annotations

from json.encoder import encode_basestring
from typing import Any, NamedTuple

import numpy as np

from tidings.families.evaluator import Evaluator, Store
from tidings.families.spec import Form
from tidings.families.topk.kernels.ranked_table import rank_index, top_lists
from tidings.families.topk.kernels.ranked_table.evaluate import (
    DONE,
    LACKING,
    NEEDS_BLOCKS,
    NEEDS_HITS,
    NEEDS_ROWS,
    NEEDS_TOLD,
    PROGRESS_FIELDS,
    TAIL_BASE,
    TAIL_KEY,
    TAILS,
    Work,
    evaluate,
    mark_concerned,
)
from tidings.families.topk.kernels.ranked_table.rank_index import BLOCK_JOINED
from tidings.families.topk.kernels.ranked_table.ranking_layout import (
    BLOCK,
    BLOCK_FREE,
    BLOCK_TOP,
    CAPACITY,
    CHANNEL_FIELDS,
    CLASS_MIN,
    COLUMNS,
    EQUAL_COLUMNS,
    FREE_LISTS,
    HEAD_FIELDS,
    IS_DESCENDING,
    LIST_FIELDS,
    MEMBERS,
    ORDER,
    ORDER_FIELDS,
    ORDER_TOP,
    PLACES,
    PLAN,
    PLAN_FIELDS,
    RANGE_COLUMNS,
    RANGES,
    RANK_COLUMN,
    ROW_FREE,
    ROW_TOP,
    SHOWN,
    SHOWS_KEY,
    STORED,
    TABLE,
    USERS,
    K,
    Ranking,
    extent_words,
    take_rows,
)
from tidings.families.topk.kernels.ranked_table.top_lists import ROOM_FIRST
from tidings.families.topk.subscription import Space, space_of
from tidings.kernels.events import NOBODY, Events, Projections, Told
from tidings.kernels.extents import TOP
from tidings.kernels.handles import handles_of
from tidings.kernels.lives import Lives
from tidings.kernels.rows import I64, NONE, U8
from tidings.kernels.stabbing import VECTOR_FIELDS, BoxShape, StabbingIndex, Texts
from tidings.model.catalog import Catalog
from tidings.model.channel import group_channels
from tidings.model.codes import CODE_MIN
from tidings.model.points import PointBatch
from tidings.model.types import ColumnType

_ROOM_FIRST = 64
"""Initial length of arrays of rows, hits and output."""
_ROOM_KEPT = 1 << 16
"""Output arrays that a micro-batch has made longer than this are replaced by arrays of this length."""


class _Channels(NamedTuple):
    """Distinct channels of some points. group: [points], the channel of each; hashes: [channels]; texts: of TEXT values."""

    group: I64
    codes: I64
    """[channels, columns]: equality codes."""
    hashes: I64
    spans: I64
    """[channels, columns, 2]: start and end of a TEXT value in `text`, as JSON; NONE for other types."""
    text: U8
    texts: list[list[bytes] | None]
    """[columns]: the texts of a TEXT column, [channels]; None for other types."""


class RankedTable:
    """Rows of one table in the order of one (rank column, direction), and the lists and boxes of the subscriptions to it.

    A plan is the record of a form; an order is a sorted index of the rows for one set of equality columns.
    """

    def __init__(self, store: Store, space: Space) -> None:
        names = space.table.column_names
        self._store = store
        self._columns = {name: number for number, name in enumerate(names)}
        self.table = store.number(space.table.name)
        self._index = StabbingIndex(len(names) + 1)
        self._free_lists: list[int] = []
        self._list_top = 0
        self._orders: dict[tuple[int, ...], int] = {}
        head = np.zeros(HEAD_FIELDS, np.int64)
        head[TABLE], head[RANK_COLUMN] = self.table, self._columns[space.rank.name]
        head[IS_DESCENDING], head[COLUMNS] = space.descending, len(names)
        head[[ROW_FREE, BLOCK_FREE]] = NONE
        head[FREE_LISTS:] = NONE
        words = np.zeros(256, np.int64)
        self._ranking = Ranking(
            head,
            np.zeros(0, np.int32),
            np.zeros(_ROOM_FIRST, np.int64),
            np.zeros(_ROOM_FIRST, np.int64),
            words,
            words.view(np.uint8),
            np.zeros((4, STORED, BLOCK), np.int64),
            np.zeros(4, np.int64),
            *(np.zeros(0, np.int64) for _ in range(4)),
        )
        self._work = Work(
            np.zeros(PROGRESS_FIELDS, np.int64),
            np.zeros((2, len(names) + 1, VECTOR_FIELDS), np.int64),
            np.zeros(2, np.int64),
            *_hit_arrays(_ROOM_FIRST),
            *_told_arrays(_ROOM_FIRST),
            np.full(2 * _ROOM_FIRST, NONE, np.int64),
        )
        self._used: tuple[Any, ...] = (None,) * 2
        self._all_used: tuple[Any, ...] = (None,) * 5
        self._addresses = self._all_addresses = np.empty((0, 3), np.int64)
        versions = store.current(self.table)
        self._reserve_rows(len(versions))
        self._cover_versions()
        take_rows(self._handles(), versions)

    @property
    def is_idle(self) -> bool:
        """Whether no form uses this ranked table."""
        return not self._orders

    @property
    def nbytes(self) -> int:
        arrays: list[Any] = [*self._ranking, *self._work]
        return self._index.nbytes + sum(int(array.nbytes) for array in arrays) - self._ranking.bytes.nbytes

    def open_plan(self, space: Space) -> int:
        """Makes the plan of a new form. Returns its number."""
        plans = self._ranking.plans
        free = np.flatnonzero(plans[MEMBERS::PLAN_FIELDS] == 0)
        plan = PLAN_FIELDS * int(free[0]) if len(free) else len(plans)
        if plan == len(plans):
            self._ranking = self._ranking._replace(plans=_grown(plans, plan + 8 * PLAN_FIELDS, PLAN_FIELDS))
        shown = [self._columns[name] for name in space.projection]
        record = self._ranking.plans[plan : plan + PLAN_FIELDS]
        record[:] = 0
        record[[K, CAPACITY, RANGES]] = space.k, _capacity(space.k), len(space.ranges)
        record[SHOWN] = _mask(shown)
        record[SHOWS_KEY] = set(space.table.key) <= set(space.projection)
        for i, column in enumerate(space.ranges):
            record[RANGE_COLUMNS + i] = self._columns[column.name]
            record[PLACES + i] = self._place_of(self._columns[column.name])
        record[ORDER] = self._order(tuple(self._columns[column.name] for column in space.equalities))
        self._ranking.orders[record[ORDER] + USERS] += 1
        return plan

    def close_plan(self, plan: int) -> None:
        """Frees a plan without subscriptions, and its order if no other plan uses it."""
        order = int(self._ranking.plans[plan + ORDER])
        self._ranking.orders[order + USERS] -= 1
        if self._ranking.orders[order + USERS] == 0:
            rank_index.forget_order(self._handles(), order)
            self._orders = {columns: number for columns, number in self._orders.items() if number != order}

    def add(self, plan: int, space: Space, points: PointBatch, slots: I64) -> I64:
        """Makes lists for new subscriptions, filled from the current rows. Returns their numbers. slots: [points]."""
        homes, of = slots[points.home], np.cumsum(points.home) - 1
        ends = np.ascontiguousarray(points.coords[:, : 2 * len(space.ranges)])
        # A null channel or an empty range matches nothing: such a list never has a box or rows.
        can_match = np.asarray((ends[:, ::2] <= ends[:, 1::2]).all(axis=1))
        for column in points.channel:
            can_match &= np.asarray(column.is_valid())
        if not can_match.all():
            points, of, ends = points.take(can_match), of[can_match], ends[can_match]
        firsts = np.searchsorted(of, np.arange(len(homes) + 1))
        channels = _channels(space, points)
        numbers = self._take_lists(len(homes))
        self._reserve_words(self._constant_words(plan, channels, len(homes)))
        top_lists.open_lists(
            self._handles(),
            plan,
            numbers,
            homes,
            firsts,
            channels.group,
            channels.hashes,
            channels.codes,
            channels.spans,
            channels.text,
            ends,
        )
        highs = self._fill(plan, numbers)
        own = [self._columns[column.name] for column in space.ranges]
        shape = BoxShape(
            tuple(self._columns[column.name] for column in space.equalities), (*own, len(self._columns)), ()
        )
        lows = np.full(len(of), CODE_MIN, np.int64)
        kind = self._index.kind(shape, int(self._ranking.plans[plan + SHOWN]))
        ids = self._index.add(
            shape,
            numbers[of],
            np.full(len(of), kind),
            channels.codes[channels.group],
            [None if texts is None else Texts(texts, channels.group) for texts in channels.texts],
            np.column_stack([ends, lows, highs[of]]),
        )
        top_lists.name_boxes(self._handles(), numbers, firsts, ids)
        self._ranking.plans[plan + MEMBERS] += len(numbers)
        return numbers

    def remove(self, numbers: I64) -> list[int]:
        """Frees lists. Returns the plans that have none left."""
        plans = np.unique(self._ranking.lists[numbers + PLAN])
        ids = np.empty(top_lists.count_channels(self._handles(), numbers), np.int64)
        top_lists.close_lists(self._handles(), numbers, ids)
        self._index.remove(ids)
        self._free_lists.extend((numbers // LIST_FIELDS).tolist())
        return [plan for plan in plans.tolist() if self._ranking.plans[plan + MEMBERS] == 0]

    def evaluate(
        self, events: Events, lives: Lives, projections: Projections, own: int, ranking_of: I64, list_of: I64
    ) -> Told:
        """Applies the events. Returns the notifications of this ranked table, which has number `own`.

        ranking_of, list_of: [slots], number of the ranked table and of the list of each subscription.
        """
        progress = self._work.progress
        progress[TAIL_BASE] += progress[TAILS]
        progress[:TAIL_BASE] = 0
        self._cover_versions()
        while (
            lacking := evaluate(self._all_handles(lives, projections), events.words, own, ranking_of, list_of)
        ) != DONE:
            self._grow(lacking)
        _, count, tails, changes, *_ = progress.tolist()
        if count == 0:
            return NOBODY
        work = self._work
        result = Told(work.told[:, :count].copy(), count, work.tails[:tails].copy(), work.changes[:changes].copy())
        if len(work.changes) > _ROOM_KEPT:
            fields = ("told", "tails", "keys", "changes")
            self._work = work._replace(**dict(zip(fields, _told_arrays(_ROOM_KEPT), strict=True)))
        return result

    def _handles(self) -> I64:
        """Addresses of the arrays of ranking and rows, cached: whenever an array is replaced, its named tuple is too."""
        rows = self._store.rows
        if self._ranking is not self._used[0] or rows is not self._used[1]:
            table = (rows.kinds[self.table], rows.keys[self.table], rows.layout[self.table])
            self._addresses = handles_of((*self._ranking, rows.words, rows.text, rows.page_base, *table))
            self._used = (self._ranking, rows)
        return self._addresses

    def _all_handles(self, lives: Lives, projections: Projections) -> I64:
        """Addresses of all arrays that the evaluation works on."""
        first = self._handles()
        used = (first, self._index.boxes, self._work, lives, projections)
        if not all(one is other for one, other in zip(used, self._all_used, strict=True)):
            others = handles_of((*self._index.boxes, *self._work, lives, projections.starts, projections.column))
            self._all_used, self._all_addresses = used, np.concatenate([first, others])
        return self._all_addresses

    def _grow(self, lacking: int) -> None:
        """Makes the arrays longer that the evaluation ran out of."""
        work, wanted = self._work, int(self._work.progress[LACKING])
        if lacking == NEEDS_ROWS:
            self._reserve_rows(1)
        elif lacking == NEEDS_BLOCKS:
            self._reserve_blocks(wanted)
        elif lacking == NEEDS_HITS:
            room = 2 * len(work.hits)
            self._work = work._replace(
                hits=np.zeros((room, 2), np.int64),
                touched=np.zeros(room, np.int64),
                table=np.full(2 * room, NONE, np.int64),
            )
        elif lacking == NEEDS_TOLD:
            room = max(2 * len(work.changes), wanted)
            told = np.empty((3, room), np.int64)
            told[:, : work.told.shape[1]] = work.told
            tails, keys, changes = (_grown(array, room) for array in (work.tails, work.keys, work.changes))
            self._work = work._replace(told=told, tails=tails, keys=keys, changes=changes)
        else:
            self._reserve_words(wanted)

    def _place_of(self, column: int) -> int:
        """Place of the codes of a range column in blocks; the column is added if it is not stored yet."""
        stored = self._ranking.stored
        found = np.flatnonzero(stored == column)
        if len(found):
            return int(found[0])
        blocks = np.empty((len(self._ranking.blocks), STORED + len(stored) + 1, BLOCK), np.int64)
        blocks[:, :-1] = self._ranking.blocks
        self._ranking = self._ranking._replace(blocks=blocks, stored=np.append(stored, column))
        rank_index.store_columns(self._handles())
        return len(stored)

    def _order(self, columns: tuple[int, ...]) -> int:
        """Number of the order for these equality columns, built if there is none."""
        found = self._orders.get(columns)
        if found is not None:
            return found
        fields, taken = ORDER_FIELDS + len(self._columns), set(self._orders.values())
        order = next(at for at in range(0, fields * len(taken) + 1, fields) if at not in taken)
        head, orders = self._ranking.head, self._ranking.orders
        if order == len(orders):
            orders = _grown(orders, order + 4 * fields, fields)
            self._ranking = self._ranking._replace(orders=orders)
        self._orders[columns] = order
        head[ORDER_TOP] = max(int(head[ORDER_TOP]), order + fields)
        orders[order : order + fields] = 0
        orders[order + EQUAL_COLUMNS] = len(columns)
        orders[order + ORDER_FIELDS : order + ORDER_FIELDS + len(columns)] = columns
        versions = self._store.current(self.table)
        keys = np.empty((4, len(versions)), np.int64)
        keys = keys[:, : rank_index.describe_rows(self._handles(), order, versions, keys)]
        keys = keys[:, np.lexsort(keys[2::-1])]
        blocks = -(-keys.shape[1] // BLOCK_JOINED)
        room = int(extent_words(blocks))
        self._reserve_blocks(blocks)
        self._reserve_words(room)
        rank_index.build(self._handles(), order, keys, room)
        return order

    def _fill(self, plan: int, numbers: I64) -> I64:
        """Fills new lists. Returns the highest rank that matters to each, [lists]."""
        highs = np.empty(len(numbers), np.int64)
        held_max = min(int(self._ranking.plans[plan + CAPACITY]), len(self._ranking.current))
        done = top_lists.fill_lists(self._handles(), numbers, 0, highs)
        while done < len(numbers):
            self._reserve_words(8 * extent_words(2 * held_max))
            done = top_lists.fill_lists(self._handles(), numbers, done, highs)
        return highs

    def _constant_words(self, plan: int, channels: _Channels, count: int) -> int:
        """Upper bound of the memory of `count` new lists, in words. Extents are at most twice as large as their contents."""
        equals = int(channels.codes.shape[1])
        texts = ((channels.spans[..., 1] - channels.spans[..., 0] + 7) >> 3).sum(axis=1)
        words = int(texts[channels.group].sum()) + len(channels.group) * (CHANNEL_FIELDS + 3 * equals)
        words += count * (2 * int(self._ranking.plans[plan + RANGES]) + (1 << CLASS_MIN))
        return 2 * words + count * 2 * ROOM_FIRST

    def _take_lists(self, count: int) -> I64:
        reused = self._free_lists[len(self._free_lists) - min(count, len(self._free_lists)) :]
        del self._free_lists[len(self._free_lists) - len(reused) :]
        fresh = count - len(reused)
        numbers = np.concatenate([np.array(reused, np.int64), np.arange(self._list_top, self._list_top + fresh)])
        self._list_top += fresh
        if LIST_FIELDS * self._list_top > len(self._ranking.lists):
            lists = _grown(self._ranking.lists, LIST_FIELDS * self._list_top, LIST_FIELDS)
            self._ranking = self._ranking._replace(lists=lists)
        return numbers * LIST_FIELDS

    def _cover_versions(self) -> None:
        """Makes `row_of` as long as there are versions."""
        versions = len(self._store.rows.alive)
        if versions > len(self._ranking.row_of):
            self._ranking = self._ranking._replace(row_of=_grown(self._ranking.row_of, versions))

    def _reserve_rows(self, count: int) -> None:
        wanted = int(self._ranking.head[ROW_TOP]) + count
        if wanted > len(self._ranking.current):
            current, tie = (_grown(array, wanted) for array in (self._ranking.current, self._ranking.tie))
            self._ranking = self._ranking._replace(current=current, tie=tie)

    def _reserve_blocks(self, count: int) -> None:
        wanted = int(self._ranking.head[BLOCK_TOP]) + count
        if wanted > len(self._ranking.blocks):
            blocks, sizes = (_grown(array, wanted) for array in (self._ranking.blocks, self._ranking.block_size))
            self._ranking = self._ranking._replace(blocks=blocks, block_size=sizes)

    def _reserve_words(self, count: int) -> None:
        wanted = int(self._ranking.head[TOP]) + count
        if wanted > len(self._ranking.words):
            words = _grown(self._ranking.words, wanted)
            self._ranking = self._ranking._replace(words=words, bytes=words.view(np.uint8))


class TopkEvaluator(Evaluator):
    """All top-k subscriptions of a replica."""

    name = "topk"

    def __init__(self, catalog: Catalog, store: Store) -> None:
        self.catalog, self.store = catalog, store
        self._ranked: list[RankedTable | None] = []
        self._numbers: dict[tuple[str, str, bool], int] = {}
        self._plans: dict[str, tuple[int, int]] = {}
        """Form -> (number of its ranked table, its plan there)."""
        self._tables = np.empty(0, np.int64)
        """[ranked tables]: number of the table; NONE if there is no ranked table with this number."""
        self._places: I64 = np.full((2, 0), NONE, np.int64)
        """[2, slots]: number of the ranked table, and of the list there; NONE for subscriptions of other families."""

    def add(self, points: PointBatch, slots: I64, lives: Lives) -> None:
        """Makes a list for each subscription, filled from the current rows. The snapshot is sent at its CREATE event."""
        if len(points) == 0:
            return
        space = space_of(Form.from_key(points.form), self.catalog)
        number, plan = self._plan(points.form, space)
        ranked = self._ranked[number]
        assert ranked is not None
        lists = ranked.add(plan, space, points, slots)
        homes = slots[points.home]
        room = self._places.shape[1]
        if (top := int(homes.max()) + 1) > room:
            places = np.full((2, max(top, 2 * room)), NONE, np.int64)
            places[:, :room] = self._places
            self._places = places
        self._places[0, homes], self._places[1, homes] = number, lists

    def apply(self, events: Events, lives: Lives, projections: Projections) -> Told:
        # To unpack an array by iteration takes a microsecond.
        ranking_of, list_of = self._places[0], self._places[1]
        is_concerned = np.zeros(len(self._tables), np.int64)
        mark_concerned(events.words, self._tables, ranking_of, is_concerned)
        parts = [
            ranked.evaluate(events, lives, projections, number, ranking_of, list_of)
            for number, ranked in enumerate(self._ranked)
            if ranked is not None and is_concerned[number]
        ]
        return Told.joined(parts)

    def remove(self, slots: I64) -> None:
        slots = np.unique(slots[slots < self._places.shape[1]])
        of = self._places[0, slots]
        for number in np.unique(of[of != NONE]).tolist():
            ranked = self._ranked[number]
            assert ranked is not None
            mine = slots[of == number]
            idle = {(number, plan) for plan in ranked.remove(self._places[1, mine])}
            self._places[:, mine] = NONE
            for _, plan in idle:
                ranked.close_plan(plan)
            if idle:
                self._plans = {form: place for form, place in self._plans.items() if place not in idle}
            if ranked.is_idle:
                self._ranked[number], self._tables[number] = None, NONE
                self._numbers = {key: other for key, other in self._numbers.items() if other != number}

    @property
    def nbytes(self) -> int:
        return self._places.nbytes + sum(ranked.nbytes for ranked in self._ranked if ranked is not None)

    def _plan(self, form: str, space: Space) -> tuple[int, int]:
        """(number of the ranked table of a form, its plan there), both made if there are none."""
        found = self._plans.get(form)
        if found is None:
            key = (space.table.name, space.rank.name, space.descending)
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = self._rank_table(space)
            ranked = self._ranked[number]
            assert ranked is not None
            found = self._plans[form] = (number, ranked.open_plan(space))
        return found

    def _rank_table(self, space: Space) -> int:
        ranked = RankedTable(self.store, space)
        if None in self._ranked:
            number = self._ranked.index(None)
        else:
            number = len(self._ranked)
            self._ranked.append(None)
            self._tables = np.append(self._tables, NONE)
        self._ranked[number], self._tables[number] = ranked, ranked.table
        return number


def _capacity(k: int) -> int:
    """Rows that a list for the first k may hold: k and some spare ones, rounded up to fill its memory."""
    return int(extent_words(k + max(2, k // 4)))


def _mask(columns: list[int]) -> np.int64:
    mask = 0
    for column in columns:
        mask |= 1 << (column & 63)
    return np.uint64(mask).astype(np.int64)


def _grown(array: Any, wanted: int, multiple: int = 1) -> Any:
    """A copy with at least `wanted` entries, growing by half or more; its length is a multiple of `multiple`."""
    room = -(-max(wanted, len(array) + len(array) // 2, 8) // multiple) * multiple
    grown = np.zeros((room, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def _hit_arrays(room: int) -> tuple[I64, I64]:
    return np.zeros((room, 3), np.int64), np.zeros(room, np.int64)


def _told_arrays(room: int) -> tuple[I64, I64, I64, I64]:
    """Empty arrays (told, tails, keys of tails, changes) for `room` entries."""
    shapes = ((3, room), (room, 4), (room, TAIL_KEY), (room, 2))
    told, tails, keys, changes = (np.zeros(shape, np.int64) for shape in shapes)
    return told, tails, keys, changes


def _channels(space: Space, points: PointBatch) -> _Channels:
    group, values = group_channels(points.channel, len(points))
    codes = np.zeros((len(values), len(space.equalities)), np.int64)
    spans = np.full((*codes.shape, 2), NONE, np.int64)
    texts: list[list[bytes] | None] = []
    blob = bytearray()
    for j, column in enumerate(space.equalities):
        if column.type is ColumnType.TEXT:
            own = [encode_basestring(str(value[j])).encode() for value in values]
            for i, text in enumerate(own):
                spans[i, j] = len(blob), len(blob) + len(text)
                blob += text
            texts.append(own)
        else:
            texts.append(None)
            codes[:, j] = [value[j] for value in values]
    data = np.frombuffer(blob, np.uint8) if blob else np.zeros(0, np.uint8)
    for j, column in enumerate(space.equalities):
        if column.type is ColumnType.TEXT:
            codes[:, j] = rank_index.hash_texts(data, np.ascontiguousarray(spans[:, j]))
    return _Channels(group, codes, rank_index.hash_codes(codes), spans, data, texts)
