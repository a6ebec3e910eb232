"""Subscription events keep their order: by moment, then as they came; runs never mix creations and drops."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.points import Event, PointBatch

events = st.lists(st.tuples(st.sampled_from([Event.CREATE, Event.DROP]), st.integers(0, 3)), max_size=8)


def batch_of(rows, first_order=0):
    count = len(rows)
    return PointBatch(
        "f",
        np.array([event for event, _ in rows], np.int8),
        np.array([after for _, after in rows], np.int64),
        np.arange(first_order, first_order + count),
        pa.array([f"s{i}" for i in range(first_order, first_order + count)], pa.string()),
        (),
        np.zeros((count, 2), np.int64),
        np.ones(count, np.bool_),
        pa.array([b""] * count, pa.binary()),
    )


@given(events, events)
def test_concat_sorts_by_moment_then_arrival(first, second):
    joined = PointBatch.concat([batch_of(first), batch_of(second, len(first))])
    expected = sorted(range(len(first) + len(second)), key=lambda i: ([*first, *second][i][1], i))
    assert joined.order.tolist() == expected
    assert joined.id.to_pylist() == [f"s{i}" for i in expected]


@given(events)
def test_runs_are_maximal_and_keep_the_order(rows):
    runs = list(batch_of(rows).runs())
    assert [order for _, run in runs for order in run.order.tolist()] == list(range(len(rows)))
    assert all((run.event == event).all() and len(run) for event, run in runs)
    assert all(a is not b for (a, _), (b, _) in pairwise(runs))
