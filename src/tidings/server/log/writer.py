"""Writing a notice log: a block per micro-batch, segments, and retention. There is one writer; readers need not know of it."""

from __future__ import annotations

import os
import secrets
import string
from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring
from pathlib import Path

import numpy as np

from tidings.files import write_bytes
from tidings.model.errors import RunError
from tidings.model.notification import NotificationBatch, snapshot_tail
from tidings.model.text_column import TextColumn
from tidings.server.log import files
from tidings.server.log.heads import Heads
from tidings.server.log.reader import LogReader
from tidings.server.log.segment_layout import (
    BASE,
    END,
    LENGTH_MASK,
    ROW,
    SNAPSHOT,
    BlockHead,
    RowArray,
    block,
    block_size,
    row_positions,
    segment_path,
    segment_starts,
    texts_offset,
)

_EPOCH_CHARACTERS = string.ascii_lowercase + string.digits
_BASES_BYTES = 4 * 2**20
"""Bases are written in blocks of about this size."""
_MAGIC_BYTES = 4


class LogWriter:
    """The end of a log. What `append` has returned from is seen by every reader; after `sync` it outlasts a loss of power."""

    def __init__(self, folder: Path, *, segment_bytes: int = 64 * 2**20) -> None:
        """Goes on with the log of a folder, or begins one. A block that is not whole is cut off: nobody was told of it."""
        self._folder = folder
        self._segment_bytes = segment_bytes
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path in folder.glob("*.partial"):
                path.unlink()
            if not (folder / "epoch").exists():
                write_bytes(folder / "epoch", ["".join(secrets.choice(_EPOCH_CHARACTERS) for _ in range(8)).encode()])
                files.sync_folder(folder)
            if not segment_starts(folder):
                data = _directory(Heads(), BlockHead(0, 0, 0, 0, 0, 0, 0, 0, 1))
                os.close(files.create(segment_path(folder, 0), data, segment_bytes))
            self._log = LogReader(folder)
            self._start = self._log.starts()[-1]
            self._handle = os.open(self._path, os.O_RDWR)
            files.clear_from(self._handle, self.end - self._start)
            self._remove()
        except OSError as error:
            raise files.failed(folder, error) from error

    @property
    def epoch(self) -> str:
        """Names this log: a position in it means nothing in another one."""
        return self._log.epoch

    @property
    def batch(self) -> int:
        """The last micro-batch; 0: there is none."""
        return self._log.batch

    @property
    def passed(self) -> int:
        """Everything up to this seq is in the log."""
        return self._log.passed

    @property
    def end(self) -> int:
        """Position behind the last block."""
        return self._log.end

    @property
    def _path(self) -> Path:
        return segment_path(self._folder, self._start)

    # Micro-batches

    def append(
        self, batch: int, passed: int, time_us: int, told: NotificationBatch, ended: Sequence[tuple[str, int]] = ()
    ) -> int:
        """Adds a micro-batch and gives the position behind it. One that the log has already is passed over.

        ended: (engine id, seq) of subscriptions that were dropped. What is told later under the same id is another
        subscription's. If it raises, nothing of the micro-batch is in the log.
        """
        if batch <= self.batch:
            return self.end
        tail_seq, tail_ends = told.tail_seq, told.tails.ends
        seqs = tail_seq[told.tail]
        if ended:
            slots, names, ends = _assigned_with_ends(self._log.heads, _texts(told.ids), seqs.tolist(), ended)
        else:
            slots, names = _assigned(self._log.heads, _texts(told.ids))
            ends = []
        rows = np.zeros(len(slots) + len(ends), ROW)
        count, text_bytes = len(slots), 0
        if count:
            # A tail ends with a newline, which is not counted. An empty one is nobody's.
            begins = np.zeros(len(tail_ends), np.int64)
            begins[1:] = tail_ends[:-1]
            lengths = np.maximum(tail_ends - begins - 1, 0)
            if int(lengths.max()) > LENGTH_MASK:
                raise RunError(
                    f"a notification has {int(lengths.max()):,} bytes; {LENGTH_MASK:,} is the most there may be"
                )
            lengths[told.tail_is_snapshot] |= SNAPSHOT
            rows["length"][:count], rows["text"][:count], rows["seq"][:count] = (
                lengths[told.tail],
                begins[told.tail],
                seqs,
            )
            text_bytes = int(tail_ends[-1])
        if ends:
            rows["length"][count:], rows["seq"][count:] = END, [seq for _, seq in ends]
            slots += [slot for slot, _ in ends]
        head = BlockHead(0, 0, self._log.first, batch, passed, time_us, len(rows), len(names), 0)
        self._put(head, rows, slots, names, told.tails.data[:text_bytes].tobytes())
        return self.end

    def _put(self, head: BlockHead, rows: RowArray, slots: list[int], names: dict[int, bytes], texts: bytes) -> None:
        """Writes a block at the end. rows: all but numbers and chains; `text` counts from the first text."""
        new, new_names = list(names), list(names.values())
        size = block_size(len(rows), new_names, len(texts))
        if self.end + size > self._start + self._log.segment_size():
            self._next_segment(size)
        head = head._replace(position=self.end, size=size)
        if slots:
            heads = self._log.heads
            heads.reserve(max(slots) + 1)
            at = np.array(slots)
            previous = heads.heads[at]
            if len(set(slots)) < len(slots):
                order, positions = np.argsort(at, kind="stable"), row_positions(head)
                is_same = at[order[1:]] == at[order[:-1]]
                previous[order[1:][is_same]] = positions[order[:-1][is_same]]
            rows["number"], rows["previous"] = at, previous
            rows["text"] += self.end + texts_offset(len(rows), new_names)
        data = block(head, rows, new, new_names, texts)
        offset = self.end - self._start
        try:
            files.write_at(self._handle, data, offset)
        except OSError as error:
            os.pwrite(self._handle, bytes(_MAGIC_BYTES), offset)
            raise files.failed(self._path, error) from error
        self._log.take(head, rows, new, new_names)

    def _next_segment(self, needed: int) -> None:
        """Begins a segment that has room for a block of so many bytes."""
        self.sync()
        log = self._log
        data = _directory(log.heads, BlockHead(log.end, 0, log.first, log.batch, log.passed, log.time_us, 0, 0, 1))
        path = segment_path(self._folder, log.end)
        try:
            handle = files.create(path, data, max(self._segment_bytes, 4 * len(data), len(data) + needed))
        except OSError as error:
            raise files.failed(path, error) from error
        os.close(self._handle)
        self._handle, self._start = handle, log.end
        log.refresh(log.end + len(data))

    def sync(self) -> None:
        """Makes everything so far outlast a loss of power."""
        try:
            os.fdatasync(self._handle)
        except OSError as error:
            raise files.failed(self._path, error) from error

    def close(self) -> None:
        os.close(self._handle)

    # Retention

    def retain(self, seconds: float, bytes_max: int, now_us: int) -> int:
        """Removes the oldest segments: those whose notices are all older, and as many as it takes to have at most `bytes_max`.

        The last segment always stays. Views can be had as before, and what they need is written first; so afterwards there
        may be more than `bytes_max`. Returns the number of segments removed.
        """
        log, starts = self._log, self._log.starts()
        count, oldest = 0, now_us - round(seconds * 1e6)
        while count + 1 < len(starts) and (
            self.end - starts[count] > bytes_max or log.segment_time(starts[count + 1]) < oldest
        ):
            count += 1
        if not count:
            return 0
        first = starts[count]
        head = BlockHead(0, 0, log.first, log.batch, log.passed, log.time_us, 0, 0, 0)
        for slots, rows, texts in self._folded(first):
            self._put(head._replace(rows=len(rows)), rows, slots, {}, texts)
        # From this block on the log begins at `first`. It must be there for good before anything is removed.
        self._put(head._replace(first=first), np.zeros(0, ROW), [], {}, b"")
        self.sync()
        try:
            self._remove()
        except OSError as error:
            raise files.failed(self._folder, error) from error
        return count

    def _folded(self, first: int) -> Iterator[tuple[list[int], RowArray, bytes]]:
        """(slots, rows, texts): bases for all who have theirs before `first`, some at a time."""
        heads = self._log.heads
        needy = np.flatnonzero((heads.bases >= 0) & (heads.bases < first)).tolist()
        slots: list[int] = []
        fields: list[tuple[int, int, int, int, int]] = []
        texts: dict[bytes, int] = {}
        text_bytes = 0
        for slot in needy:
            bag = None if slot in heads.ended else self._log.view(slot + heads.tags.item(slot))
            if bag is None:
                continue
            text = snapshot_tail(bag.seq, [row.decode() for row in bag.rows()]).encode()
            if len(text) > LENGTH_MASK:
                raise RunError(
                    f"rows of {heads.names[slot].decode()} have {len(text):,} bytes; {LENGTH_MASK:,} is the most there may be"
                )
            at = texts.setdefault(text, text_bytes)
            text_bytes += len(text) if at == text_bytes else 0
            slots.append(slot)
            fields.append((0, len(text) | BASE, 0, bag.seq, at))
            if text_bytes > _BASES_BYTES:
                yield slots, np.array(fields, ROW), b"".join(texts)
                slots, fields, texts, text_bytes = [], [], {}, 0
        if slots:
            yield slots, np.array(fields, ROW), b"".join(texts)

    def _remove(self) -> None:
        """Removes what is before the beginning of the log, oldest first."""
        for start in segment_starts(self._folder):
            if start < self._log.first:
                segment_path(self._folder, start).unlink()


