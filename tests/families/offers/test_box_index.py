"""BoxIndex finds exactly the pairs that the definition of a match allows, however entries come, go and are packed."""

import random

import numpy as np
import pytest
from box_arrays import batch_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.families.offers.constraint import Box
from tidings.families.offers.kernels.box_index import BoxIndex, box_index
from tidings.families.offers.kernels.packed import AXES_HASH, KIND_HASH
from tidings.families.offers.matching import meet
from tidings.model.codes import CODE_MAX, CODE_MIN

IS_TEXT = (False, False, True, True, False)
TEXTS = [b"", b"a", b"ab", b"abcdefgh", b"abcdefghi", b"abcdefghij", b"b", b"\xc3\xa9"]


def _code(text, missing):
    return missing if text is None else int.from_bytes(text[:8].ljust(8, b"\0"), "big") - 2**63


def random_box(rng, axes_max=3, values=6):
    axes = tuple(sorted(rng.sample(range(len(IS_TEXT)), rng.randint(1, axes_max))))
    lo, hi, texts = [], [], []
    for axis in axes:
        kind = rng.choice(["equal", "equal", "range", "below", "above", "all"])
        if IS_TEXT[axis]:
            a, b = sorted(rng.choices(TEXTS, k=2))
            ends = {
                "equal": (a, a + b"\0"),
                "range": (a, b + b"\0"),
                "below": (None, a + b"\0"),
                "above": (a, None),
                "all": (None, None),
            }[kind]
            lo.append(_code(ends[0], CODE_MIN))
            hi.append(_code(ends[1], CODE_MAX))
            texts.append(None if ends == (None, None) else ends)
        else:
            a, b = sorted(rng.choices(range(values), k=2))
            ends = {
                "equal": (a, a),
                "range": (a, b),
                "below": (CODE_MIN, b),
                "above": (a, CODE_MAX),
                "all": (CODE_MIN, CODE_MAX),
            }[kind]
            lo.append(ends[0])
            hi.append(ends[1])
            texts.append(None)
    return Box(axes, tuple(lo), tuple(hi), tuple(texts))


def add(boxes_of, held):
    """Adds all at once: boxes of many groups."""
    held.add(np.array([owner for owner, _ in boxes_of], np.int64), batch_of([[box] for _, box in boxes_of]))


def found(held, *boxes):
    """Owners that match a constraint of these boxes."""
    return set(held.match(batch_of([boxes]))[:, 1].tolist())


def expected(living, box, is_classic):
    return {owner for owner, other in living if (meet(other, box) if is_classic else meet(box, other))}


@pytest.mark.parametrize("is_classic", [False, True])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_pairs_are_those_of_the_definition(is_classic, seed):
    rng = random.Random(seed)
    held, living = BoxIndex(IS_TEXT, is_classic=is_classic), []
    held.run_min, held.compared_max = rng.choice([(64, 32), (0, 0), (8, 2)])
    for step in range(12):
        fresh = [(rng.randrange(40) + 40 * step, random_box(rng)) for _ in range(rng.choice([1, 3, 40]))]
        add(fresh, held)
        living += fresh
        if rng.random() < 0.3:
            gone = {owner for owner, _ in living if rng.random() < 0.4}
            held.remove(np.array(sorted(gone), np.int64))
            living = [entry for entry in living if entry[0] not in gone]
        for _ in range(4):
            box = random_box(rng)
            assert found(held, box) == expected(living, box, is_classic)
    assert len(held) == len(living)


def test_large_buckets_are_searched_down_their_trees():
    rng = random.Random(5)
    held, living = BoxIndex(IS_TEXT), []
    for owner in range(6000):
        a, b = sorted((rng.randrange(1000), rng.randrange(1000)))
        c = rng.randrange(1000)
        living.append((owner, Box((0, 1), (a, c), (b, rng.choice([c, c + 5, CODE_MAX])), (None, None))))
    add(living, held)
    asked = []
    for _ in range(300):
        a = rng.randrange(1000)
        c = rng.randrange(1000)
        asked.append(Box((0, 1), (a, c), (a + rng.randrange(20), c + rng.randrange(1, 30)), (None, None)))
    asked.append(Box((0, 1), (CODE_MIN, CODE_MIN), (CODE_MAX, CODE_MAX), (None, None)))
    pairs = held.match(batch_of([[box] for box in asked]))
    for number, box in enumerate(asked):
        assert set(pairs[pairs[:, 0] == number, 1].tolist()) == expected(living, box, False)


def test_dead_entries_are_packed_away():
    rng = random.Random(7)
    held, living = BoxIndex(IS_TEXT), []
    for round in range(6):
        fresh = [(1000 * round + i, random_box(rng)) for i in range(1000)]
        add(fresh, held)
        living += fresh
        living, gone = living[-700:], living[:-700]
        held.remove(np.array([owner for owner, _ in gone], np.int64))
        box = random_box(rng)
        assert found(held, box) == expected(living, box, False)
    assert len(held) == len(living)
    assert held.capacity < 3 * len(living) + 3000
    held.remove(np.array([owner for owner, _ in living], np.int64))
    assert len(held) == 0


def test_constraints_of_several_boxes():
    rng = random.Random(11)
    held, living = BoxIndex(IS_TEXT), []
    add(fresh := [(owner, random_box(rng)) for owner in range(300)], held)
    living += fresh
    for _ in range(100):
        boxes = [random_box(rng) for _ in range(3)]
        assert found(held, *boxes) == set().union(*(expected(living, box, False) for box in boxes))


def test_equal_hashes_do_not_mix_up_values_or_kinds():
    """Equality codes of texts, and kinds of boxes, are found by hashes: what has the same one by chance is told apart."""
    held = BoxIndex(IS_TEXT)
    held.run_min = held.compared_max = 0
    boxes = [Box((2,), (0,), (0,), ((text, text + b"\0"),)) for text in (b"x", b"y", b"z")]
    others = [Box((0, 1), (1, 1), (1, 2), (None, None)), Box((1,), (1,), (1,), (None,))]
    batch = batch_of([[box] for box in (*boxes, *others)])
    for field in (AXES_HASH, KIND_HASH):
        batch.boxes[:, field] = 7
    held.add(np.arange(5), batch)
    pairs = held.match(batch)[:, :2].tolist()
    assert sorted(map(tuple, pairs)) == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3), (4, 4)]


def test_what_is_kept_for_kinds_of_queries_is_bounded(monkeypatch):
    rng = random.Random(3)
    monkeypatch.setattr(box_index, "_VIEWS_MAX", 8)
    held, living = BoxIndex(IS_TEXT), []
    held.run_min = held.compared_max = 0
    add(fresh := [(owner, random_box(rng)) for owner in range(500)], held)
    living += fresh
    sizes = []
    for _ in range(200):
        box = random_box(rng)
        assert found(held, box) == expected(living, box, False)
        sizes.append(held.nbytes)
    assert len(held._views) <= 8
    assert max(sizes[100:]) <= 2 * max(sizes[:100])
    held.remove(np.arange(500))
    assert held.nbytes < min(sizes)
