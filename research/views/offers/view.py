"""Offers views: turn messages into notification lines. They hold the boxes of their points, to verify what codes leave open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from research.servers.message import MessageBatch, SnapshotBatch
from research.strategies.offers.axes_form import Space
from research.strategies.offers.reformulate import NEW, OLD
from research.views.protocols import FirstRows, Notifications, Pairs, RememberingViews
from tidings.families.offers.constraint import Box, unpack
from tidings.families.offers.difference import difference
from tidings.families.offers.matching import matching_disjuncts
from tidings.model.codes import Int64Array
from tidings.model.notification import change_tail, delete_change, insert_change, update_change
from tidings.model.points import PointBatch
from tidings.model.render import render_rows

_NONE = -1


class OffersViews(RememberingViews):
    """Has no state beyond its points; it is a `RememberingViews` to get all messages of a seq in one call, as several
    publications may change at one seq: those that expire with a record, and that of the record itself."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._boxes: dict[int, Box] = {}
        """Slot -> box, where codes do not say all."""

    def create(self, slots: Int64Array, points: PointBatch) -> None:
        if self._space.is_lossy:
            boxes = (unpack(details)[0] for details in points.details.to_pylist())
            self._boxes.update(zip(slots.tolist(), boxes, strict=True))

    def drop(self, slots: Int64Array) -> None:
        for slot in slots.tolist():
            self._boxes.pop(slot, None)

    def is_memorable(self, batch: MessageBatch | SnapshotBatch) -> bool:
        return False

    def dump(self, slots: Int64Array) -> Any:
        return None

    def load(self, slots: Int64Array, state: Any) -> None:
        pass

    def snapshots(self, first: FirstRows) -> list[str]:
        rows, names = first.rows, self._space.projection
        if rows is None:
            return first.tails([])
        return first.tails(render_rows(names, [rows.column(name) for name in names], rows.num_rows))

    def tell(self, messages: MessageBatch, pairs: Pairs) -> Notifications:
        shown = _Shown(messages, self._space.projection)
        told: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for message, slot, tags in zip(pairs.message.tolist(), pairs.slot.tolist(), pairs.tags.tolist(), strict=True):
            sides = self._verified(shown, message, slot, tags)
            if sides:
                told.setdefault((int(messages.seq[message]), slot), []).append((message, sides))
        seqs, slots, tails = [], [], []
        for (seq, slot), steps in told.items():
            changes = shown.changes(steps)
            if changes:
                seqs.append(seq)
                slots.append(slot)
                tails.append(change_tail(seq, ", ".join(changes)))
        return Notifications(np.array(seqs, np.int64), np.array(slots, np.int64), np.arange(len(tails)), tails)

    def _verified(self, shown: _Shown, message: int, slot: int, tags: int) -> int:
        """Which of the rows before and after the view really matches."""
        if not self._space.is_lossy:
            return tags
        own, is_classic = (self._boxes[slot],), self._space.table.constraints.is_classic
        sides = 0
        for side in (OLD, NEW):
            if tags & side and any(
                True for _ in matching_disjuncts(shown.boxes(side, message), own, is_classic=is_classic)
            ):
                sides |= side
        return sides


class _Shown:
    """Rows of messages as a form shows them: item 2 * i is the row before of message i, item 2 * i + 1 the row after."""

    def __init__(self, messages: MessageBatch, projection: Sequence[str]) -> None:
        payload, count = messages.payload, len(messages)
        self._ids = payload.column("id").to_pylist()
        self._packed = [payload.column(name).to_pylist() for name in ("old constraint", "constraint")]
        self._known: dict[tuple[int, int], tuple[Box, ...]] = {}
        sides = []
        for name in ("old where", "where"):
            columns = [payload.column("id" if column == "id" else name) for column in projection]
            sides.append(render_rows(projection, columns, count))
        self._texts = sides

    def boxes(self, side: int, message: int) -> tuple[Box, ...]:
        """Those of the row before (OLD) or after (NEW)."""
        found = self._known.get((side, message))
        if found is None:
            found = self._known[side, message] = unpack(self._packed[side == NEW][message])
        return found

    def _text(self, item: int) -> str:
        return self._texts[item & 1][item >> 1]

    def changes(self, steps: Sequence[tuple[int, int]]) -> list[str]:
        """Changes in JSON that the rows of messages come to, given (message, sides) of each."""
        before, after = (
            dict(sorted((self._ids[message], 2 * message + place) for message, sides in steps if sides & side))
            for place, side in enumerate((OLD, NEW))
        )
        return [
            update_change(self._text(old), self._text(new))
            if old != _NONE and new != _NONE
            else insert_change(self._text(new))
            if old == _NONE
            else delete_change(self._text(old))
            for old, new in difference(before, after, lambda item: self._text(item).encode())
        ]
