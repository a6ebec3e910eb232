"""The stabbing index against plain comparison with every box, whatever shapes come and go."""

from __future__ import annotations

import json.encoder
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.kernels.stabbing import (
    CODE,
    EQUAL,
    KIND_FIELDS,
    KIND_TAG,
    NEW,
    OLD,
    SIDES,
    VALID,
    VECTOR_FIELDS,
    BoxShape,
    StabbingIndex,
    Texts,
    set_high,
    stab,
)

CODE_MIN, CODE_MAX = np.iinfo(np.int64).min, np.iinfo(np.int64).max
NUMBERS = st.one_of(st.integers(-4, 4), st.sampled_from([CODE_MIN, CODE_MIN + 1, CODE_MAX - 1, CODE_MAX]))
# Ties in the first eight bytes, prefixes, escapes, and characters beyond ASCII.
TEXTS = st.sampled_from(
    ["", "a", "a\0", "abcdefgh", "abcdefgha", "abcdefghb", 'abcdefgh"', "abcdefgh\n", "abcdefghé", "b"]
)


def encode(text: str) -> bytes:
    return json.encoder.encode_basestring(text).encode()


def code_of(text: str) -> int:
    return int.from_bytes(text.encode()[:8].ljust(8, b"\0"), "big") - 2**63


def forged(text: str) -> int:
    """An equality code that many texts share."""
    return len(text) % 2


@dataclass(frozen=True)
class Box:
    owner: int
    equal: tuple[int | str, ...]
    ends: tuple[tuple[Any, Any, bool, bool], ...]
    """lo, hi and whether they belong to the range; None where a text range has no end."""
    watch: int


@dataclass(frozen=True)
class Space:
    """The last `texts` of the axes are of text, the others of int64."""

    axes: int
    texts: int

    def is_text(self, axis: int) -> bool:
        return axis >= self.axes - self.texts

    def values(self, axis: int) -> st.SearchStrategy[Any]:
        return TEXTS if self.is_text(axis) else NUMBERS

    def shapes(self) -> st.SearchStrategy[BoxShape]:
        def split(drawn: list[tuple[int, bool]]) -> BoxShape:
            ranges = tuple(axis for axis, is_equal in drawn if not is_equal)
            texts = tuple(axis for axis in ranges if self.is_text(axis))
            return BoxShape(tuple(axis for axis, is_equal in drawn if is_equal), ranges, texts)

        pairs = st.tuples(st.integers(0, self.axes - 1), st.booleans())
        return st.lists(pairs, max_size=4, unique_by=lambda pair: pair[0]).map(split)

    def vectors(self) -> st.SearchStrategy[tuple[Any, ...]]:
        return st.tuples(*(st.one_of(st.none(), *[self.values(axis)] * 4) for axis in range(self.axes)))


def holds(shape: BoxShape, box: Box, vector: tuple[Any, ...] | None) -> bool:
    if vector is None:
        return False
    for axis, value in zip(shape.equal_axes, box.equal, strict=True):
        if vector[axis] is None or vector[axis] != value:
            return False
    for axis, (lo, hi, lo_closed, hi_closed) in zip(shape.range_axes, box.ends, strict=True):
        value = vector[axis]
        if value is None or (lo is not None and (value < lo or (value == lo and not lo_closed))):
            return False
        if hi is not None and (value > hi or (value == hi and not hi_closed)):
            return False
    return True


