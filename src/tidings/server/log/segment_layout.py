"""The files of the notice log: segments of blocks, a block per micro-batch.

    block:  head | rows, 32 bytes each | numbers, lengths and bytes of new names | texts | zeros up to a multiple of 8

Positions are bytes since the log began; a segment is named by its first one, and the next segment starts where it ends. So a
position behind the last block of a segment is that of the next segment, if there is one. The first block of a segment is its
*directory*: a row and a name for each subscription, `previous` being its head and `text` its base. The head of a block has its
own position, so bytes left over from an earlier try are never taken for a block.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.model.codes import Int64Array

SNAPSHOT, BASE, END = 1 << 29, 1 << 30, 1 << 31
"""Flags of a row. Told, and begins the view anew; a folded view, told to nobody; the subscription was dropped."""
LENGTH_MASK = SNAPSHOT - 1
"""The rest of the field is the length of the text: less than 2^29 bytes."""
NOWHERE = -1

ROW = np.dtype([("number", "<u4"), ("length", "<u4"), ("previous", "<i8"), ("seq", "<i8"), ("text", "<i8")])
ROW_FIELDS = struct.Struct("<IIqqq")
RowArray = npt.NDArray[np.void]
assert ROW.itemsize == ROW_FIELDS.size

_MAGIC = 0x314C4E54
_HEAD = struct.Struct("<IIqqqqqqIII4x")
HEAD_BYTES = _HEAD.size
_CHECKED_FROM = 8
"""The checksum covers all but itself and the magic number."""
_ZEROS = bytes(8)


class Record(NamedTuple):
    """A notice of a subscription. tail: its line behind the id, without the newline; empty at the end of a subscription."""

    position: int
    seq: int
    flags: int
    tail: bytes
    is_first: bool = False
    """Whether it is the first one that the subscription was ever told."""

    @property
    def is_snapshot(self) -> bool:
        return bool(self.flags & SNAPSHOT)

    @property
    def is_base(self) -> bool:
        return bool(self.flags & BASE)

    @property
    def is_end(self) -> bool:
        return bool(self.flags & END)


class BlockHead(NamedTuple):
    """What a block says of itself. first: where the log begins; everything before it may be removed."""

    position: int
    size: int
    first: int
    batch: int
    passed: int
    time_us: int
    rows: int
    names: int
    is_directory: int

    @property
    def end(self) -> int:
        return self.position + self.size


def block_size(rows: int, names: Sequence[bytes], text_bytes: int) -> int:
    return (texts_offset(rows, names) + text_bytes + 7) & -8


def texts_offset(rows: int, names: Sequence[bytes]) -> int:
    """Where in a block the texts are."""
    return HEAD_BYTES + ROW.itemsize * rows + (8 * len(names) + sum(map(len, names)) if names else 0)


def block(head: BlockHead, rows: RowArray, numbers: Sequence[int], names: Sequence[bytes], texts: bytes) -> bytes:
    """The bytes of a block. numbers: of the subscriptions whose names are given."""
    parts = [rows.tobytes()]
    if names:
        parts.append(np.array([*numbers, *map(len, names)], "<u4").tobytes())
        parts += names
    parts.append(texts)
    parts.append(_ZEROS[: head.size - texts_offset(head.rows, names) - len(texts)])
    counts = (head.rows, head.names, head.is_directory)
    whole = _HEAD.pack(
        _MAGIC, 0, head.size, head.position, head.first, head.batch, head.passed, head.time_us, *counts
    ) + b"".join(parts)
    checksum = zlib.crc32(memoryview(whole)[_CHECKED_FROM:])
    return whole[:4] + checksum.to_bytes(4, "little") + memoryview(whole)[_CHECKED_FROM:]


def block_head(data: memoryview, start: int, position: int) -> BlockHead | None:
    """The head of the block at a position of a segment that begins at `start`. None if there is none, or it is not whole."""
    at = position - start
    if at + HEAD_BYTES > len(data):
        return None
    magic, checksum, size, own, first, batch, passed, time_us, rows, names, kind = _HEAD.unpack_from(data, at)
    if magic != _MAGIC or own != position or not HEAD_BYTES <= size <= len(data) - at:
        return None
    if zlib.crc32(data[at + _CHECKED_FROM : at + size]) != checksum:
        return None
    return BlockHead(position, size, first, batch, passed, time_us, rows, names, kind)


def block_rows(data: memoryview, start: int, head: BlockHead) -> RowArray:
    """Rows of a block, without a copy."""
    return np.frombuffer(data, ROW, head.rows, head.position - start + HEAD_BYTES)


def block_names(data: memoryview, start: int, head: BlockHead) -> tuple[list[int], list[bytes]]:
    """(numbers, names) of the subscriptions that a block introduces."""
    if not head.names:
        return [], []
    at = head.position - start + HEAD_BYTES + ROW.itemsize * head.rows
    fields = np.frombuffer(data, "<u4", 2 * head.names, at)
    at += fields.nbytes
    lengths = fields[head.names :]
    ends = np.cumsum(lengths, dtype=np.int64)
    raw = bytes(data[at : at + int(ends[-1])])
    names = [raw[begin:end] for begin, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True)]
    return fields[: head.names].tolist(), names


def row_positions(head: BlockHead) -> Int64Array:
    first = head.position + HEAD_BYTES
    return np.arange(first, first + ROW.itemsize * head.rows, ROW.itemsize)


def segment_path(folder: Path, start: int) -> Path:
    return folder / f"notices-{start:019d}"


def segment_starts(folder: Path) -> list[int]:
    """First positions of the segments of a folder, ascending."""
    return sorted(int(path.name.partition("-")[2]) for path in folder.glob("notices-*[0-9]"))
