"""Join views: each subscription holds rows of every table, and its notifications say how their join changes.

Messages may have rows without partners, and rows that do not satisfy the predicates exactly (regions compare only the first
bytes of text). A view tests rows again and notifies changes of joined rows only. Views whose answers change in the same way
share one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch
from research.strategies.join.payload import ALL_SIDES, PLACED, SIDE
from research.strategies.join.space import Space
from research.views.join.interned_rows import InternedRows
from research.views.join.join_state import NONE, ChangedJoins, JoinDeltas, JoinState, Numbers
from research.views.join.residual_predicates import ResidualPredicates
from research.views.join.side_rows import SideRows
from research.views.protocols import FirstRows, Notifications, Pairs, RememberingViews
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.notification import change_tail, delete_change, insert_change, update_change
from tidings.model.points import PointBatch


class JoinViews(RememberingViews):
    def __init__(self, space: Space) -> None:
        self._space = space
        self._sides = [SideRows(space, number) for number in range(len(space.sides))]
        self._count = 0
        self._clear()

    def _clear(self) -> None:
        self._state = JoinState(len(self._sides), [edge.sides for edge in self._space.edges])
        self._rows = InternedRows(self._space, self._sides, self._state)
        self._checks = ResidualPredicates(self._space, self._sides)

    def create(self, slots: Int64Array, points: PointBatch) -> None:
        self._state.open(slots)
        self._checks.create(slots, points.details)
        self._count += len(slots)

    def drop(self, slots: Int64Array) -> None:
        self._state.clear(slots)
        self._checks.drop(slots)
        self._rows.sweep()
        self._count -= len(slots)
        if not self._count:
            self._clear()

    def snapshots(self, first: FirstRows) -> list[str]:
        """Fills the views with their snapshot rows, in place of any rows they hold. Returns the tails of their lines."""
        if first.rows is None:
            self._state.fill(first.slot, first.starts, [])
        else:
            versions, is_held = self._number_first(first, first.rows)
            ends = np.append(0, np.cumsum(is_held))
            self._state.fill(first.slot, ends[first.starts], versions[is_held])
        starts, found, combinations = self._state.combinations(first.slot)
        texts = self._rows.render(combinations)
        shown = _sorted_in_parts(texts, starts, found)
        self._rows.sweep()
        return FirstRows(first.slot, first.seq, starts, None).tails(shown)

    def tell(self, messages: MessageBatch, pairs: Pairs) -> Notifications:
        """Applies deliveries. Notifies how each join differs before and after all messages of a seq, whatever their order."""
        is_placed = (pairs.tags & PLACED) != 0
        name, version = self._number(messages, pairs, is_placed)
        side = _sides_of(messages.payload)
        is_placed[is_placed] = self._checks.passing(
            pairs.slot[is_placed], messages.payload, side, pairs.message[is_placed]
        )
        moment = np.cumsum(np.diff(messages.seq, prepend=messages.seq[:1]) != 0)
        order, starts = _groups(moment[pairs.message], pairs)
        message, slot = pairs.message[order], pairs.slot[order]
        wanted = np.where(is_placed[order], version[message], NONE)
        seqs, slots = messages.seq[message[starts[:-1]]], slot[starts[:-1]]
        told = _Lines()
        for changed in self._state.apply(starts, slot, name[message], wanted):
            combinations = changed.combinations
            found = changed.deltas(seqs, self._rows.places(combinations), self._rows.looks(combinations))
            told.add(seqs, slots, found, self._tails(changed, found))
        self._rows.sweep()
        return told.told()

    def _tails(self, changed: ChangedJoins, found: JoinDeltas) -> list[str]:
        """The tail of a line for each distinct difference."""
        texts = self._rows.render(changed.combinations)
        inserts, insert_at = _rendered(insert_change, texts, found.new[found.old == NONE])
        deletes, delete_at = _rendered(delete_change, texts, found.old[found.new == NONE])
        is_update = (found.old != NONE) & (found.new != NONE)
        both, update_at = np.unique(
            found.old[is_update].astype(np.int64) * len(texts) + found.new[is_update], return_inverse=True
        )
        updates = [update_change(texts[pair // len(texts)], texts[pair % len(texts)]) for pair in both.tolist()]
        at = np.where(found.old == NONE, insert_at[found.new], delete_at[found.old] + len(inserts))
        at[is_update] = update_at + len(inserts) + len(deletes)
        rendered = [*inserts, *deletes, *updates]
        changes = [rendered[i] for i in at.tolist()]
        parts = zip(found.batch.tolist(), pairwise(found.starts.tolist()), strict=True)
        return [change_tail(seq, ", ".join(changes[start:stop])) for seq, (start, stop) in parts]

    def _number(self, messages: MessageBatch, pairs: Pairs, is_placed: BoolArray) -> tuple[Int64Array, Int64Array]:
        """(number of the key, number of the row) of each message; the latter is NONE for rows that all receivers drop."""
        rows, side = messages.payload, _sides_of(messages.payload)
        name, version = np.full((2, len(messages)), NONE, np.int64)
        is_reached, is_wanted = np.zeros((2, len(messages)), np.bool_)
        is_reached[pairs.message] = True
        is_wanted[pairs.message[is_placed]] = True
        for kind, number in self._kinds():
            wanted = np.flatnonzero(is_wanted & (side == number))
            if len(wanted):
                name[wanted], version[wanted] = self._rows.number(kind, rows, wanted)
        for kind, number in self._kinds():
            others = np.flatnonzero(is_reached & ~is_wanted & (side == number))
            if len(others):
                name[others] = self._rows.known(kind, rows, others)
        return name, version

    def _number_first(self, first: FirstRows, rows: pa.RecordBatch) -> tuple[Int64Array, BoolArray]:
        """(numbers of snapshot rows, whether they satisfy the predicates of their view), both [rows].

        A row of several views created after the same seq is rendered once.
        """
        side = _sides_of(rows)
        _, moment = np.unique(first.seq, return_inverse=True)
        sizes = np.diff(first.starts)
        moment, slot = np.repeat(moment, sizes), np.repeat(first.slot, sizes)
        versions, example = np.empty((2, len(side)), np.int64)
        for kind, number in self._kinds():
            at = np.flatnonzero(side == number)
            if len(at):
                same = _numbered(moment[at])
                for part in self._sides if kind == len(self._sides) else [self._sides[kind]]:
                    group = part.group(rows, at)
                    same = _numbered(same * (int(group.max()) + 1) + group)
                chosen = np.empty(int(same.max()) + 1, np.int64)
                chosen[same] = at
                versions[at] = self._rows.number(kind, rows, chosen)[1][same]
                example[at] = chosen[same]
        return versions, self._checks.passing(slot, rows, side, example)

    def _kinds(self) -> Iterator[tuple[int, int]]:
        """(number of the relation, number of the side in payloads) of each side, and of whole joined rows."""
        yield from ((number, number) for number in range(len(self._sides)))
        yield len(self._sides), ALL_SIDES

    def dump(self, slots: Int64Array) -> Any:
        starts, held = self._state.read(slots)
        rows, numbers = self._rows.dump(held)
        return {"sizes": np.diff(starts).astype(np.int32), "held": numbers, "rows": rows}

    def load(self, slots: Int64Array, state: Any) -> None:
        versions = self._rows.load(state["rows"])
        self._state.fill(slots, np.append(0, np.cumsum(state["sizes"])), versions[state["held"]])


class _Lines:
    """Collects notifications in parts."""

    def __init__(self) -> None:
        self._parts: list[tuple[Int64Array, Int64Array, Int64Array]] = [(np.empty(0, np.int64),) * 3]
        self._tails: list[str] = []

    def add(self, seqs: Int64Array, slots: Int64Array, found: JoinDeltas, tails: list[str]) -> None:
        self._parts.append((seqs[found.group], slots[found.group], found.number + len(self._tails)))
        self._tails.extend(tails)

    def told(self) -> Notifications:
        seq, slot, tail = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        return Notifications(seq, slot, tail, self._tails)


def _rendered(change: Callable[[str], str], texts: list[str], chosen: Numbers) -> tuple[list[str], Int64Array]:
    """(changes of the chosen texts, each rendered once; index among them of each text, [texts + 1])."""
    is_chosen = np.zeros(len(texts) + 1, np.bool_)
    is_chosen[chosen] = True
    return [change(texts[at]) for at in np.flatnonzero(is_chosen).tolist()], np.cumsum(is_chosen) - 1


def _groups(moment: Int64Array, pairs: Pairs) -> tuple[Int64Array, Int64Array]:
    """(order, starts) of the deliveries grouped by moment and slot. moment: [deliveries], number of the seq."""
    group = moment * (int(pairs.slot.max(initial=0)) + 1) + pairs.slot
    order = np.arange(len(group))
    # A message reaches a slot at most once, so only moments with several messages need sorting.
    is_several = np.zeros(int(moment.max(initial=0)) + 1, np.bool_)
    is_several[moment[1:][(np.diff(pairs.message) != 0) & (np.diff(moment) == 0)]] = True
    several = np.flatnonzero(is_several[moment])
    order[several] = several[np.argsort(group[several], kind="stable")]
    return order, np.append(np.flatnonzero(np.diff(group[order], prepend=NONE)), len(order))


def _sides_of(rows: pa.RecordBatch) -> Int64Array:
    side: Int64Array = rows.column(SIDE).to_numpy().astype(np.int64)
    return side


def _numbered(values: Int64Array) -> Int64Array:
    """Small numbers that are equal exactly if the values are, [values]."""
    numbers: Int64Array = np.asarray(pa.array(values).dictionary_encode().indices).astype(np.int64)
    return numbers


def _sorted_in_parts(texts: list[str], starts: Int64Array, found: Numbers) -> list[str]:
    """texts[found[i]] for all i, sorted within each part of `starts`. Distinct texts are sorted once for all parts."""
    order = np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int64)
    rank = np.empty(len(texts), np.int64)
    rank[order] = np.arange(len(texts))
    part = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    ranked = np.sort(part * len(texts) + rank[found]) - part * len(texts)
    return [texts[at] for at in order[ranked].tolist()]