class Model:
    """An index beside the boxes it should have."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.index = StabbingIndex(space.axes)
        self.held: dict[int, tuple[BoxShape, Box]] = {}

    def add(self, shape: BoxShape, boxes: list[Box]) -> None:
        def is_text(axis: int) -> bool:
            return self.space.is_text(axis)

        def end_codes(box: Box) -> list[int]:
            codes = []
            for axis, (lo, hi, _, _) in zip(shape.range_axes, box.ends, strict=True):
                if is_text(axis):
                    lo, hi = CODE_MIN if lo is None else code_of(lo), CODE_MAX if hi is None else code_of(hi)
                codes += [lo, hi]
            return codes

        def text_ends(box: Box) -> list[Any]:
            pairs = zip(shape.range_axes, box.ends, strict=True)
            return [
                (None if lo is None else encode(lo), None if hi is None else encode(hi), lo_closed, hi_closed)
                for axis, (lo, hi, lo_closed, hi_closed) in pairs
                if is_text(axis)
            ]

        def constants(j: int, axis: int) -> Texts | None:
            if not is_text(axis):
                return None
            distinct = sorted({box.equal[j] for box in boxes})
            number = [distinct.index(box.equal[j]) for box in boxes]
            return Texts([encode(text) for text in distinct], np.array(number, np.int64))

        numbers = self.index.add(
            shape,
            np.array([box.owner for box in boxes], np.int64),
            np.array([self.index.kind(shape, box.watch, box.owner & 1) for box in boxes], np.int64),
            np.array([[v if isinstance(v, int) else forged(v) for v in box.equal] for box in boxes], np.int64),
            [constants(j, axis) for j, axis in enumerate(shape.equal_axes)],
            np.array([end_codes(box) for box in boxes], np.int64),
            [text_ends(box) for box in boxes],
        )
        assert len(set(numbers.tolist()) | self.held.keys()) == len(boxes) + len(self.held)
        self.held |= {number: (shape, box) for number, box in zip(numbers.tolist(), boxes, strict=True)}

    def remove(self, numbers: list[int]) -> None:
        self.index.remove(np.array(numbers, np.int64))
        for number in numbers:
            del self.held[number]

    def set_high(self, number: int, place: int, value: int) -> None:
        set_high(self.index.boxes, number, place, value)
        shape, box = self.held[number]
        lo, _, *closed = box.ends[place]
        ends = (*box.ends[:place], (lo, value, *closed), *box.ends[place + 1 :])
        self.held[number] = shape, replace(box, ends=ends)

    def expected(self, old: tuple[Any, ...] | None, new: tuple[Any, ...] | None) -> list[tuple[int, int, int]]:
        changed = self.changed(old, new)
        found = []
        for number, (shape, box) in self.held.items():
            bits = OLD * holds(shape, box, old) | NEW * holds(shape, box, new)
            axes = (*shape.equal_axes, *shape.range_axes)
            matters = box.watch | sum({1 << (axis & 63) for axis in axes})
            if bits and not (bits == OLD | NEW and not matters & changed):
                found.append((box.owner, bits, number))
        return sorted(found)

    def changed(self, old: tuple[Any, ...] | None, new: tuple[Any, ...] | None) -> int:
        if old is None or new is None:
            return 0
        return sum({1 << (axis & 63) for axis in range(self.space.axes) if old[axis] != new[axis]})

    def stab(
        self, old: tuple[Any, ...] | None, new: tuple[Any, ...] | None, capacity: int
    ) -> list[tuple[int, int, int]]:
        x = np.zeros((2, self.space.axes, VECTOR_FIELDS), np.int64)
        text = bytearray(b"?")
        for side, vector in enumerate((old, new)):
            for axis, value in enumerate(vector or ()):
                if value is None:
                    # What stands beside a null means nothing.
                    x[side, axis] = 0, 1, 1, 0, 0
                elif isinstance(value, str):
                    encoded = encode(value)
                    start = len(text)
                    text += encoded
                    x[side, axis] = 1, code_of(value), forged(value), start, len(text)
                else:
                    x[side, axis, [VALID, CODE, EQUAL]] = 1, value, value
        has = np.array([old is not None, new is not None], np.int64)
        changed = np.uint64(self.changed(old, new)).astype(np.int64)
        hits = np.empty((capacity, 3), np.int64)
        count = stab(self.index.boxes, np.frombuffer(text, np.uint8), x, has, changed, hits)
        if count < 0:
            return self.stab(old, new, 2 * capacity + 1)
        kinds = self.index.boxes.kinds[hits[:count, 1] // (SIDES + 1) * KIND_FIELDS + KIND_TAG]
        assert (kinds == hits[:count, 0] & 1).all()
        hits[:count, 1] &= SIDES
        return sorted(map(tuple, hits[:count].tolist()))

    def check(self, old: tuple[Any, ...] | None, new: tuple[Any, ...] | None) -> None:
        found = self.expected(old, new)
        assert self.stab(old, new, len(found)) == found
        assert len(self.index) == len(self.held)


@st.composite
def boxes_of(draw: st.DrawFn, space: Space, shape: BoxShape) -> Box:
    ends = []
    for axis in shape.range_axes:
        if axis in shape.text_axes:
            maybe = st.one_of(st.none(), TEXTS)
            ends.append((draw(maybe), draw(maybe), draw(st.booleans()), draw(st.booleans())))
        else:
            ends.append((draw(NUMBERS), draw(NUMBERS), True, True))
    equal = tuple(draw(space.values(axis)) for axis in shape.equal_axes)
    watch = draw(st.sampled_from([0, 1, 2, 1 << 63, 6]))
    return Box(draw(st.integers(0, 5)), equal, tuple(ends), watch)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_hits_are_those_of_comparing_with_every_box(data: st.DataObject) -> None:
    space = data.draw(st.sampled_from([Space(4, 0), Space(5, 3), Space(3, 3), Space(70, 2)]))
    if space.axes > 64:
        low = st.lists(space.values(0), min_size=4, max_size=4)
        fill = tuple(data.draw(low))
        vectors = space.vectors() if data.draw(st.booleans()) else st.just((*(fill * 18)[:68], "a", "b"))
    else:
        vectors = space.vectors()
    model = Model(space)
    for _ in range(data.draw(st.integers(1, 6))):
        shape = data.draw(space.shapes())
        boxes = data.draw(st.lists(boxes_of(space, shape), max_size=6))
        # Copies make cells large enough for trees.
        model.add(shape, boxes * data.draw(st.sampled_from([1, 1, 1, 30])))
        if model.held and data.draw(st.booleans()):
            share = data.draw(st.sampled_from([0.2, 0.9, 1.0]))
            # One draw for all boxes: a byte each.
            count = len(model.held)
            drawn = data.draw(st.binary(min_size=count, max_size=count))
            model.remove([number for number, byte in zip(model.held, drawn, strict=True) if byte < 256 * share])
        for number in list(model.held)[:3]:
            shape, _ = model.held[number]
            numeric = [i for i, axis in enumerate(shape.range_axes) if axis not in shape.text_axes]
            if numeric and data.draw(st.booleans()):
                model.set_high(number, data.draw(st.sampled_from(numeric)), data.draw(NUMBERS))
        old, new = data.draw(vectors), data.draw(vectors)
        near = list(old)
        near[data.draw(st.integers(0, space.axes - 1))] = data.draw(vectors)[0] if not space.is_text(0) else None
        near = [v if v is None or isinstance(v, str) == space.is_text(i) else old[i] for i, v in enumerate(near)]
        for pair in ((old, None), (None, new), (old, new), (old, tuple(near)), (old, old)):
            model.check(*pair)
            # Too little room for hits is told, not passed over.
            assert model.stab(*pair, 0) == model.expected(*pair)


def random_boxes(rng: np.random.Generator, shape: BoxShape, n: int, width: int) -> list[Box]:
    def ends() -> tuple[int, int, bool, bool]:
        lo = int(rng.integers(0, 10_000))
        kind = rng.integers(0, 6)
        if kind == 0:
            return lo, CODE_MAX, True, True
        return (CODE_MIN, lo, True, True) if kind == 1 else (lo, lo + int(rng.integers(-1, width)), True, True)

    return [
        Box(
            i,
            tuple(int(v) for v in rng.integers(0, 3, len(shape.equal_axes))),
            tuple(ends() for _ in shape.range_axes),
            0,
        )
        for i in range(n)
    ]


@pytest.mark.parametrize("dims", [0, 1, 2, 3])
@pytest.mark.parametrize("step", [1, 400])
def test_large_cells_through_growth_moves_and_decline(dims: int, step: int) -> None:
    rng = np.random.default_rng(dims)
    shape = BoxShape((3,), tuple(range(dims)), ())
    model = Model(Space(4, 0))

    def vector() -> tuple[int, ...]:
        return (*rng.integers(0, 10_000, 3).tolist(), int(rng.integers(0, 3)))

    def check() -> None:
        for _ in range(6):
            old, new = vector(), vector()
            model.check(old, new)
            model.check(old, (*new[:3], old[3]))
            model.check(old, (old[0], new[1], *old[2:]))

    for round_number, start in enumerate(range(0, 1200, step)):
        model.add(shape, random_boxes(rng, shape, step, 500))
        if start % 400 == 0:
            check()
        if dims and round_number % 3 == 0:
            for number in rng.choice(list(model.held), 20).tolist():
                for value in rng.integers(0, 12_000, 2).tolist():
                    model.set_high(number, int(rng.integers(0, dims)), value)
    check()
    while model.held:
        numbers = rng.permutation(list(model.held))[: max(step, 300)].tolist()
        for i in range(0, len(numbers), step):
            model.remove(numbers[i : i + step])
        check()
    model.add(shape, random_boxes(rng, shape, 300, 500))
    check()


def test_memory_is_used_again() -> None:
    rng = np.random.default_rng(0)
    shape = BoxShape((0,), (1, 2), ())
    index = StabbingIndex(3)

    def add() -> np.ndarray[Any, Any]:
        n = 5000
        ends = rng.integers(0, 1000, (n, 4))
        return index.add(
            shape, np.arange(n), np.full(n, index.kind(shape, 0)), rng.integers(0, 400, (n, 1)), [None], ends
        )

    numbers = add()
    before = index.nbytes
    for _ in range(20):
        index.remove(numbers)
        numbers = add()
    assert index.nbytes <= 2 * before
    assert len(index) == 5000


def test_shapes_that_are_gone_are_forgotten() -> None:
    """Boxes of ever new shapes come and go beside some that stay: records do not add up, and hits stay right."""
    rng = np.random.default_rng(1)
    space = Space(12, 0)
    model = Model(space)

    def fresh(count: int) -> list[int]:
        known = set(model.held)
        axes = rng.permutation(space.axes)[: int(rng.integers(1, 7))].tolist()
        cut = int(rng.integers(0, len(axes) + 1))
        shape = BoxShape(tuple(axes[:cut]), tuple(axes[cut:]), ())
        ends = tuple((int(rng.integers(0, 3)), int(rng.integers(2, 6)), True, True) for _ in axes[cut:])
        watch = int(rng.integers(0, 2**12))
        boxes = [Box(i, tuple(rng.integers(0, 3, cut).tolist()), ends, watch) for i in range(count)]
        model.add(shape, boxes)
        return [number for number in model.held if number not in known]

    for _ in range(20):
        fresh(2)
    records, sizes = [], []
    for _ in range(1_000):
        model.remove(fresh(3))
        records.append(model.index.records)
        sizes.append(model.index.nbytes)
        vector = tuple(rng.integers(0, 5, space.axes).tolist())
        model.check(tuple(rng.integers(0, 5, space.axes).tolist()), vector)
    assert max(records) < 300
    assert max(sizes[500:]) <= 1.2 * max(sizes[:500])
    model.remove(list(model.held))
    assert model.index.records == 0
    assert model.index.nbytes == StabbingIndex(space.axes).nbytes
