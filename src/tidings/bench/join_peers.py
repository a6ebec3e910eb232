"""The obvious ways to do the join bench without Tidings, and which of them can be had here.

Each peer holds the ranges and the rows of S, and is given rows of R that come or go: it must find everyone whose answer each
changes. That is less than what we do, since they do not keep R and do not know who has got which row of S before.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from tidings.bench import Say
from tidings.model.codes import Int64Array
from tidings.workloads.drift_walk import FloatArray, IntArray
from tidings.workloads.join_scene import BinaryScene


class Peer(ABC):
    """One way, loaded with the ranges and the partners of one scene."""

    @abstractmethod
    def find(self, b: IntArray, a: FloatArray) -> None:
        """Finds whom rows of R affect: what is timed."""

    @abstractmethod
    def found(self) -> list[Int64Array]:
        """Whom each of the rows given last affects, in ascending order."""

    def close(self) -> None:  # noqa: B027
        """Frees what the peer holds; most hold nothing."""


class NumpyScan(Peer):
    """Everyone's ranges as columns: who selects the row, and of these, whose other range has one of its partners."""

    def __init__(self, scene: BinaryScene) -> None:
        self._a_lo, self._a_hi, self._c_lo, self._c_hi = (np.ascontiguousarray(column) for column in scene.ranges.T)
        order = np.lexsort((scene.s_c, scene.s_b))
        values = np.arange(max(scene.s_b.max(initial=0), scene.r_b.max(initial=0)) + 2)
        self._c = scene.s_c[order]
        self._starts = np.searchsorted(scene.s_b[order], values)
        self._found: list[Int64Array] = []

    def find(self, b: IntArray, a: FloatArray) -> None:
        self._found = [self._one(value, at) for value, at in zip(b.tolist(), a.tolist(), strict=True)]

    def found(self) -> list[Int64Array]:
        return self._found

    def _one(self, b: int, a: float) -> Int64Array:
        partners = self._c[self._starts[b] : self._starts[b + 1]]
        if len(partners) == 0:
            return np.empty(0, np.int64)
        select = np.flatnonzero((self._a_lo <= a) & (a <= self._a_hi))
        first = np.searchsorted(partners, self._c_lo[select])
        last = np.searchsorted(partners, self._c_hi[select], "right")
        return select[first < last]


@dataclass(frozen=True)
class Way:
    key: str
    label: str
    at_a_time: int
    """Changes."""
    size_max: int
    """With more subscriptions it takes minutes."""
    load: Callable[[BinaryScene], Peer]


class Peers:
    """The peers that are installed here."""

    def __init__(self) -> None:
        self.ways: list[Way] = []
        self.missing: list[str] = []

    @staticmethod
    @contextmanager
    def start(is_wanted: bool, say: Say) -> Iterator[Peers]:
        """Starts what must run for all sizes (Spark), and stops it at the end."""
        peers = Peers()
        with ExitStack() as stack:
            if is_wanted:
                peers._start(stack, say)
            yield peers

    def _start(self, stack: ExitStack, say: Say) -> None:
        from tidings.bench.join_peers_sql import DuckDbExists, SparkExists

        self.ways.append(
            Way("numpy", "peer: numpy, all ranges against a row and its partners", 10, 1_000_000, NumpyScan)
        )
        if find_spec("duckdb"):
            self.ways.append(Way("duckdb", "peer: DuckDB, EXISTS for one row", 1, 1_000_000, DuckDbExists))
            label = "peer: DuckDB, EXISTS for 1,000 rows at once"
            self.ways.append(Way("duckdb.batch", label, 1_000, 100_000, DuckDbExists))
        else:
            self.missing.append("duckdb")
        if find_spec("pyspark"):
            from tidings.spark.session import spark_session

            say("starting Spark")
            settings = {"spark.sql.adaptive.enabled": "true"}
            session = stack.enter_context(
                spark_session("tidings bench", f"local[{os.cpu_count() or 1}]", config=settings)
            )
            label = "peer: Spark SQL, EXISTS for 1,000 rows at once"
            self.ways.append(Way("spark", label, 1_000, 100_000, lambda scene: SparkExists(scene, session)))
        else:
            self.missing.append("pyspark")
