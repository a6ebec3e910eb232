"""Places say who may hear a message: never no where somebody is, and never yes for long where nobody is left."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.families.select import places as places_module
from tidings.families.select.places import Places
from tidings.model.blob import pack, unpack
from tidings.model.message import MessageBatch
from tidings.model.points import PointBatch
from tidings.model.region import Regions

points = st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 3), st.integers(0, 3))
boxes = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))


def batch_of(given):
    count = len(given)
    return PointBatch(
        "form",
        np.zeros(count, np.int8),
        np.zeros(count, np.int64),
        np.arange(count),
        pa.array(["id"] * count, pa.string()),
        (pa.array([channel for channel, _, _ in given], pa.string()),),
        np.array([point[1:] for point in given], np.int64).reshape(count, 2),
        np.ones(count, np.bool_),
        pa.array([b""] * count, pa.binary()),
    )


def messages_of(regions):
    """Messages with the channel and boxes of each region."""
    ends = np.array([box for _, own in regions for box in own], np.int64).reshape(-1, 4)
    starts = np.cumsum([0, *(len(own) for _, own in regions)])
    tags = np.ones(len(ends), np.uint8)
    channel = pa.array([channel for channel, _ in regions], pa.string())
    payload = pa.RecordBatch.from_arrays([pa.nulls(len(regions))], ["x"])
    return MessageBatch(
        "form", np.arange(len(regions)), (channel,), Regions(ends[:, :2], ends[:, 2:], tags, starts), payload
    )


def hears(people, channel, own):
    return any(
        place[0] == channel and box[0] <= place[1] <= box[2] and box[1] <= place[2] <= box[3]
        for place in people
        for box in own
    )


@pytest.mark.parametrize("gone_min", [1, 3])
@given(st.data())
def test_whoever_is_there_is_found_and_those_who_left_not_for_long(gone_min, data):
    original, places_module.GONE_MIN = places_module.GONE_MIN, gone_min
    try:
        _come_and_go(data, gone_min)
    finally:
        places_module.GONE_MIN = original


def _come_and_go(data, gone_min):
    places, here, gone = Places(2), [], []
    for _ in range(data.draw(st.integers(1, 6))):
        new = data.draw(st.lists(points, max_size=5))
        places.add(batch_of(new))
        here += new
        leaving = data.draw(st.lists(st.sampled_from(here), unique_by=id, max_size=len(here))) if here else []
        for point in leaving:
            here.remove(point)
        places.remove(batch_of(leaving))
        gone += [point for point in leaving if point[0] is not None]
        if data.draw(st.booleans()):
            state = unpack(pack(places.dump([pa.string()])))
            places = Places(2)
            places.load(state)
        asked = data.draw(
            st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.lists(boxes, min_size=1)), max_size=4)
        )
        heard = places.hear(messages_of(asked)).tolist()
        for (channel, own), said in zip(asked, heard, strict=True):
            assert said or not hears(here, channel, own)
            assert not said or hears([*here, *gone], channel, own)
    everybody = [point for point in here if point[0] is not None]
    places.remove(batch_of(everybody))
    if gone_min == 1:
        assert not places.hear(messages_of([("a", [(0, 0, 3, 3)]), ("b", [(0, 0, 3, 3)])])).any()
