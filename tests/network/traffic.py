"""Traffic for the network: points and messages with ties, empty boxes, open ends, and regions that nobody is in."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tidings.simulator.files import Traffic

OPEN = (-(2**63), 2**63 - 1)


@st.composite
def traffics(draw: st.DrawFn, *, dims: st.SearchStrategy[int] | None = None, most: int = 12) -> Traffic:
    count = draw(dims if dims is not None else st.integers(1, 3))
    value = st.one_of(st.integers(-6, 6), st.sampled_from(OPEN))
    coords = st.lists(value, min_size=count, max_size=count)
    points = draw(st.lists(coords, max_size=40))
    box = st.tuples(coords, coords)
    boxes = draw(st.lists(st.lists(box, max_size=4), max_size=most))
    payload = [draw(st.integers(0, 3)) for _ in boxes]
    return traffic(points, boxes, payload, dims=count)


def traffic(points, boxes, payload, *, dims, gap=25.0, size=500):
    ends = [tuple(np.array([box[i] for box in own], np.int64).reshape(-1, dims) for i in (0, 1)) for own in boxes]
    coords = np.array(points, np.int64).reshape(-1, dims)
    at = [gap * number for number in range(len(boxes))]
    return Traffic(range(len(coords)), coords, range(len(boxes)), at, ends, payload, [size] * len(boxes))


def random_traffic(
    seed: int, *, points: int = 1_000, messages: int = 150, dims: int = 2, payloads: int = 30
) -> Traffic:
    """A few payloads that come again and again, at brokers that have had them and at others."""
    rng = np.random.default_rng(seed)
    coords = rng.integers(0, 1_000, (points, dims))
    boxes = []
    for _ in range(messages):
        lo = rng.integers(0, 1_000, (int(rng.integers(1, 4)), dims))
        boxes.append(list(zip(lo, lo + rng.integers(-5, 200, lo.shape), strict=True)))
    return traffic(coords, boxes, rng.integers(0, payloads, messages).tolist(), dims=dims, gap=30.0)
