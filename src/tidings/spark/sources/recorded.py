"""Recorded input as a Spark stream: subscription events first, then blocks of lines, then an end mark.

The stream itself has only block numbers, from Spark's source of numbered rows; an interrupted run resumes at its offsets. An
index file, made once before the run, says which bytes of the input each block has. Every task reads its blocks from the input
file itself, so that no other process has to read and copy lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, hex, lit, lpad, unhex

from tidings.model.blob import pack, unpack
from tidings.pipeline.commits import goes_on, open_tx
from tidings.pipeline.ingest import UNREADABLE, tx_of
from tidings.spark import envelope as kinds

_READ_BYTES = 1 << 20
_NEWLINE = 10
_BLOCK_BYTES_MAX = 64 * 2**20


class Row(NamedTuple):
    """A part of a block. position: of the first line, for lines."""

    kind: str
    position: int | None
    value: bytes | None


class Recording:
    """A file of changes cut into blocks, and a file of subscription events, which are part of block 0."""

    def __init__(self, index: Path) -> None:
        known = unpack(index.read_bytes())
        self._changes = Path(known["changes"])
        self._points = Path(known["points"])
        self._cuts = known["cuts"]

    @staticmethod
    def write(index: Path, changes: Path, points: Path, batches: Sequence[int], *, by_commit: bool = False) -> None:
        """Writes the index. batches: sizes of micro-batches in lines, used in turn; by_commit: none splits a transaction."""
        known = {"changes": str(changes.resolve()), "points": str(points.resolve())}
        partial = index.with_name(f".{index.name}.partial")
        cuts = _cuts(changes, batches)
        if by_commit:
            cuts = _moved_cuts(changes, cuts)
        partial.write_bytes(pack({**known, "cuts": np.array(cuts, np.int64)}))
        partial.replace(index)

    def __len__(self) -> int:
        return len(self._cuts) - 1

    def rows(self, block: int) -> Iterator[Row]:
        """The rows of a block: subscription events in block 0, lines, an end mark in the last. None beyond the last block."""
        if block >= len(self):
            return
        if block == 0:
            yield Row(kinds.POINTS, None, self._points.read_bytes())
        (line, start), (_, stop) = self._cuts[block : block + 2].tolist()
        if start < stop:
            with self._changes.open("rb") as source:
                source.seek(start)
                yield Row(kinds.LINES, line, source.read(stop - start).removesuffix(b"\n"))
        if block == len(self) - 1:
            yield Row(kinds.END, None, None)


def recorded_source(spark: SparkSession) -> DataFrame:
    """The job's input: an endless stream of block numbers, one of them in every micro-batch."""
    numbers = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=1, numPartitions=1).load()
    return numbers.select(lit(kinds.RECORDED).alias("kind"), col("value").alias("position"))


def recorded_blocks(source: DataFrame) -> DataFrame:
    """The input of replicas that read recorded blocks: kind, and the number of the block as a blob."""
    return source.select("kind", unhex(lpad(hex("position"), 16, "0")).alias("blob"))


def _cuts(changes: Path, batches: Sequence[int]) -> list[tuple[int, int]]:
    """(line, byte) where each block begins, and where the last one ends; the last line may lack its newline.

    A block has the lines that its size says, or as many as make _BLOCK_BYTES_MAX bytes.
    """
    sizes = cycle(batches)
    cuts = [(0, 0)]
    line = byte = 0
    due = next(sizes)
    last = b"\n"
    with changes.open("rb") as source:
        while chunk := source.read(_READ_BYTES):
            ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == _NEWLINE)
            while due <= line + len(ends):
                cuts.append(cuts[-1] if due == cuts[-1][0] else (due, byte + int(ends[due - line - 1]) + 1))
                due += next(sizes)
            line, byte, last = line + len(ends), byte + len(chunk), chunk[-1:]
            if len(ends) and byte - cuts[-1][1] >= _BLOCK_BYTES_MAX:
                # Long lines: the block ends before it has as many lines as it should. What is left of it is the next one.
                cuts.append((line, byte - len(chunk) + int(ends[-1]) + 1))
    end = (line + (last != b"\n"), byte)
    if cuts[-1] != end:
        cuts.append(end)
    return cuts if len(cuts) > 1 else [*cuts, end]


def _moved_cuts(changes: Path, cuts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The cuts, those within a transaction moved to its end. Cuts that a transaction covers come to lie at one place."""
    moved = cuts[:1]
    with changes.open("rb") as source:
        for line, byte in cuts[1:]:
            if line > moved[-1][0] and (tx := open_tx(_lines_before(source, byte, moved[-1][1]))) is not None:
                source.seek(byte)
                for text in source:
                    if not goes_on(text.rstrip(b"\r\n"), tx):
                        break
                    line, byte = line + 1, byte + len(text)
            moved.append(max(moved[-1], (line, byte)))
    return moved


def _lines_before(source: IO[bytes], stop: int, start: int) -> list[bytes]:
    """The last lines of the part between two places that begin with one of which it is known whether it is in a transaction."""
    size = _READ_BYTES // 16
    while True:
        begin = max(start, stop - size)
        source.seek(begin)
        lines = source.read(stop - begin).splitlines()
        # The first one is whole at the beginning of the part only.
        known = lines if begin == start else lines[1:]
        if begin == start or any(tx_of(line) is not UNREADABLE for line in known):
            return known
        size *= 4
