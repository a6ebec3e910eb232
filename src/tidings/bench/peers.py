"""The obvious ways to do a bench without Tidings: which of them can be had here, and how many changes each makes a second."""

from __future__ import annotations

import os
import sys
from abc import ABC
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from tidings.bench import Say
from tidings.bench.postgres import Psql, find_server, server
from tidings.bench.report import short
from tidings.bench.timing import spent

BUDGET_S = 8.0
"""For one way at one size."""


class AnyPeer(ABC):  # noqa: B024
    """One way, loaded with the data of one size."""

    def close(self) -> None:  # noqa: B027
        """Frees what the peer holds; most hold nothing."""


Given = TypeVar("Given")
"""What the peers of a bench are loaded with."""
Peer = TypeVar("Peer", bound=AnyPeer)
Part = TypeVar("Part")


@dataclass(frozen=True)
class Way(Generic[Given, Peer]):
    key: str
    label: str
    at_a_time: int
    """Changes."""
    load: Callable[[Given], Peer]
    size_max: int = sys.maxsize
    """With more subscriptions it takes minutes."""


class Peers(Generic[Given, Peer]):
    """The ways that can be had here. What must run for all sizes is started when asked for; `stack` stops it."""

    def __init__(self, stack: ExitStack, say: Say) -> None:
        self.ways: list[Way[Given, Peer]] = []
        self.missing: list[str] = []
        self._stack = stack
        self._say = say

    def has(self, package: str) -> bool:
        """Whether the package is installed; it is missing if not."""
        is_there = find_spec(package) is not None
        if not is_there:
            self.missing.append(package)
        return is_there

    def spark(self) -> Any:
        """A session, or None."""
        if not self.has("pyspark"):
            return None
        from tidings.spark.session import spark_session

        self._say("starting Spark")
        settings = {"spark.sql.adaptive.enabled": "true"}
        cores = f"local[{os.cpu_count() or 1}]"
        return self._stack.enter_context(spark_session("tidings bench", cores, config=settings))

    def postgres(self) -> Psql | None:
        """A session with a server of our own."""
        programs = find_server()
        if programs is None:
            self.missing.append("PostgreSQL")
            return None
        self._say("starting PostgreSQL")
        return self._stack.enter_context(server(programs))

    def for_size(self, size: int) -> list[Way[Given, Peer]]:
        return [way for way in self.ways if size <= way.size_max]

    def rates(
        self, size: int, given: Given, rate: Callable[[Peer, Way[Given, Peer]], float]
    ) -> Iterator[tuple[Way[Given, Peer], float]]:
        """Changes a second of every way for the size, one after the other, so that only one of them is loaded."""
        for way in self.for_size(size):
            self._say(f"{short(size)}: {way.label}")
            with closing(way.load(given)) as peer:
                found = rate(peer, way)
            yield way, found


def rate_within(run: Callable[[Part], object], parts: Iterable[Part], at_a_time: int) -> float:
    """Changes a second over all parts for which there is time; each holds so many changes."""
    calls, taken = spent(BUDGET_S, run, parts)
    return calls * at_a_time / taken.wall
