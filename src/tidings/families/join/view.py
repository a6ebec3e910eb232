"""Join views: each subscription holds rows of every table and is told how their join changes.

Messages may bring rows that find no partner, and rows that only nearly satisfy the predicates (text is compared by its first
bytes on the way): the view looks again, and tells only what changes in the joined rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tidings.families.base import FirstRows, Pairs, Told, Views
from tidings.families.join.held import Held, Joined, Row, orders_of
from tidings.families.join.rows import ALL_SIDES, PLACED, SIDE
from tidings.families.join.subscription import Predicate, Side, Space
from tidings.model.channel import ChannelKey, channel_column, channel_keys
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch
from tidings.model.notification import change_tail, delete_change, insert_change, update_change
from tidings.model.points import PointBatch
from tidings.model.render import comparable_rows, render_rows

Results = dict[tuple[ChannelKey, ...], Joined]
"""Joined rows by the keys of their parts."""


class JoinViews(Views):
    wants_order = True
    remembers = True

    def __init__(self, space: Space) -> None:
        self._space = space
        self._orders = orders_of(space)
        self._held: dict[int, Held] = {}
        self._predicates: dict[int, list[Predicate | None]] = {}
        self._decoder = msgspec.msgpack.Decoder(list[Predicate | None])

    def create(self, slots: Int64Array, points: PointBatch) -> None:
        for slot, details in zip(slots.tolist(), points.details.to_pylist(), strict=True):
            self._held[slot] = Held(self._orders)
            if details:
                self._predicates[slot] = self._decoder.decode(details)

    def drop(self, slots: Int64Array) -> None:
        for slot in slots.tolist():
            del self._held[slot]
            self._predicates.pop(slot, None)

    def snapshots(self, first: FirstRows) -> list[str]:
        if first.rows is None:
            return first.tails([])
        parts = _Parts(self._space, first.rows)
        texts: list[list[str]] = []
        cuts = first.starts.tolist()
        for slot, start, stop in zip(first.slot.tolist(), cuts[:-1], cuts[1:], strict=True):
            held = self._held[slot] = Held(self._orders)
            for at in range(start, stop):
                if self._satisfies(slot, parts, at):
                    if parts.is_whole(at):
                        held.whole[parts.keys(at)] = parts.joined(at)
                    else:
                        held.put(parts.row(at))
            texts.append([self._text(joined) for joined in held.every()])
        shown = np.cumsum([0, *map(len, texts)])
        return FirstRows(first.slot, first.seq, shown, None).tails([text for part in texts for text in part])

    def tell(self, messages: MessageBatch, pairs: Pairs) -> Told:
        """What counts is the join before and after all messages of a seq, in whatever order they come."""
        parts = _Parts(self._space, messages.payload)
        seqs = messages.seq[pairs.message]
        order = np.lexsort((pairs.slot, seqs))
        told = _Lines()
        for run in np.split(order, np.flatnonzero(np.diff(seqs[order]) | np.diff(pairs.slot[order])) + 1):
            if len(run):
                slot, seq = int(pairs.slot[run[0]]), int(seqs[run[0]])
                changes = self._change(slot, parts, pairs.message[run].tolist(), pairs.tags[run].tolist())
                if changes:
                    told.add(seq, slot, changes)
        return told.told()

    def _change(self, slot: int, parts: _Parts, messages: list[int], tags: list[int]) -> str:
        held = self._held[slot]
        rows: dict[tuple[int, ChannelKey], Row | None] = {}
        whole: dict[tuple[ChannelKey, ...], Joined | None] = {}
        for at, tag in zip(messages, tags, strict=True):
            is_placed = bool(tag & PLACED) and self._satisfies(slot, parts, at)
            # A row that moves between shards is gone from one and placed by the other, in any order.
            if parts.is_whole(at):
                if is_placed or parts.keys(at) not in whole:
                    whole[parts.keys(at)] = parts.joined(at) if is_placed else None
            elif is_placed or parts.place(at) not in rows:
                rows[parts.place(at)] = parts.row(at) if is_placed else None
        # Most of what comes is known already, or is to be dropped and was never held.
        rows = {place: row for place, row in rows.items() if held.rows[place[0]].get(place[1]) != row}
        if not rows and not whole:
            return ""
        before = _results(held, rows, whole)
        for (side, key), row in rows.items():
            if row is None:
                held.remove(side, key)
            else:
                held.put(row)
        for keys, joined in whole.items():
            held.whole.pop(keys, None)
            if joined is not None:
                held.whole[keys] = joined
        return self._difference(before, _results(held, rows, whole))

    def _satisfies(self, slot: int, parts: _Parts, at: int) -> bool:
        predicates = self._predicates.get(slot)
        return predicates is None or parts.satisfies(at, predicates)

    def _difference(self, old: Results, new: Results) -> str:
        """Changes from one answer to the other as multisets of what is shown; empty if there are none."""
        if not old and not new:
            return ""
        gone, come = Counter(map(self._same, old.values())), Counter(map(self._same, new.values()))
        gone, come = gone - come, come - gone
        changes = []
        for key in sorted(old.keys() & new.keys()):
            before, after = self._same(old[key]), self._same(new[key])
            if gone[before] > 0 and come[after] > 0:
                gone[before] -= 1
                come[after] -= 1
                changes.append(update_change(self._text(old[key]), self._text(new[key])))
        for results, left, change in ((old, gone, delete_change), (new, come, insert_change)):
            for key in sorted(results):
                same = self._same(results[key])
                if left[same] > 0:
                    left[same] -= 1
                    changes.append(change(self._text(results[key])))
        return ", ".join(changes)

    def _text(self, joined: Joined) -> str:
        return "{" + ", ".join(self._cells(joined, [row.cells for row in joined])) + "}"

    def _same(self, joined: Joined) -> tuple[str, ...]:
        return tuple(self._cells(joined, [row.same for row in joined]))

    def _cells(self, joined: Joined, cells: list[tuple[str, ...]]) -> list[str]:
        taken = [iter(part) for part in cells]
        return [next(taken[side]) for side, _ in self._space.shown]

    def dump(self, slots: Int64Array) -> Any:
        return [
            [
                [_plain(row) for side in held.rows for row in side.values()],
                [[_plain(row) for row in joined] for joined in held.whole.values()],
            ]
            for held in (self._held[slot] for slot in slots.tolist())
        ]

    def load(self, slots: Int64Array, state: Any) -> None:
        for slot, (rows, whole) in zip(slots.tolist(), state, strict=True):
            held = self._held[slot] = Held(self._orders)
            for row in rows:
                held.put(_read(row))
            for parts in whole:
                joined = tuple(map(_read, parts))
                held.whole[tuple(row.key for row in joined)] = joined


def _plain(row: Row) -> list[Any]:
    return [row.side, list(row.key), [None if link is None else list(link) for link in row.links], row.cells, row.same]


def _read(plain: list[Any]) -> Row:
    side, key, links, cells, same = plain
    linked = tuple(None if link is None else tuple(link) for link in links)
    return Row(side, tuple(key), linked, tuple(cells), tuple(same))


def _results(held: Held, places: Iterable[tuple[int, ChannelKey]], whole: Iterable[tuple[ChannelKey, ...]]) -> Results:
    """All joined rows with one of these in them, and those that came whole."""
    found = {tuple(row.key for row in joined): joined for place in places for joined in held.joined(*place)}
    found.update((keys, held.whole[keys]) for keys in whole if keys in held.whole)
    return found


class _Parts:
    """Rows of a payload, as views hold them."""

    def __init__(self, space: Space, rows: pa.RecordBatch) -> None:
        self._space = space
        self._side: list[int] = rows.column(SIDE).to_pylist()
        self._of = [_SideParts(space, number, side, rows) for number, side in enumerate(space.sides)]
        self._first = np.concatenate([[0], np.cumsum([len(side.columns) for side in space.sides])]).tolist()

    def place(self, at: int) -> tuple[int, ChannelKey]:
        return self._side[at], self._of[self._side[at]].keys[at]

    def row(self, at: int) -> Row:
        return self._of[self._side[at]].row(at)

    def is_whole(self, at: int) -> bool:
        return self._side[at] == ALL_SIDES

    def keys(self, at: int) -> tuple[ChannelKey, ...]:
        """Keys of the parts of a joined row."""
        return tuple(side.keys[at] for side in self._of)

    def joined(self, at: int) -> Joined:
        return tuple(side.row(at) for side in self._of)

    def satisfies(self, at: int, predicates: Sequence[Predicate | None]) -> bool:
        """Whether the values of a row satisfy what a point does not say of its predicates."""
        sides = range(len(self._of)) if self.is_whole(at) else [self._side[at]]
        return all(
            predicate is None or _satisfies(predicate, column[at])
            for side in sides
            for predicate, column in zip(
                predicates[self._first[side] : self._first[side + 1]], self._of[side].values, strict=True
            )
        )


class _SideParts:
    """The rows of one side of a payload; those of other sides are null."""

    def __init__(self, space: Space, number: int, side: Side, rows: pa.RecordBatch) -> None:
        count = rows.num_rows
        column_of = {name: rows.column(f"{number}.{name}") for name in side.payload}
        table = side.table
        self._number = number
        self.keys = channel_keys([channel_column(table.column(n).type, column_of[n])[0] for n in table.key], count)
        self._links: list[list[ChannelKey] | None] = []
        for edge in space.edges:
            names = [names for at, names in zip(edge.sides, edge.columns, strict=True) if at == number]
            columns = [channel_column(table.column(n).type, column_of[n]) for n in (names[0] if names else ())]
            # Null joins nothing, and is no component of a channel.
            parts = [pa.array(components.to_pylist(), mask=~valid) for components, valid in columns]
            self._links.append(channel_keys(parts, count) if names else None)
        shown = [(name, column) for name, (at, column) in zip(space.names, space.shown, strict=True) if at == number]
        self._cells, self._same = [], []
        for name, column in shown:
            texts = render_rows([name], [column_of[column]], count)
            self._cells.append([text[1:-1] for text in texts])
            self._same.append([text[1:-1] for text in comparable_rows([name], [column_of[column]], texts)])
        self.values = [channel_column(column.type, column_of[column.name])[0].to_pylist() for column in side.columns]

    def row(self, at: int) -> Row:
        links = tuple(None if links is None else links[at] for links in self._links)
        cells, same = tuple(texts[at] for texts in self._cells), tuple(texts[at] for texts in self._same)
        return Row(self._number, self.keys[at], links, cells, same)


def _satisfies(predicate: Predicate, value: Any) -> bool:
    if predicate.values is not None:
        return value in predicate.values
    if predicate.lo is not None and (value < predicate.lo or (value == predicate.lo and not predicate.lo_closed)):
        return False
    return not (
        predicate.hi is not None and (value > predicate.hi or (value == predicate.hi and not predicate.hi_closed))
    )


class _Lines:
    """Notifications gathered one by one; equal ones at one seq share their text."""

    def __init__(self) -> None:
        self._seq: list[int] = []
        self._slot: list[int] = []
        self._tail: list[int] = []
        self._numbers: dict[str, int] = {}

    def add(self, seq: int, slot: int, changes: str) -> None:
        self._seq.append(seq)
        self._slot.append(slot)
        self._tail.append(self._numbers.setdefault(change_tail(seq, changes), len(self._numbers)))

    def told(self) -> Told:
        seq, slot, tail = (np.array(part, np.int64) for part in (self._seq, self._slot, self._tail))
        return Told(seq, slot, tail, list(self._numbers))