def _directory(heads: Heads, head: BlockHead) -> bytes:
    rows, slots, names = heads.directory()
    size = block_size(len(rows), names, 0)
    return block(head._replace(size=size, rows=len(rows), names=len(names)), rows, slots, names, b"")


def _texts(column: TextColumn) -> list[bytes]:
    ends = column.ends.tolist()
    if not ends:
        return []
    raw = column.data[: ends[-1]].tobytes()
    return [raw[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def _assigned(heads: Heads, ids: list[bytes]) -> tuple[list[int], dict[int, bytes]]:
    """(slot of each notice, names of new subscriptions by slot)."""
    get, ended = heads.slots.get, heads.ended
    slots = [get(id, -1) for id in ids]
    if ended:
        slots = [-1 if slot in ended else slot for slot in slots]
    if -1 not in slots:
        return slots, {}
    missing = list(dict.fromkeys(id for id, slot in zip(ids, slots, strict=True) if slot < 0))
    new = dict(zip(missing, heads.unused(len(missing)), strict=True))
    slots = [new[id] if slot < 0 else slot for id, slot in zip(ids, slots, strict=True)]
    return slots, {slot: id for id, slot in new.items()}


def _assigned_with_ends(
    heads: Heads, ids: list[bytes], seqs: list[int], ended: Sequence[tuple[str, int]]
) -> tuple[list[int], dict[int, bytes], list[tuple[int, int]]]:
    """As `_assigned`, and (slot, seq) of those that end: also of one that ends, comes again and ends in one micro-batch."""
    unused = iter(heads.unused(len(ids)))
    current: dict[bytes, int] = {}
    names: dict[int, bytes] = {}
    found: list[tuple[int, int]] = []
    waiting = sorted(((encode_basestring(id).encode(), seq) for id, seq in ended), key=lambda end: end[1], reverse=True)

    def slot_of(id: bytes) -> int:
        slot = current.get(id)
        if slot is None:
            slot = heads.slots.get(id, -1)
            current[id] = slot = -1 if slot in heads.ended else slot
        return slot

    def end_before(seq: float) -> None:
        while waiting and waiting[-1][1] < seq:
            id, at = waiting.pop()
            if (slot := slot_of(id)) >= 0:
                found.append((slot, at))
                current[id] = -1

    slots = []
    for id, seq in zip(ids, seqs, strict=True):
        end_before(seq)
        if slot_of(id) < 0:
            current[id] = slot = next(unused)
            names[slot] = id
        slots.append(current[id])
    end_before(float("inf"))
    return slots, names, found
