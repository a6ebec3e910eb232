"""What a process that has a notice log open keeps of each subscription: its name, and where its last row and its base are.

A *slot* is the number by which the files call a subscription. It is used again once nothing of a dropped subscription is left
in the log. So that whoever kept a number never gets the notices of another subscription, numbers outside of this package have
the slot in their low 32 bits and above them how often this process has seen the slot become free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from tidings.model.codes import BoolArray, Int64Array
from tidings.server.log.segment_layout import BASE, END, NOWHERE, ROW, SNAPSHOT, RowArray

SLOT_MASK = 2**32 - 1
_GENERATION = 2**32


class Heads:
    """All subscriptions of a log, living ones and those whose end is still in it."""

    def __init__(self) -> None:
        self.names: list[bytes] = []
        """By slot: the engine id as a JSON string; empty if the slot is free."""
        self.slots: dict[bytes, int] = {}
        """By name: the subscription that has it now, or had it last."""
        self.ended: dict[int, int] = {}
        """Positions of END rows by slot, ascending."""
        self.free: dict[int, None] = {}
        self.heads = np.full(64, NOWHERE)
        """By slot: position of the last row."""
        self.bases = np.full(64, NOWHERE)
        """By slot: position of the last row with SNAPSHOT or BASE."""
        self.births = np.full(64, NOWHERE)
        """By slot: position of the first row, which may be gone. No other subscription of this log has the same."""
        self.tags = np.zeros(64, np.int64)
        """By slot: what is added to it to get the number."""

    def __len__(self) -> int:
        return len(self.names) - len(self.free) - len(self.ended)

    def slot(self, number: int) -> int | None:
        """The slot of a number; None if the subscription is gone from the log."""
        slot = number & SLOT_MASK
        return slot if slot < len(self.names) and self.tags.item(slot) == number - slot and self.names[slot] else None

    def living(self) -> Iterator[tuple[bytes, int]]:
        """(name, slot) of subscriptions that have not ended."""
        return ((name, slot) for name, slot in self.slots.items() if slot not in self.ended)

    def unused(self, count: int) -> list[int]:
        """Slots for new subscriptions."""
        found = list(islice(reversed(self.free), count))
        return [*found, *range(len(self.names), len(self.names) + count - len(found))]

    def reserve(self, count: int) -> None:
        """Makes arrays long enough for so many slots."""
        if count > len(self.heads):
            more = max(count, 2 * len(self.heads)) - len(self.heads)
            self.heads, self.bases, self.births = (
                np.concatenate([column, np.full(more, NOWHERE)]) for column in (self.heads, self.bases, self.births)
            )
            self.tags = np.concatenate([self.tags, np.zeros(more, np.int64)])

    def introduce(self, slots: Sequence[int], names: Sequence[bytes]) -> None:
        """New subscriptions."""
        self.reserve(max(slots, default=0) + 1)
        for slot, name in zip(slots, names, strict=True):
            while slot >= len(self.names):
                self.free[len(self.names)] = None
                self.names.append(b"")
            self.free.pop(slot, None)
            self.names[slot] = name
            self.slots[name] = slot

    def take(self, rows: RowArray, positions: Int64Array, *, has_new: bool) -> None:
        """Takes in the rows of a block. has_new: some may be the first of their subscription."""
        slots, flags = rows["number"], rows["length"]
        # Of several rows of one subscription the last assignment is the one that stays.
        self.heads[slots] = positions
        begins: BoolArray = (flags & (SNAPSHOT | BASE)) != 0
        if begins.any():
            self.bases[slots[begins]] = positions[begins]
        if has_new:
            is_first = rows["previous"] == NOWHERE
            self.births[slots[is_first]] = positions[is_first]
        if int(flags[-1]) & END:
            ends = (flags & END) != 0
            self.ended.update(zip(slots[ends].tolist(), positions[ends].tolist(), strict=True))

    def forget(self, first: int) -> None:
        """Lets go of subscriptions whose end is no longer in the log, which begins at `first`."""
        for slot, position in list(self.ended.items()):
            if position >= first:
                break
            del self.ended[slot]
            name = self.names[slot]
            if self.slots[name] == slot:
                del self.slots[name]
            self.names[slot] = b""
            self.heads[slot] = self.bases[slot] = self.births[slot] = NOWHERE
            self.tags[slot] += _GENERATION
            self.free[slot] = None

    def directory(self) -> tuple[RowArray, list[int], list[bytes]]:
        """(rows, slots, names): what `load` needs. Ended ones come first: of several with one name the last is the latest."""
        ended = list(self.ended)
        slots = [*ended, *(slot for _, slot in self.living())]
        rows = np.zeros(len(slots), ROW)
        rows["number"], rows["previous"] = slots, self.heads[slots] if slots else NOWHERE
        rows["seq"], rows["text"] = (self.births[slots], self.bases[slots]) if slots else (NOWHERE, NOWHERE)
        rows["length"][: len(ended)] = END
        return rows, slots, [self.names[slot] for slot in slots]

    def load(self, rows: RowArray, slots: Sequence[int], names: Sequence[bytes]) -> None:
        """Becomes what the directory of a segment says."""
        self.introduce(slots, names)
        at = rows["number"]
        self.heads[at], self.births[at], self.bases[at] = rows["previous"], rows["seq"], rows["text"]
        ends = (rows["length"] & END) != 0
        self.ended.update(zip(at[ends].tolist(), rows["previous"][ends].tolist(), strict=True))

    def succeed(self, older: Heads) -> Int64Array:
        """Takes over the numbers that an older state of the same log gave.

        Returns the numbers that have something new, or are gone.
        """
        self.reserve(len(older.heads))
        count = len(older.heads)
        # Where the slot is another subscription's now, numbers given before must not be valid.
        is_other = self.births[:count] != older.births
        self.tags[:count] = older.tags + _GENERATION * is_other
        is_told = self.heads != NOWHERE
        is_told[:count] &= self.heads[:count] != older.heads
        told, gone = np.flatnonzero(is_told), np.flatnonzero(is_other & (older.births != NOWHERE))
        return np.concatenate([told + self.tags[told], gone + older.tags[gone]])
