"""Reading a notice log, also while another process writes it: what a subscription was told since a seq, and its rows."""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from json.encoder import encode_basestring
from pathlib import Path

import msgspec
import numpy as np

from tidings.model.codes import Int64Array
from tidings.model.errors import RunError, UsageError
from tidings.model.row_bag import RowBag
from tidings.server.log.heads import Heads
from tidings.server.log.segment_layout import (
    BASE,
    END,
    LENGTH_MASK,
    NOWHERE,
    ROW_FIELDS,
    SNAPSHOT,
    BlockHead,
    Record,
    RowArray,
    block_head,
    block_names,
    block_rows,
    row_positions,
    segment_path,
    segment_starts,
)

_NONE_TOLD = np.empty(0, np.int64)
_FLAGS = SNAPSHOT | BASE | END
_fields = ROW_FIELDS.unpack_from


class LogReader:
    """A log as of its last whole block, or as of the last `refresh`.

    Segments stay mapped until a block says that they are removed, so what has been read can be read again until the next
    `refresh`. Not for use by several threads at a time. Subscriptions are called by numbers, which only this object knows; that
    of a subscription whose end has left the log is never given to another one.
    """

    def __init__(self, folder: Path) -> None:
        """UsageError if there is no log."""
        self._folder = folder
        try:
            self.epoch = (folder / "epoch").read_text()
        except FileNotFoundError:
            raise UsageError(f"there is no notice log in {folder}") from None
        self.batch = self.passed = self.time_us = self.end = self.first = 0
        self._open()

    def __len__(self) -> int:
        """How many subscriptions live."""
        return len(self.heads)

    # Blocks

    def _open(self) -> None:
        """Reads the newest segment and maps all."""
        while True:
            starts = segment_starts(self._folder)
            if not starts:
                raise UsageError(f"there is no notice log in {self._folder}")
            try:
                self._starts = starts
                self._maps = [_mapped(segment_path(self._folder, start)) for start in starts]
                break
            except FileNotFoundError:
                # It has been removed since; then there is a newer one.
                continue
        self.heads = Heads()
        self._use_newest()
        directory = block_head(self._newest, self._newest_start, self._newest_start)
        if directory is None:
            raise RunError(f"{segment_path(self._folder, starts[-1])} is damaged: its directory is not whole")
        rows = block_rows(self._newest, self._newest_start, directory)
        self.heads.load(rows, *block_names(self._newest, self._newest_start, directory))
        self._pass(directory)
        self._take_blocks(None)

    def _use_newest(self) -> None:
        self._newest_start, self._newest = self._starts[-1], self._maps[-1]

    def refresh(self, end: int | None = None) -> Int64Array:
        """Takes in the blocks that have been appended, up to the log position `end` if it is given.

        Returns the numbers of the subscriptions that have new notices or have ended, each once.
        """
        told = self._take_blocks(end)
        if not told:
            return _NONE_TOLD
        return np.unique(np.concatenate(told) if len(told) > 1 else told[0])

    def _take_blocks(self, end: int | None) -> list[Int64Array]:
        """Numbers of those told by each block."""
        told: list[Int64Array] = []
        while end is None or self.end < end:
            head = block_head(self._newest, self._newest_start, self.end)
            if head is not None:
                rows = block_rows(self._newest, self._newest_start, head)
                self.take(head, rows, *block_names(self._newest, self._newest_start, head))
                # Bases are in blocks of their own.
                if head.rows and not int(rows["length"][0]) & BASE:
                    told.append(rows["number"] + self.heads.tags[rows["number"]])
            elif not self._next_segment():
                if segment_path(self._folder, self._newest_start).exists():
                    break
                # So far behind that even the segment being read is gone.
                older = self.heads
                self._open()
                told = [*told, self.heads.succeed(older)]
        return told

    def _next_segment(self) -> bool:
        """Goes on to the segment that starts where the last one ends, if there is one."""
        if self.end == self._newest_start:
            return False
        try:
            data = _mapped(segment_path(self._folder, self.end))
        except FileNotFoundError:
            return False
        directory = block_head(data, self.end, self.end)
        if directory is None:
            raise RunError(f"{segment_path(self._folder, self.end)} is damaged: its directory is not whole")
        self._starts.append(self.end)
        self._maps.append(data)
        self._use_newest()
        self._pass(directory)
        return True

    def take(self, head: BlockHead, rows: RowArray, slots: list[int], names: list[bytes]) -> None:
        """Takes in a block: the next one, behind `end`."""
        if names:
            self.heads.introduce(slots, names)
        if head.rows:
            self.heads.take(rows, row_positions(head), has_new=bool(names))
        self._pass(head)

    def _pass(self, head: BlockHead) -> None:
        self.end, self.batch, self.passed, self.time_us = head.end, head.batch, head.passed, head.time_us
        if head.first > self.first:
            self.first = head.first
            self.heads.forget(head.first)
            count = bisect_left(self._starts, head.first)
            del self._starts[:count], self._maps[:count]

    # Subscriptions

    def number(self, id: str) -> int | None:
        """The subscription that has this engine id, or had it last; None if the log has none."""
        slot = self.heads.slots.get(encode_basestring(id).encode())
        return None if slot is None else slot + self.heads.tags.item(slot)

    def name(self, number: int) -> str:
        """The engine id. KeyError if the subscription has ended and is gone from the log."""
        slot = self.heads.slot(number)
        if slot is None:
            raise KeyError(number)
        return _unquoted(self.heads.names[slot])

    def names(self) -> Iterator[tuple[str, int]]:
        """(engine id, number) of all living subscriptions."""
        return ((_unquoted(name), slot + self.heads.tags.item(slot)) for name, slot in self.heads.living())

    def is_ended(self, number: int) -> bool:
        slot = self.heads.slot(number)
        return slot is None or slot in self.heads.ended

    def head_seq(self, number: int) -> int:
        """Seq of the last notice, or of the end; -1 if it is gone."""
        slot = self.heads.slot(number)
        position = NOWHERE if slot is None else self.heads.heads.item(slot)
        if position < self._starts[0]:
            return -1
        start, data = self._segment(position)
        return int(_fields(data, position - start)[3])

    def _segment(self, position: int) -> tuple[int, memoryview]:
        """(start, bytes) of the segment that has a position, which must not be before the first one."""
        if position >= self._newest_start:
            return self._newest_start, self._newest
        at = bisect_right(self._starts, position) - 1
        return self._starts[at], self._maps[at]

    # Notices

    def since(self, number: int, after: int, limit: int | None = None) -> list[Record] | None:
        """What a subscription was told at a seq > after, oldest first, at most `limit` of it. None: some of it is gone."""
        heads = self.heads
        if (slot := heads.slot(number)) is None:
            return None
        position = heads.heads.item(slot)
        start, data, first = self._newest_start, self._newest, self._starts[0]
        found = []
        while position != NOWHERE:
            if position < start:
                if position < first:
                    return None
                start, data = self._segment(position)
            _, length, previous, seq, text = _fields(data, position - start)
            if seq <= after:
                break
            if not length & BASE:
                found.append((position, seq, length, text - start, data, previous == NOWHERE))
            position = previous
        if limit is not None:
            found = found[max(0, len(found) - limit) :]
        found.reverse()
        return [
            Record(position, seq, length & _FLAGS, bytes(data[text : text + (length & LENGTH_MASK)]), is_first)
            for position, seq, length, text, data, is_first in found
        ]

    def view(self, number: int, at: int | None = None) -> RowBag | None:
        """The rows of a subscription as of seq `at`, or now; of one that has ended those before its end.

        None if the log does not go back that far, or the subscription is younger.
        """
        slot = self.heads.slot(number)
        position = NOWHERE if slot is None else self.heads.heads.item(slot)
        tails: list[memoryview] = []
        while position >= self._starts[0]:
            start, data = self._segment(position)
            _, length, previous, seq, text = _fields(data, position - start)
            if (at is None or seq <= at) and not length & END:
                tails.append(data[text - start : text - start + (length & LENGTH_MASK)])
                if length & (SNAPSHOT | BASE):
                    bag = RowBag()
                    for tail in reversed(tails):
                        bag.fold_text(bytes(tail))
                    return bag
            position = previous
        return None

    # The writer's

    def starts(self) -> list[int]:
        """First positions of the segments."""
        return list(self._starts)

    def segment_size(self) -> int:
        """Bytes that the newest segment has room for."""
        return len(self._newest)

    def segment_time(self, start: int) -> int:
        """When the last block before a segment was written, in microseconds."""
        head = block_head(self._segment(start)[1], start, start)
        return 0 if head is None else head.time_us


def _mapped(path: Path) -> memoryview:
    handle = os.open(path, os.O_RDONLY)
    try:
        return memoryview(mmap.mmap(handle, 0, prot=mmap.PROT_READ))
    finally:
        os.close(handle)


def _unquoted(name: bytes) -> str:
    return name[1:-1].decode() if b"\\" not in name else str(msgspec.json.decode(name))
