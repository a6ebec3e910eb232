"""Lines of a stream in their order: blocks of lines, each with its partition and its place there, as replicas get them.

The order is that of (partition, place): the same at every replay of a micro-batch, in whatever order Spark delivers blocks. A
place is a number (an offset) or a text (such as the name of a file); numbers are compared as numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from tidings.pipeline.replica.row_store import Places


class Block(NamedTuple):
    """The bytes of a block are: length of the partition's name (2), the name, length of the place (2), the place, the lines."""

    partition: str
    place: bytes
    """A number as 8 bytes, highest first, after a byte 0; a text after a byte 1."""
    text: bytes

    @staticmethod
    def read(blob: bytes) -> Block:
        name_stop = 2 + int.from_bytes(blob[:2], "big")
        start = name_stop + 2
        stop = start + int.from_bytes(blob[name_stop:start], "big")
        return Block(blob[2:name_stop].decode(), blob[start:stop], blob[stop:])

    @property
    def number(self) -> int | None:
        """The place, if it is a number."""
        return int.from_bytes(self.place[1:], "big") if self.place[:1] == b"\0" else None

    @property
    def label(self) -> str:
        """Partition and, where it is a text, place: for reports."""
        name = self.place[1:].decode("utf-8", "replace") if self.number is None else ""
        return ":".join(part for part in (self.partition, name) if part)


class StreamLines(NamedTuple):
    """All lines of some blocks, and where they come from."""

    lines: list[bytes]
    places: Places

    @staticmethod
    def of(blobs: Iterable[bytes]) -> StreamLines:
        # Names of partitions are mostly numbers: of two, the shorter one is the lower.
        blocks = sorted(map(Block.read, blobs), key=lambda block: (len(block.partition), block.partition, block.place))
        names = sorted({block.partition for block in blocks})
        numbers = {name: number for number, name in enumerate(names)}
        parts = [split_lines(block.text) for block in blocks]
        counts = [len(part) for part in parts]
        offsets = [
            np.full(n, b.number) if b.number is not None else np.arange(n) for b, n in zip(blocks, counts, strict=True)
        ]
        places = Places(
            names,
            np.repeat(np.array([numbers[block.partition] for block in blocks], np.int64), counts),
            [block.label for block in blocks],
            np.repeat(np.arange(len(blocks)), counts),
            np.concatenate([np.empty(0, np.int64), *offsets]),
        )
        return StreamLines([line for part in parts for line in part], places)

    def located(self) -> Iterator[tuple[str, int, bytes]]:
        """(label of the block, offset, line) of all lines."""
        labels, block, offset = self.places.labels, self.places.block.tolist(), self.places.offset.tolist()
        return ((labels[at], place, line) for at, place, line in zip(block, offset, self.lines, strict=True))


def split_lines(text: bytes | None) -> list[bytes]:
    """Lines without their ends. No text (a tombstone of a message queue) has no line; a newline at the end begins none."""
    return [line.rstrip(b"\r") for line in text.removesuffix(b"\n").split(b"\n")] if text else []
