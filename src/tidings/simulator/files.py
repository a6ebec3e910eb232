"""The files of `tidings simulate`: points and messages in, deliveries out."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tidings.files import open_input
from tidings.kernels.arrays import I64, INT64_MAX, INT64_MIN
from tidings.model.errors import UsageError

DIMS_MAX = 48
_BYTES_MAX = 2**40


class Traffic(NamedTuple):
    """Points coords [n, D] and messages [m], by time: what everybody tells whom."""

    point_ids: Sequence[Any]
    points: I64
    ids: Sequence[Any]
    at: Sequence[float]
    boxes: Sequence[tuple[I64, I64]]
    payload: Sequence[int]
    """Messages with the same payload have the same number."""
    payload_bytes: Sequence[int]
    sizes: Sequence[int] = ()
    """Bytes of messages without payload; empty: counted from their boxes."""


class _Point(msgspec.Struct):
    id: int | str
    point: list[int]


class _Message(msgspec.Struct):
    id: int | str
    at: float
    boxes: list[tuple[list[int], list[int]]]
    payload: int | str | None = None
    bytes: int = 0


def read_traffic(points: Path, messages: Path) -> Traffic:
    """UsageError that names the line if something cannot be used."""
    point_ids: list[Any] = []
    coords = array("q")
    dims = None
    for number, entry in _records(points, _Point):
        dims = _dims(entry.point, dims, points, number)
        point_ids.append(entry.id)
        try:
            coords.extend(entry.point)
        except OverflowError:
            raise _wrong(points, number, "coordinates are integers of 64 bits") from None
    _check_unique(point_ids, points)
    found = []
    for number, message in _records(messages, _Message):
        for box in message.boxes:
            for end in box:
                dims = _dims(end, dims, messages, number)
        if not 0 <= message.at < 1e12:
            raise _wrong(messages, number, f"at is a time in milliseconds, not {message.at}")
        if not 0 <= message.bytes <= _BYTES_MAX:
            raise _wrong(messages, number, f"bytes is a size from 0 to {_BYTES_MAX}, not {message.bytes}")
        found.append(message)
    _check_unique([message.id for message in found], messages)
    where = np.frombuffer(coords, np.int64).reshape(len(point_ids), dims or 1)
    found.sort(key=lambda message: message.at)
    return traffic_of(point_ids, where, found)


def traffic_of(point_ids: Sequence[Any], points: I64, messages: Sequence[_Message]) -> Traffic:
    numbers: dict[Any, int] = {}
    sizes: dict[int, int] = {}
    payload = []
    for place, message in enumerate(messages):
        # A message without payload id has a payload of its own.
        own = (place,) if message.payload is None else message.payload
        payload.append(numbers.setdefault(own, len(numbers)))
        sizes.setdefault(payload[-1], message.bytes)
    return Traffic(
        point_ids,
        points,
        [message.id for message in messages],
        [message.at for message in messages],
        [_ends(message.boxes, points.shape[1]) for message in messages],
        payload,
        [sizes[number] for number in payload],
    )


def delivery_lines(deliveries: Iterable[tuple[Any, int, Sequence[Any]]]) -> Iterator[bytes]:
    """Lines of (message, broker, points)."""
    encoder = msgspec.json.Encoder()
    for message, broker, points in deliveries:
        yield encoder.encode({"message": message, "broker": broker, "points": points}) + b"\n"


def _records(path: Path, kind: Any) -> Iterator[tuple[int, Any]]:
    decoder = msgspec.json.Decoder(kind)
    with open_input(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield number, decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise _wrong(path, number, str(error)) from None


def _dims(coords: list[int], dims: int | None, path: Path, number: int) -> int:
    if dims is None and not 1 <= len(coords) <= DIMS_MAX:
        raise _wrong(path, number, f"points have 1 to {DIMS_MAX} coordinates, not {len(coords)}")
    if dims is not None and len(coords) != dims:
        raise _wrong(path, number, f"{len(coords)} coordinates, where the first has {dims}")
    return len(coords)


def _ends(boxes: Sequence[tuple[list[int], list[int]]], dims: int) -> tuple[I64, I64]:
    """Boxes as arrays; they may reach beyond 64 bits, where no point is."""
    lo = [[min(max(end, INT64_MIN), INT64_MAX) for end in box[0]] for box in boxes]
    hi = [[min(max(end, INT64_MIN), INT64_MAX) for end in box[1]] for box in boxes]
    # What lies beyond on one side altogether has no points.
    for low, high, box in zip(lo, hi, boxes, strict=True):
        if any(a > INT64_MAX or b < INT64_MIN for a, b in zip(*box, strict=True)):
            low[0], high[0] = 1, 0
    return np.array(lo, np.int64).reshape(len(lo), dims), np.array(hi, np.int64).reshape(len(hi), dims)


def _check_unique(ids: Sequence[Any], path: Path) -> None:
    # A number and a text may look alike, and are two ids.
    if len(set(ids)) < len(ids):
        twice, _ = Counter(ids).most_common(1)[0]
        raise UsageError(f"{path}: the id {twice!r} is there twice")


def _wrong(path: Path, number: int, problem: str) -> UsageError:
    return UsageError(f"{path}, line {number}: {problem}")
