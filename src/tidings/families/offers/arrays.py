"""Boxes as the arrays that an index of boxes takes: of points, as subscriptions come, and of constraints one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tidings.families.offers.constraint import Box
from tidings.families.offers.kernels.box_index import TEXT_FIELDS, NewBoxes, Queries
from tidings.families.offers.kernels.subscriptions import count_texts, hash_texts, read_points
from tidings.families.offers.subscription import Space, decode_texts
from tidings.kernels.arrays import I64, U8
from tidings.model.points import PointBatch

_NO_BYTES = np.zeros(1, np.uint8)


def boxes_of_points(points: PointBatch, owners: I64, space: Space) -> NewBoxes:
    """The boxes of points of one form, which belong to these owners."""
    lo, hi = (np.ascontiguousarray(points.coords[:, side::2]) for side in range(2))
    codes = lo.copy()
    equal = np.zeros(len(points), np.int64)
    for place in range(len(space.axes)):
        if place not in space.texts:
            equal |= (lo[:, place] == hi[:, place]).astype(np.int64) << place
    owners = owners.astype(np.int64)
    if not space.texts:
        return NewBoxes(owners, lo, hi, codes, equal, np.empty((len(points), 0), np.int64), _NO_BYTES)
    starts, data = _details(points)
    ends = np.empty((len(points), TEXT_FIELDS * len(space.texts)), np.int64)
    text = np.empty(max(1, count_texts(data, starts, ends)), np.uint8)
    read_points(data, starts, np.array(space.texts, np.int64), ends, text, codes, equal)
    return NewBoxes(owners, lo, hi, codes, equal, ends, text)


def _details(points: PointBatch) -> tuple[I64, U8]:
    """(where the details of each point begin and the last end, bytes) of a batch."""
    column = points.details
    _, offsets, data = column.buffers()
    starts = np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset).astype(np.int64)
    return starts, _NO_BYTES if data is None else np.frombuffer(bytearray(data) or bytearray(1), np.uint8)


def box_of_point(coords: Sequence[int], details: bytes, space: Space) -> Box:
    texts: list[Any] = [None] * len(space.axes)
    for place, ends in zip(space.texts, decode_texts(details), strict=True):
        texts[place] = None if ends == (None, None) else ends
    return Box(space.axes, tuple(coords[::2]), tuple(coords[1::2]), tuple(texts))


def each_box(points: PointBatch, space: Space) -> Iterator[Box]:
    """The box of each point of a form."""
    for coords, details in zip(points.coords.tolist(), points.details.to_pylist(), strict=True):
        yield box_of_point(coords, details, space)


def equal_mask(box: Box) -> int:
    """Bit i for a single value on the box's i-th axis."""
    return sum(1 << place for place in range(len(box.axes)) if box.is_equality(place))


def queries_of(boxes: Sequence[Box]) -> Queries:
    """Boxes of one kind (the same axes, and single values on the same ones of these) to search with."""
    axes = len(boxes[0].axes)
    lo, hi = (np.array(ends, np.int64) for ends in ([box.lo for box in boxes], [box.hi for box in boxes]))
    q = np.empty((len(boxes), 2 * axes), np.int64)
    q[:, ::2], q[:, 1::2] = hi, ~lo
    codes, text = lo.copy(), bytearray()
    ends = np.full((len(boxes), TEXT_FIELDS * axes), -1, np.int64)
    for i, box in enumerate(boxes):
        for place, texts in enumerate(box.texts):
            for side, end in enumerate(texts or ()):
                if end is not None:
                    at = TEXT_FIELDS * place + 2 * side
                    ends[i, at : at + 2] = len(text), len(text) + len(end)
                    text += end
    data = np.frombuffer(text or bytearray(1), np.uint8)
    for place in range(axes):
        if boxes[0].texts[place] is not None and boxes[0].is_equality(place):
            starts, stops = (np.ascontiguousarray(ends[:, TEXT_FIELDS * place + side]) for side in range(2))
            hashes = np.empty(len(boxes), np.int64)
            hash_texts(data, starts, stops, hashes)
            codes[:, place] = hashes
    return Queries(q, codes, ends, data)
