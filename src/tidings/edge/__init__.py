"""How a live job, its gateways and brokers reach each other: parcels one way, requests the other way. Files and NATS.

Each node (a gateway, or a broker with gateways below it) has a sequence of parcels (`pipeline.edge.wire`) that outlasts crashes
of everybody. Whoever reads it keeps the position behind the last parcel. A parcel may come twice, or be missing because it was
removed after a while: readers tell both by the numbers in it. Requests are lines as of the job's subscription events.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.pipeline.edge.wire import Parcel

FORMATS = ("files", "nats")

Position = dict[str, Any]
"""A place between parcels, as a value of JSON."""


class Arrived(NamedTuple):
    """A parcel as it was written, and the position behind it."""

    position: Position
    data: bytes


class ParcelWriter(Protocol):
    """The end at which parcels are sent."""

    def prepare(self, run: str, asked: threading.Event) -> None:
        """Makes what is needed, and marks it as the run's where that is possible. asked: set when the job is to stop."""
        ...

    def write(self, parcels: Sequence[Parcel]) -> None:
        """Returns when all of them are stored. One that is there already stays as it is."""
        ...

    def report(self, batch: int, reports: Mapping[str, bytes], metrics: Mapping[str, Any]) -> None:
        """Stores what else there is to say of a micro-batch: lines by kind, as `pipeline.live.Output.reports` gives them."""
        ...

    def close(self) -> None: ...


class ParcelReader(Protocol):
    """The end of one node."""

    def alone(self) -> AbstractContextManager[None]:
        """Holds the node's name. UsageError if another process has it."""
        ...

    def read(self, after: Position | None, wait_seconds: float) -> Sequence[Arrived]:
        """The next parcels behind a position, None for the first one there is; none if none comes within the time."""
        ...

    def ask(self, lines: Sequence[bytes]) -> None:
        """Sends requests. Returns when they are stored."""
        ...

    def close(self) -> None: ...


def open_writer(endpoint: Endpoint, run: str | None) -> ParcelWriter:
    """run: identity of the job; empty: it is new; None: it is not known yet. UsageError for what can be found wrong.

    Nothing is changed.
    """
    found: ParcelWriter = _module(endpoint).open_writer(endpoint, run)
    return found


def open_reader(endpoint: Endpoint, node: str) -> ParcelReader:
    found: ParcelReader = _module(endpoint).open_reader(endpoint, node)
    return found


def requests_endpoint(endpoint: Endpoint) -> Endpoint:
    """The source from which a job, or a broker, reads what the nodes below it ask for."""
    found: Endpoint = _module(endpoint).requests_endpoint(endpoint)
    return found


def _module(endpoint: Endpoint) -> Any:
    if endpoint.format not in FORMATS:
        raise UsageError(
            f"gateways are reached by {' or '.join(f'{name}:..' for name in FORMATS)}, not {endpoint.format!r}"
        )
    return import_module(f"{__name__}.{endpoint.format}")
