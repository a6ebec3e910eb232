"""Slots of a replica: labels sort like ids whatever comes and goes, and texts of ids survive their neighbours."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.kernels.lives import ID_START, ID_STOP, LABEL
from tidings.pipeline.replica import subscriptions as module
from tidings.pipeline.replica.subscriptions import IdOrder, Subscriptions

IDS = st.text('ab\u00fc\u20ac\U0001d11e"\\', min_size=1, max_size=4)


@settings(max_examples=35)
@given(st.lists(st.lists(IDS, max_size=6), max_size=12), st.sampled_from([1, 2, 512]))
def test_labels_sort_like_ids(rounds, block):
    module._BLOCK, kept = block, module._BLOCK
    try:
        order, known = IdOrder(), {}
        for ids in rounds:
            has_changed = order.add(ids)
            for id in ids:
                known.setdefault(id, order.of(id))
            if has_changed:
                known = {id: order.of(id) for id in known}
            assert known == {id: order.of(id) for id in known}
            assert sorted(known, key=known.__getitem__) == sorted(known)
    finally:
        module._BLOCK = kept


def test_labels_are_made_anew_when_there_is_no_room():
    order = IdOrder()
    order.add([f"s{i:03d}" for i in range(200)])
    changed = [order.add(["s100" + "0" * i]) for i in range(1, 60)]
    assert any(changed)
    assert not all(changed)
    texts = [*(f"s{i:03d}" for i in range(200)), *("s100" + "0" * i for i in range(1, 60))]
    assert sorted(texts, key=order.of) == sorted(texts)


def test_slots_are_reused_and_keep_their_ids():
    rng = random.Random(4)
    known, living = Subscriptions(), {}
    for step in range(300):
        ids = [f"{rng.random()}-{step}-{i}" * rng.randint(1, 40) for i in range(rng.randint(1, 5))]
        slots = known.take(len(ids))
        known.enter(slots, ids, *[[0] * len(ids)] * 3, [False] * len(ids))
        living |= dict(zip(slots, ids, strict=True))
        gone = rng.sample(sorted(living), min(len(living) - 1, rng.randint(0, 5)))
        known.leave(gone)
        for slot in gone:
            del living[slot]
        for slot, id in living.items():
            assert (
                known.id_text[known.lives[slot, ID_START] : known.lives[slot, ID_STOP]].tobytes() == f'"{id}"'.encode()
            )
        assert sorted(living.values()) == [
            living[slot] for slot in sorted(living, key=known.lives[:, LABEL].__getitem__)
        ]
    assert len(known) == len(living)
    assert len(known.ids) < 200
