"""Select views: from the messages that reached a point to the lines its subscriber is told.

A select view holds no rows: a message carries the row before and after, and its tags say which of them the point's ranges
hold. Only forms with text ranges or IN look at the payload again, because there the point does not say all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tidings.families.protocols import FirstRows, Pairs, Told, Views
from tidings.families.select.reformulate import BOTH, NEW, OLD
from tidings.families.select.subscription import Details, Space
from tidings.model.channel import ChannelKey, channel_column
from tidings.model.codes import Int64Array, codes_of
from tidings.model.message import MessageBatch
from tidings.model.notification import change_tail, delete_change, insert_change, update_change
from tidings.model.points import PointBatch
from tidings.model.render import render_rows


class SelectViews(Views):
    def __init__(self, space: Space) -> None:
        self._space = space
        self._details: dict[int, Details] = {}
        self._decoder = msgspec.msgpack.Decoder(Details)

    def create(self, slots: Int64Array, points: PointBatch) -> None:
        if self._space.needs_details:
            # The points of one subscription share one object: an IN list of n values would else cost n times n.
            decoded: dict[bytes, Details] = {}
            for slot, details in zip(slots.tolist(), points.details.to_pylist(), strict=True):
                if details not in decoded:
                    decoded[details] = self._decoder.decode(details)
                self._details[slot] = decoded[details]

    def drop(self, slots: Int64Array) -> None:
        if self._space.needs_details:
            for slot in slots.tolist():
                self._details.pop(slot, None)

    def snapshots(self, first: FirstRows) -> list[str]:
        rows = first.rows
        return first.tails([] if rows is None else render_rows(self._space.projection, rows.columns, rows.num_rows))

    def tell(self, messages: MessageBatch, pairs: Pairs) -> Told:
        message, slot, bits = pairs.message, pairs.slot, pairs.tags
        if self._space.needs_details and len(slot):
            bits = self._decide(messages, pairs)
            told = bits != 0
            message, slot, bits = message[told], slot[told], bits[told]
        # Everyone a message reaches with the same bits is told the same: number the kinds that occur, make each once.
        kind_of = message * 4 + bits
        occurs = np.zeros(4 * len(messages), np.bool_)
        occurs[kind_of] = True
        kinds = np.flatnonzero(occurs)
        number = np.cumsum(occurs) - 1
        return Told(messages.seq[message], slot, number[kind_of], self._tails(messages, kinds // 4, kinds % 4))

    def _tails(self, messages: MessageBatch, message: Int64Array, bits: Int64Array) -> list[str]:
        old = self._rendered(messages, message[(bits & OLD) != 0], "old")
        new = self._rendered(messages, message[(bits & NEW) != 0], "new")
        tails = []
        for at, seq, kind in zip(message.tolist(), messages.seq[message].tolist(), bits.tolist(), strict=True):
            if kind == BOTH:
                change = update_change(old[at], new[at])
            else:
                change = insert_change(new[at]) if kind == NEW else delete_change(old[at])
            tails.append(change_tail(seq, change))
        return tails

    def _rendered(self, messages: MessageBatch, at: Int64Array, side: str) -> dict[int, str]:
        """JSON of the shown columns of the old or new row, for the messages asked for."""
        wanted = np.unique(at)
        chosen = pa.array(wanted)
        columns = [messages.payload.column(f"{side}.{name}").take(chosen) for name in self._space.projection]
        return dict(zip(wanted.tolist(), render_rows(self._space.projection, columns, len(wanted)), strict=True))

    def _decide(self, messages: MessageBatch, pairs: Pairs) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Tags decided again on the values: 0 where there is nothing to tell."""
        old = _Side(self._space, messages, "old")
        new = _Side(self._space, messages, "new")
        channels: list[ChannelKey] = list(zip(*(column.to_pylist() for column in messages.channel), strict=True))
        bits = np.zeros(len(pairs.slot), np.uint8)
        for i, (at, slot) in enumerate(zip(pairs.message.tolist(), pairs.slot.tolist(), strict=True)):
            details = self._details[slot]
            had, has = old.matches(at, details), new.matches(at, details)
            if not had and not has:
                continue
            # A row that moved between two channels of one subscription may come twice: the channel where it is tells,
            # or, where the subscription has lost it, the channel where it was.
            telling = (new if has else old).channels[at]
            is_silent = bool(channels) and channels[at] != telling
            if not is_silent and not (had and has and old.shown(at) == new.shown(at)):
                bits[i] = BOTH if had and has else OLD if had else NEW
        return bits


class _Side:
    """The old or the new rows of a batch of messages, as plain values, for deciding in detail."""

    def __init__(self, space: Space, messages: MessageBatch, side: str) -> None:
        column_of = {name: messages.payload.column(f"{side}.{name}") for name in space.payload}
        self._shown: Sequence[tuple[Any, ...]] = list(
            zip(*(column_of[name].to_pylist() for name in space.projection), strict=True)
        )
        components = [channel_column(column.type, column_of[column.name]) for column in space.equalities]
        self.channels: list[ChannelKey] = (
            list(zip(*(values.to_pylist() for values, _ in components), strict=True))
            if components
            else [()] * len(messages)
        )
        self._ok = np.ones(len(messages), np.bool_)
        for _, valid in components:
            self._ok &= valid
        self._codes: list[list[int]] = []
        self._texts: list[list[str] | None] = []
        for column in space.ranges:
            codes, valid = codes_of(column.type, column_of[column.name])
            self._ok &= valid
            self._codes.append(codes.tolist())
            self._texts.append(column_of[column.name].to_pylist() if column.type.is_lossy else None)
        # Only the key tells that there is a row at all: other columns may be null in a row that is there.
        self._ok &= np.asarray(column_of[space.table.key[0]].is_valid())

    def shown(self, at: int) -> tuple[Any, ...]:
        return self._shown[at]

    def matches(self, at: int, details: Details) -> bool:
        if not self._ok[at] or self.channels[at] not in details.channels:
            return False
        for codes, texts, (lo, hi), bounds in zip(
            self._codes, self._texts, details.intervals, details.texts, strict=True
        ):
            if not lo <= codes[at] <= hi:
                return False
            if texts is not None and bounds is not None and not bounds.holds(texts[at]):
                return False
        return True
