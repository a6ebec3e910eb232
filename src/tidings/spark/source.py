"""A Spark streaming source for recorded input: subscription events first, then blocks of lines, then an end mark.

An offset says how much has been handed out: {"batch": micro-batches, "line": lines, "byte": bytes, "end": 0 or 1}. Each
trigger takes up to `batch` lines, so that memory is bounded by the batch, not by the file; several sizes take turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from tidings.spark import envelope as kinds

_READ_BYTES = 1 << 20
Offset = dict[str, int]


class RecordedSource(DataSource):  # type: ignore[misc]
    """`spark.readStream.format("tidings-recorded")` with options changes, points, batch (sizes with commas), partitions.

    With an option `keys` (names of replicas with commas) the rows are envelopes for these, else blocks as they are.
    """

    @classmethod
    def name(cls) -> str:
        return "tidings-recorded"

    def schema(self) -> str:
        return kinds.SCHEMA if "keys" in self.options else kinds.SOURCE_SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        batches = [int(size) for size in self.options["batch"].split(",")]
        keys = self.options["keys"].split(",") if "keys" in self.options else []
        files = (self.options["changes"], self.options["points"])
        return RecordedReader(*files, batches, int(self.options["partitions"]), keys)


@dataclass
class Block(InputPartition):  # type: ignore[misc]
    """A part of a micro-batch: bytes of the changes file, or a whole points file, or the end mark."""

    kind: str
    path: str = ""
    start: int = 0
    stop: int = 0
    first_line: int = 0


class RecordedReader(DataSourceStreamReader):  # type: ignore[misc]
    def __init__(
        self, changes: str, points: str, batches: list[int], partitions: int, keys: Sequence[str] = ()
    ) -> None:
        self._changes = changes
        self._points = points
        self._batches = batches
        self._partitions = partitions
        self._keys = keys

    def initialOffset(self) -> Offset:
        return {"batch": 0, "line": 0, "byte": 0, "end": 0}

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:
        at = start or self.initialOffset()
        if at["end"]:
            return at
        wanted = self._batches[at["batch"] % len(self._batches)]
        lines, byte = self._skip(at["byte"], wanted)
        is_over = lines < wanted and byte >= Path(self._changes).stat().st_size
        return {"batch": at["batch"] + 1, "line": at["line"] + lines, "byte": byte, "end": int(is_over)}

    def partitions(self, start: Offset, end: Offset) -> list[Block]:
        blocks = []
        if start["batch"] == 0:
            blocks.append(Block(kinds.POINTS, self._points))
        lines, byte = start["line"], start["byte"]
        share = max(1, -(-(end["line"] - lines) // self._partitions))
        while byte < end["byte"]:
            count, stop = self._skip(byte, min(share, end["line"] - lines))
            blocks.append(Block(kinds.LINES, self._changes, byte, stop, lines))
            lines, byte = lines + count, stop
        if start["end"] < end["end"]:
            blocks.append(Block(kinds.END))
        return blocks

    def read(self, partition: Block) -> Iterator[pa.RecordBatch]:
        value = b""
        if partition.path:
            with Path(partition.path).open("rb") as source:
                source.seek(partition.start)
                size = partition.stop - partition.start if partition.kind == kinds.LINES else -1
                value = source.read(size)
        if partition.kind == kinds.LINES and value.endswith(b"\n"):
            value = value[:-1]
        if self._keys:
            from tidings.spark.ingest import spread, to_arrow

            yield from map(to_arrow, spread(self._keys, partition.kind, partition.first_line, value))
            return
        arrays = [
            pa.array([partition.kind], pa.string()),
            pa.array([partition.first_line], pa.int64()),
            pa.array([value], pa.binary()),
        ]
        yield pa.RecordBatch.from_arrays(arrays, ["kind", "position", "value"])

    def commit(self, end: Offset) -> None:
        """Nothing to forget: the files stay."""

    def _skip(self, byte: int, lines: int) -> tuple[int, int]:
        """(lines passed, byte reached) after at most so many lines from a byte; a last line may lack its newline."""
        passed = 0
        last = b"\n"
        with Path(self._changes).open("rb") as source:
            source.seek(byte)
            while passed < lines and (chunk := source.read(_READ_BYTES)):
                count = chunk.count(b"\n")
                if passed + count >= lines:
                    at = -1
                    for _ in range(lines - passed):
                        at = chunk.index(b"\n", at + 1)
                    return lines, byte + at + 1
                passed += count
                byte += len(chunk)
                last = chunk[-1:]
        return passed + (last != b"\n"), byte
