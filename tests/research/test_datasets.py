"""Datasets of all benches: points are those of the door, batches those of the file contract."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from research.bench.dataset import Dataset, json_lines
from research.bench.drift.cases import CASES
from research.bench.drift.data import DriftData
from research.bench.join.data import JoinData
from research.bench.select.data import SelectData
from research.bench.topk.data import TopkData
from research.stages.parsing import parse
from research.workloads.join.binary import BinaryCase
from tidings.pipeline.door import Door
from tidings.pipeline.ingest import Ingest

MAKE: dict[str, Callable[[], Dataset]] = {
    "select": lambda: SelectData.make(60, 100, 1, rows=50),
    "drift": lambda: DriftData(CASES["items"].make(60, 100, 1)),
    "topk": lambda: TopkData.make(60, 100, 1, rows=50),
    "join": lambda: JoinData.make(60, 100, 1, BinaryCase(r_size=50, s_size=30, join_values=5)),
}


@pytest.fixture(scope="module", params=MAKE)
def data(request: pytest.FixtureRequest) -> Dataset:
    return MAKE[request.param]()


def test_points_are_what_the_door_would_give(data: Dataset) -> None:
    door = Door(data.catalog)
    for i in range(data.size):
        door.create(f"s{i}", data.sql(i), 0)
    (expected,) = door.take()
    made = data.points()
    assert made.form == expected.form and made.id.equals(expected.id) and made.details.equals(expected.details)
    assert all(a.equals(b) for a, b in zip(made.channel, expected.channel, strict=True))
    for name in ("event", "after", "order", "coords", "home"):
        np.testing.assert_array_equal(getattr(made, name), getattr(expected, name))


def test_lines_are_the_same_changes_and_are_numbered_on(data: Dataset) -> None:
    seq = 0
    for batch in (*data.inserts(), *data.updates()):
        parsed = parse(Ingest(data.catalog), data.catalog, json_lines(batch))
        assert parsed.refused == []
        (changes,) = parsed.changes
        np.testing.assert_array_equal(changes.seq, batch.seq)
        is_whole = (
            batch.op != batch.op.max() if batch.table == "r" and len(set(batch.op.tolist())) > 1 else batch.op >= 0
        )
        assert changes.rows.filter(is_whole).equals(batch.rows.filter(is_whole))
        assert batch.seq[0] == seq + 1
        seq = int(batch.seq[-1])
