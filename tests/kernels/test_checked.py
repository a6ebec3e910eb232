"""Kernels in checked mode: an index outside of an array and a freed version of a row are errors, and no family makes them.

Each test calls a function of this module in a process of its own: the environment is read when kernels are imported.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_row_store import feed

from tidings.kernels.jit import kernel
from tidings.kernels.rows.read import record_of, rows_at
from tidings.pipeline.door import Door
from tidings.pipeline.replica.replica import Replica
from tidings.pipeline.replica.row_store import RowStore
from tidings.sql import parse_catalog
from tidings.testing import FAMILY_WORKLOADS, with_transactions
from tidings.testing.workload import Workload, chunks


@kernel
def value_at(values, i):
    return values[i]


@kernel
def record_at(handles, version):
    return record_of(rows_at(handles), version)


def read_outside() -> None:
    print(value_at(np.arange(3), 2))
    print(value_at(np.arange(3), 3))


def read_freed() -> None:
    store = RowStore(parse_catalog("CREATE TABLE t (id BIGINT PRIMARY KEY, n INT);"))
    feed(store, [b'{"seq": 1, "table": "t", "op": "insert", "row": {"id": 1, "n": 1}}'])
    (version,) = store.current(0)
    print(record_at(store.handles, version))
    feed(store, [b'{"seq": 2, "table": "t", "op": "update", "row": {"id": 1, "n": 2}}'])
    print(record_at(store.handles, version))


def run_family(family: str) -> None:
    """A replica that is dumped and loaded before every micro-batch tells what one tells that is not."""

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.one_of(FAMILY_WORKLOADS[family], with_transactions(FAMILY_WORKLOADS[family])), st.sampled_from([1, 3, 1_000])
    )
    def run(workload: Workload, size: int) -> None:
        door = Door(workload.catalog)
        door.read(workload.subscription_lines())
        steady, restarted, position = Replica(workload.catalog), Replica(workload.catalog, keeps_points=True), 0
        points = door.take()
        for batch in chunks(workload.change_lines(), [size]):
            told = steady.apply(batch, position, points)
            assert restarted.apply(batch, position, points).notifications.lines() == told.notifications.lines()
            state, position, points = restarted.dump(), position + len(batch), []
            restarted = Replica(workload.catalog, keeps_points=True)
            restarted.load(state)

    run()


def called(function: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TIDINGS_CHECKED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    program = f"import sys, test_checked; test_checked.{function}(*sys.argv[1:])"
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_an_index_outside_of_an_array_is_an_error() -> None:
    done = called("read_outside")
    assert done.stdout == "2\n", done.stderr
    assert done.stderr.splitlines()[-1].startswith("IndexError: index is out of bounds")


@pytest.mark.extended
def test_a_freed_version_is_an_error() -> None:
    done = called("read_freed")
    assert done.stdout == "0\n", done.stderr
    assert done.stderr.splitlines()[-1] == "IndexError: a version of a row is used that has been freed"


@pytest.mark.extended
@pytest.mark.parametrize("family", FAMILY_WORKLOADS)
def test_families_make_no_such_errors(family: str) -> None:
    done = called("run_family", family)
    assert done.returncode == 0, done.stderr
