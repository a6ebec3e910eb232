"""Lines of a stream in their order: blocks of lines with their partitions and places, made by tasks, put in order by replicas.

Records come to a task as rows (kind, partition, place, time, value). `block_lines` cuts their values into lines and packs them
into blocks of about a megabyte, so that few rows go to the replicas, and none that is too large for Spark or Arrow. Replicas
put lines in the order of (partition, place, line): the same at every replay of a micro-batch, in whatever order Spark delivers
blocks. Records with the same place in one partition stand in the order of their texts.

A place is a text of bytes that sorts as the places do: a kind of place, then a number as 8 bytes, highest first, with the sign
turned over; or a text; or several numbers. Records without a place, whose order would be a guess, are kept apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.model.change import NO_TIME
from tidings.pipeline.replica.batch import Places

NUMBER, TEXT, NUMBERS = b"\0", b"\1", b"\2"
"""First byte of a place: its kind."""
NOWHERE = b"\xff"
"""Instead of a place, where a record has none."""
_BLOCK_BYTES = 1 << 20
_SIGN = 1 << 63


def place_of(*numbers: int) -> bytes:
    """A place that is a number, or several."""
    kind = NUMBER if len(numbers) == 1 else NUMBERS
    return kind + b"".join((number + _SIGN).to_bytes(8, "big") for number in numbers)


class Run(NamedTuple):
    """Lines of one record, or some of them. first: number of the first line within the record, from 0 on.

    numbers: of all of them. time: in microseconds, or NO_TIME.
    """

    place: bytes
    first: int
    texts: list[bytes]
    numbers: NDArray[np.int64]
    time: int

    @property
    def order(self) -> tuple[bytes, int, list[bytes]]:
        return self.place, self.first, self.texts

    def split(self, lines: int) -> tuple[Run, Run]:
        """The first `lines` lines, fewer than there are, and the others."""
        first, rest = self.numbers[:lines], self.numbers[lines:]
        return (
            self._replace(texts=self.texts[:lines], numbers=first),
            self._replace(first=int(rest[0]), texts=self.texts[lines:], numbers=rest),
        )

    def cut(self, limit: int) -> Iterator[Run]:
        """The run in parts of about `limit` bytes."""
        parts = np.cumsum([*map(len, self.texts)]) // limit
        cuts = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(self.texts)]
        for start, stop in pairwise(cuts):
            numbers = self.numbers[start:stop]
            yield Run(self.place, int(numbers[0]), self.texts[start:stop], numbers, self.time)


class Block(msgspec.Struct, array_like=True):
    """Runs of one partition, in order. sizes, places, times: of each run. numbers: of all lines, as bytes of int64."""

    partition: str
    sizes: list[int]
    places: list[bytes]
    times: list[int]
    numbers: bytes
    text: bytes
    """The lines, each with a newline at its end."""

    @staticmethod
    def of(partition: str, runs: list[Run]) -> Block:
        return Block(
            partition,
            [len(run.texts) for run in runs],
            [run.place for run in runs],
            [run.time for run in runs],
            np.concatenate([run.numbers for run in runs]).tobytes(),
            b"\n".join([*(text for run in runs for text in run.texts), b""]),
        )

    def lines(self) -> Iterator[Run]:
        """Every line as a run of its own."""
        place_of = np.repeat(np.arange(len(self.sizes)), self.sizes).tolist()
        for at, text, number in zip(place_of, self.texts, self.numbers_array, strict=True):
            yield Run(self.places[at], int(number), [text], number.reshape(1), self.times[at])

    @property
    def texts(self) -> list[bytes]:
        return self.text.split(b"\n")[:-1]

    @property
    def numbers_array(self) -> NDArray[np.int64]:
        return np.frombuffer(self.numbers, np.int64)

    @property
    def first(self) -> tuple[bytes, int]:
        return self.places[0], int(self.numbers_array[0])

    @property
    def last(self) -> tuple[bytes, int]:
        return self.places[-1], int(self.numbers_array[-1])


_decoder = msgspec.msgpack.Decoder(Block)


def block_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows (kind, partition, place, time, value) -> rows (kind, blob), each blob a `Block`."""
    for batch in batches:
        gathered: dict[tuple[str, str, bool], list[Run]] = {}
        columns = (batch.column(name).to_pylist() for name in ("kind", "partition", "place", "time", "value"))
        for kind, partition, place, time, value in zip(*columns, strict=True):
            run = _run(place or NOWHERE, NO_TIME if time is None else time, value)
            if run.texts:
                gathered.setdefault((kind, partition, run.place == NOWHERE), []).append(run)
        # One block a batch: many together could exceed Arrow's 2 GiB.
        for (kind, partition, _), runs in gathered.items():
            for block in _blocks(partition, runs):
                blob = msgspec.msgpack.encode(block)
                yield pa.record_batch([pa.array([kind], pa.string()), pa.array([blob], pa.binary())], ["kind", "blob"])


def runs_of(records: Iterable[tuple[str, bytes, int, bytes]]) -> list[tuple[str, Run]]:
    """Records (partition, place, time, value) as (partition, lines), in order; those without a line are left out."""
    found = ((partition, _run(place, time, value)) for partition, place, time, value in records)
    with_lines = [(partition, run) for partition, run in found if run.texts]
    return sorted(with_lines, key=lambda entry: (len(entry[0]), entry[0], entry[1].order))


def blocks_of(runs: Iterable[tuple[str, Run]]) -> list[bytes]:
    """Lines by partition as blobs, each a `Block`."""
    gathered: dict[str, list[Run]] = {}
    for partition, run in runs:
        gathered.setdefault(partition, []).append(run)
    return [msgspec.msgpack.encode(block) for partition, runs in gathered.items() for block in _blocks(partition, runs)]


