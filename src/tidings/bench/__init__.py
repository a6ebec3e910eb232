"""Measurements of Tidings as it is used, with its peers on the same data in the same run.

A bench is one module with a function `run(options, say) -> Report`, and an entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from tidings.model.errors import UsageError

if TYPE_CHECKING:
    from tidings.bench.report import Report

Say = Callable[[str], None]
"""Prints a line of progress on stderr."""


@dataclass(frozen=True)
class Live:
    """Of the benches `live` and `soak`. rate: changes a second; kills: how often the job is killed meanwhile.

    statements: of a transaction, at most.
    """

    source: str = "postgres"
    rate: int = 2_000
    seconds: int = 60
    kills: int = 5
    statements: int = 10


@dataclass(frozen=True)
class Serve:
    """Of the bench `serve`. rate: changes a second; transport: sse, websocket or both."""

    clients: int = 5_000
    rate: int = 1_000
    seconds: int = 60
    transport: str = "sse"


@dataclass(frozen=True)
class Options:
    sizes: tuple[int, ...]
    """Numbers of subscriptions, ascending."""
    changes: int = 100_000
    engines: tuple[str, ...] = ()
    """Engines to measure; empty: all."""
    has_peers: bool = True
    seed: int = 0
    cases: tuple[str, ...] = ()
    """Cases to measure, for a bench that has several; empty: all."""
    batches: tuple[int, ...] = ()
    """Batch sizes in changes, ascending, for a bench that has several; empty: all."""
    live: Live = Live()
    serve: Serve = Serve()


@dataclass(frozen=True)
class Entry:
    """A bench's place in the registry; its module is imported only when it is wanted."""

    description: str
    module: str
    sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    has_cases: bool = False
    """Whether `cases` and `batches` can be chosen."""
    is_live: bool = False
    """Whether the options of `Live` are for it."""
    is_serve: bool = False
    """Whether the options of `Serve` are for it."""

    def load(self) -> Callable[[Options, Say], Report]:
        run: Callable[[Options, Say], Report] = import_module(self.module).run
        return run


BENCHES: Mapping[str, Entry] = {
    "mix": Entry(
        "lines in, notification lines out: mixed subscriptions that come and go, against numpy, DuckDB and Spark SQL",
        "tidings.bench.mix",
        sizes=(1_000, 10_000, 100_000, 1_000_000),
        has_cases=True,
    ),
    "live": Entry(
        "a live source through `tidings run`, killed meanwhile: is every view right, and how late",
        "tidings.bench.live",
        sizes=(10_000,),
        is_live=True,
    ),
    "soak": Entry(
        "`tidings run` for a long time, subscriptions coming and going: does memory grow, do micro-batches slow down",
        "tidings.bench.soak",
        sizes=(10_000,),
        is_live=True,
    ),
    "serve": Entry(
        "`tidings serve` with thousands of clients: how late they hear of changes, what they cost, is anything missing",
        "tidings.bench.serve",
        sizes=(100_000,),
        is_serve=True,
    ),
    "edge": Entry(
        "subscriptions at gateways (sizes are their numbers): bytes that travel, rows held, time of sender and gateways",
        "tidings.bench.edge",
        sizes=(8, 64, 256, 1_024),
        has_cases=True,
    ),
    "network": Entry(
        "the simulated network (sizes are points): 1,000 brokers, what a message takes; seeds with faults, what is lost",
        "tidings.bench.network",
        has_cases=True,
    ),
}


def find(name: str) -> Entry:
    if name not in BENCHES:
        raise UsageError(
            f"unknown bench {name!r}; there are: {', '.join(BENCHES)}; those of single families run in a clone:"
            " python -m research bench list"
        )
    return BENCHES[name]


def known_names(what: str, wanted: Collection[str], known: Collection[str]) -> tuple[str, ...]:
    """The names that are wanted, all if none is. UsageError if one is not known."""
    for name in wanted:
        if name not in known:
            raise UsageError(f"unknown {what} {name!r}; there are: {', '.join(known)}")
    return tuple(wanted) or tuple(known)
