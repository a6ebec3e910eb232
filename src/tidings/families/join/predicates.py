"""Turns the predicates of new points into boxes of the stabbing index, and into tests for their snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from json.encoder import encode_basestring
from typing import NamedTuple

import msgspec
import numpy as np

from tidings.families.join.kernels.combine import (
    CLOSED,
    COLUMN,
    HI,
    HI_TEXT,
    IS_NULL,
    LO,
    LO_TEXT,
    TEST_FIELDS,
    VALUE_CODE,
    VALUE_FIELDS,
    VALUE_TEXT,
    VALUE_TEXT_STOP,
    VALUES,
    VALUES_STOP,
    Newcomers,
)
from tidings.families.join.subscription import BOXES_MAX, AnyOf, Predicate
from tidings.kernels.rows import I64, NONE, U8, hash_bytes
from tidings.kernels.stabbing import TextEnds, Texts
from tidings.model.codes import BoolArray
from tidings.model.points import PointBatch

_DECODER = msgspec.msgpack.Decoder(list[Predicate | None])


class Tested(NamedTuple):
    """A column with a predicate: = or IN (`is_equal`), or a range."""

    side: int
    column: int
    is_equal: bool
    is_text: bool


class BoxRows(NamedTuple):
    """Boxes of some points. point: [boxes], the point of each; equal: constants of equalities; ends: of ranges."""

    wide: tuple[int, ...]
    """Columns with IN whose boxes have a range from the least to the largest value instead."""
    point: I64
    equal: I64
    equal_text: list[Texts | None]
    """[equality columns]: constants of TEXT columns; None for other types."""
    ends: I64
    text_ends: list[tuple[TextEnds, ...]]


class Predicates:
    """Predicates of the points of a batch. IN has several values, = has one."""

    def __init__(self, tested: Sequence[Tested], points: PointBatch) -> None:
        self._tested = tested
        self._coords = points.coords
        self._equal = [i for i, one in enumerate(tested) if one.is_equal]
        self._ranged = [i for i, one in enumerate(tested) if not one.is_equal]
        n = len(points)
        self.is_possible: BoolArray = np.all(self._coords[:, 0::2] <= self._coords[:, 1::2], axis=1)
        """[points]: whether any row can satisfy the predicates."""
        self._counts = np.ones((n, len(self._equal)), np.int64)
        """[points, equalities]: number of values. `_codes` has all values in this order."""
        self._codes = self._coords[:, [2 * i for i in self._equal]].reshape(-1)
        self._texts: list[bytes | None] | None = None
        self._text_ends: list[tuple[TextEnds, ...]] = []
        """[points]: exact ends of each text range."""
        details = points.details.to_pylist()
        if any(details):
            self._read(details)

    def _read(self, details: Sequence[bytes]) -> None:
        lossy = [i for i in self._ranged if self._tested[i].is_text]
        texts: list[bytes | None] = []
        codes: list[int] = []
        hashes: dict[str, tuple[bytes, int]] = {}
        for point, note in enumerate(details):
            predicates = _DECODER.decode(note) if note else [None] * len(self._tested)
            for at, i in enumerate(self._equal):
                predicate = predicates[i]
                if predicate is None or predicate.values is None:
                    texts.append(None)
                    codes.append(int(self._coords[point, 2 * i]))
                    continue
                self._counts[point, at] = len(predicate.values)
                for value in predicate.values:
                    if isinstance(value, str):
                        known = hashes.get(value)
                        if known is None:
                            text = _canonical(value)
                            known = hashes[value] = (text, int(hash_bytes(_bytes(text), 0, len(text))))
                        texts.append(known[0])
                        codes.append(known[1])
                    else:
                        texts.append(None)
                        codes.append(value)
            if lossy:
                self._text_ends.append(tuple(_ends(predicates[i]) for i in lossy))
        self._texts, self._codes = texts, np.array(codes, np.int64)

    @cached_property
    def _first_value(self) -> I64:
        """[points * equalities + 1]: start of the values of each equality in `_codes`."""
        return np.append(0, np.cumsum(self._counts.ravel()))

    @cached_property
    def is_wide(self) -> BoolArray:
        """[points]: whether the boxes contain more than the point selects, as exact ones would be more than BOXES_MAX."""
        many: BoolArray = np.prod(self._counts.astype(np.float64), axis=1) > BOXES_MAX
        return self.is_possible & many

    def boxes(self) -> Iterator[BoxRows]:
        """One box per combination of values, for points with `is_possible`; at most BOXES_MAX per point (see `is_wide`)."""
        yield self._boxes(np.flatnonzero(self.is_possible & ~self.is_wide), ())
        parts: dict[tuple[int, ...], list[int]] = {}
        for point in np.flatnonzero(self.is_wide).tolist():
            parts.setdefault(self._wide(point), []).append(point)
        for wide, members in parts.items():
            yield self._boxes(np.array(members, np.int64), wide)

    def _wide(self, point: int) -> tuple[int, ...]:
        """The IN columns of a wide point that get a range: those with the most values, so that the others make few boxes."""
        wide, boxes = [], 1
        for at in np.argsort(self._counts[point], kind="stable").tolist():
            boxes *= int(self._counts[point, at])
            if boxes > BOXES_MAX:
                wide.append(self._equal[at])
        return tuple(sorted(wide))

    def _boxes(self, point: I64, wide: tuple[int, ...]) -> BoxRows:
        ranged = sorted((*self._ranged, *wide))
        pinned = [at for at, i in enumerate(self._equal) if i not in wide]
        first, texts = self._first_value, self._texts
        if bool((self._counts[point][:, pinned] == 1).all()):
            values = first[len(self._equal) * point[:, None] + np.array(pinned, np.int64)]
        else:
            combined = [
                list(product(*(range(*first[len(self._equal) * i + at :][:2].tolist()) for at in pinned)))
                for i in point.tolist()
            ]
            point = np.repeat(point, [len(one) for one in combined])
            values = np.array([one for part in combined for one in part], np.int64).reshape(len(point), len(pinned))
        equal_text: list[Texts | None] = [None] * len(pinned)
        if texts is not None:
            for j, column in enumerate(values.T.tolist()):
                known = [text for at in column if (text := texts[at]) is not None]
                if known:
                    equal_text[j] = Texts(known, np.arange(len(known)))
        ends = self._coords.reshape(len(self._coords), len(self._tested), 2)[point][:, ranged]
        text_ends = [self._text_ends[i] for i in point.tolist()] if self._text_ends else []
        return BoxRows(
            wide, point, self._codes[values], equal_text, ends.reshape(len(point), 2 * len(ranged)), text_ends
        )

    def newcomers(self, at: I64, slots: I64, signature: int, sides: int) -> Newcomers:
        """The points at `at`, whose slots are `slots`, as newcomers: subscriptions with tests for single rows."""
        dims, equalities = len(self._tested), len(self._equal)
        tests = np.full((len(at), dims, TEST_FIELDS), NONE, np.int64)
        tests[:, :, COLUMN] = [one.column for one in self._tested]
        tests[:, :, LO], tests[:, :, HI] = self._coords[at, 0::2], self._coords[at, 1::2]
        tests[:, :, VALUES] = tests[:, :, VALUES_STOP] = tests[:, :, IS_NULL] = 0
        first = self._first_value
        for j, i in enumerate(self._equal):
            place = equalities * at + j
            tests[:, i, VALUES], tests[:, i, VALUES_STOP] = first[place], first[place + 1]
        text = bytearray()
        values = np.zeros((len(self._codes), VALUE_FIELDS), np.int64)
        values[:, VALUE_CODE] = self._codes
        for i, value in enumerate(self._texts or ()):
            if value is not None:
                values[i, VALUE_TEXT] = len(text)
                text += value
                values[i, VALUE_TEXT_STOP] = len(text)
        lossy = [i for i in self._ranged if self._tested[i].is_text]
        if self._text_ends:
            for row, point in enumerate(at.tolist()):
                for i, (lo, hi, lo_closed, hi_closed) in zip(lossy, self._text_ends[point], strict=True):
                    tests[row, i, CLOSED] = lo_closed | hi_closed << 1
                    for end, field in ((lo, LO_TEXT), (hi, HI_TEXT)):
                        if end is not None:
                            tests[row, i, field] = len(text)
                            text += end
                            tests[row, i, field + 1] = len(text)
        of_side = np.searchsorted([one.side for one in self._tested], np.arange(sides + 1))
        tests_of = dims * np.arange(len(at))[:, None] + of_side
        return Newcomers(
            slots,
            self.is_wide[at].astype(np.int64),
            np.where(self.is_possible[at], signature, NONE),
            tests_of,
            tests.reshape(-1, TEST_FIELDS),
            values,
            _bytes(bytes(text)),
        )


def alternatives(any_of: AnyOf, slot: int, signature: int, sides: int) -> Newcomers:
    """The alternatives of a subscription as newcomers."""
    tests: list[I64] = []
    values: list[tuple[int, int, int]] = []
    text = bytearray()
    tests_of = []

    def keep(value: str | None) -> tuple[int, int]:
        if value is None:
            return NONE, NONE
        start = len(text)
        text.extend(_canonical(value))
        return start, len(text)

    for conditions in any_of.alternatives:
        first = len(tests)
        tests_of.append(first + np.searchsorted([one.side for one in conditions], np.arange(sides + 1)))
        for one in conditions:
            test = np.full(TEST_FIELDS, NONE, np.int64)
            test[[COLUMN, LO, HI, IS_NULL]] = one.column, one.lo, one.hi, one.is_null
            test[VALUES] = len(values)
            predicate = one.predicate
            if predicate is not None and predicate.values is not None:
                for value in predicate.values:
                    if isinstance(value, str):
                        start, stop = keep(value)
                        values.append((int(hash_bytes(_bytes(bytes(text[start:stop])), 0, stop - start)), start, stop))
                    else:
                        values.append((value, 0, 0))
            elif predicate is not None:
                test[CLOSED] = predicate.lo_closed | predicate.hi_closed << 1
                test[[LO_TEXT, LO_TEXT + 1]], test[[HI_TEXT, HI_TEXT + 1]] = keep(predicate.lo), keep(predicate.hi)
            test[VALUES_STOP] = len(values)
            tests.append(test)
    count = len(any_of.alternatives)
    return Newcomers(
        np.full(count, slot),
        np.ones(count, np.int64),
        np.full(count, signature),
        np.array(tests_of, np.int64),
        np.array(tests, np.int64).reshape(len(tests), TEST_FIELDS),
        np.array(values, np.int64).reshape(len(values), VALUE_FIELDS),
        _bytes(bytes(text)),
    )


def gathered(parts: Sequence[Newcomers], sides: int) -> Newcomers:
    """Joins newcomers into one, sorted by slot. sides: highest number of sides of a join."""
    slots = np.concatenate([np.empty(0, np.int64), *(part.slots for part in parts)])
    is_wide = np.concatenate([np.empty(0, np.int64), *(part.is_wide for part in parts)])
    signature = np.concatenate([np.empty(0, np.int64), *(part.signature for part in parts)])
    tests_of, tests, values, text = [], [], [], []
    test = value = byte = 0
    for part in parts:
        last = part.tests_of[:, -1:]
        more = np.repeat(last, sides + 1 - part.tests_of.shape[1], axis=1)
        tests_of.append(np.concatenate([part.tests_of, more], axis=1) + test)
        moved = part.tests.copy()
        moved[:, [VALUES, VALUES_STOP]] += value
        for field in (LO_TEXT, HI_TEXT):
            moved[:, [field, field + 1]] += np.where(moved[:, field] == NONE, 0, byte)[:, None]
        tests.append(moved)
        shifted = part.values.copy()
        shifted[:, [VALUE_TEXT, VALUE_TEXT_STOP]] += byte
        values.append(shifted)
        text.append(part.text)
        test, value, byte = test + len(moved), value + len(shifted), byte + len(part.text)
    order = np.argsort(slots, kind="stable")
    return Newcomers(
        slots[order],
        is_wide[order],
        signature[order],
        np.concatenate([np.empty((0, sides + 1), np.int64), *tests_of])[order],
        np.concatenate([np.empty((0, TEST_FIELDS), np.int64), *tests]),
        np.concatenate([np.empty((0, VALUE_FIELDS), np.int64), *values]),
        np.concatenate([np.empty(0, np.uint8), *text]),
    )


def _canonical(text: str) -> bytes:
    """A text as JSON, as in the output."""
    return encode_basestring(text).encode()


def _ends(predicate: Predicate | None) -> TextEnds:
    if predicate is None:
        return None, None, True, True
    lo, hi = (None if end is None else _canonical(end) for end in (predicate.lo, predicate.hi))
    return lo, hi, predicate.lo_closed, predicate.hi_closed


def _bytes(data: bytes) -> U8:
    """The bytes as a writable array, as kernels take them."""
    return np.frombuffer(bytearray(data), np.uint8)