_FIRST = np.zeros(1, np.int64)


def _run(place: bytes, time: int, value: bytes | None) -> Run:
    """All lines of a record that are not blank."""
    texts = split_lines(value)
    if len(texts) == 1 and texts[0]:
        return Run(place, 0, texts, _FIRST, time)
    numbers = np.array([number for number, text in enumerate(texts) if text and not text.isspace()], np.int64)
    if len(numbers) < len(texts):
        texts = [texts[number] for number in numbers.tolist()]
    return Run(place, int(numbers[0]) if len(numbers) else 0, texts, numbers, time)


def _blocks(partition: str, runs: list[Run]) -> Iterator[Block]:
    waiting: list[Run] = []
    size = 0
    for run in sorted(runs, key=lambda run: run.order):
        for part in run.cut(_BLOCK_BYTES) if len(run.texts) > 1 else (run,):
            waiting.append(part)
            size += sum(map(len, part.texts))
            if size >= _BLOCK_BYTES:
                yield Block.of(partition, waiting)
                waiting, size = [], 0
    if waiting:
        yield Block.of(partition, waiting)


class StreamLines(NamedTuple):
    """All lines of some blocks in order, and where they come from. times: [lines], in microseconds, or NO_TIME."""

    lines: list[bytes]
    places: Places
    times: NDArray[np.int64]

    @staticmethod
    def split(blobs: Iterable[bytes]) -> tuple[StreamLines, StreamLines]:
        """(lines with a place, lines without one)."""
        blocks = [_decoder.decode(blob) for blob in blobs]
        placed = StreamLines.of_blocks([block for block in blocks if block.places[0] != NOWHERE])
        return placed, StreamLines.of_blocks([block for block in blocks if block.places[0] == NOWHERE])

    @staticmethod
    def of(blobs: Iterable[bytes]) -> StreamLines:
        return StreamLines.of_blocks([_decoder.decode(blob) for blob in blobs])

    @staticmethod
    def of_blocks(blocks: list[Block]) -> StreamLines:
        blocks = _in_order(blocks)
        names = sorted({block.partition for block in blocks})
        numbers = {name: number for number, name in enumerate(names)}
        parts = [block.texts for block in blocks]
        sizes = [size for block in blocks for size in block.sizes]
        found = [_number(place) for block in blocks for place in block.places]
        nothing = np.empty(0, np.int64)
        # Places that are numbers are reported by the number, others by the line.
        offset = np.concatenate([nothing, *(block.numbers_array for block in blocks)])
        number = np.repeat(np.array([0 if each is None else each for each in found], np.int64), sizes)
        is_number = np.repeat(np.array([each is not None for each in found], np.bool_), sizes)
        places = Places(
            names,
            np.repeat(np.array([numbers[block.partition] for block in blocks], np.int64), [*map(len, parts)]),
            [_label(block.partition, place) for block in blocks for place in block.places],
            np.repeat(np.arange(len(sizes)), sizes),
            np.where(is_number, number, offset),
            _units(blocks),
        )
        times = np.repeat(np.array([time for block in blocks for time in block.times], np.int64), sizes)
        return StreamLines([line for part in parts for line in part], places, times)

    def located(self) -> Iterator[tuple[str, int, bytes]]:
        """(label of the place, offset, line) of all lines."""
        labels, block, offset = self.places.labels, self.places.block.tolist(), self.places.offset.tolist()
        return ((labels[at], place, line) for at, place, line in zip(block, offset, self.lines, strict=True))


def _in_order(blocks: list[Block]) -> list[Block]:
    """The blocks by partition and place. Those of a partition that overlap are cut into lines and put together anew."""
    # Names of partitions are mostly numbers: of two, the shorter one is the lower.
    by_partition: dict[tuple[int, str], list[Block]] = {}
    for block in blocks:
        by_partition.setdefault((len(block.partition), block.partition), []).append(block)
    ordered: list[Block] = []
    for (_, partition), own in sorted(by_partition.items(), key=lambda entry: entry[0]):
        own.sort(key=lambda block: block.first)
        if any(a.last >= b.first for a, b in pairwise(own)):
            own = [
                Block.of(
                    partition, sorted((line for block in own for line in block.lines()), key=lambda run: run.order)
                )
            ]
        ordered += own
    return ordered


def _units(blocks: list[Block]) -> NDArray[np.int64] | None:
    """`Places.unit`: where places are names of files, the end of a file ends a transaction."""
    places = [place for block in blocks for place in block.places]
    if not any(place[:1] == TEXT for place in places):
        return None
    names = [(block.partition, place if place[:1] == TEXT else b"") for block in blocks for place in block.places]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.repeat(np.array([numbers[name] for name in names], np.int64), [n for b in blocks for n in b.sizes])


def _number(place: bytes) -> int | None:
    """The place, if it is one number."""
    return int.from_bytes(place[1:], "big") - _SIGN if place[:1] == NUMBER else None


def _label(partition: str, place: bytes) -> str:
    """Partition and, where it is not one number, place: for reports."""
    kind, rest = place[:1], place[1:]
    if kind in (NUMBER, NOWHERE):
        name = ""
    elif kind == NUMBERS:
        parts = (rest[at : at + 8] for at in range(0, len(rest), 8))
        name = "/".join(str(int.from_bytes(part, "big") - _SIGN) for part in parts)
    else:
        name = rest.decode("utf-8", "replace")
    return ":".join(part for part in (partition, name) if part)


def split_lines(text: bytes | None) -> list[bytes]:
    """Lines without their ends. No text (a tombstone of a message queue) has no line; a newline at the end begins none."""
    return [line.rstrip(b"\r") for line in text.removesuffix(b"\n").split(b"\n")] if text else []
