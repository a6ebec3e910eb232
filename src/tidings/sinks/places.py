"""Gateways as a sink: `places:nats:PREFIX` or `places:files:FOLDER`, with the option `places`, the names of all gateways.

Gateways and brokers are sent parcels (`tidings.edge`); what else a job has to say, answers and refused records, goes where the
sink `nats` or `files` with the same path puts it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tidings.edge import open_writer, requests_endpoint
from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.pipeline.edge.dispatch import ENTERED, ROWS, PlaceOptions
from tidings.pipeline.live import Output

FORMAT = "places"
_OWN = ("places", "receive", "sender")


def open_sink(sink: Endpoint, run: str) -> PlacesSink:
    options_of(sink)
    return PlacesSink(way_of(sink), run)


def options_of(sink: Endpoint, catalog_sql: str = "") -> PlaceOptions | None:
    """None for another sink. UsageError if names are missing or wrong."""
    if sink.format != FORMAT:
        return None
    names = filter(None, (name.strip() for name in sink.options.get("places", "").split(",")))
    receive, sender = sink.options.get("receive", ROWS), sink.options.get("sender", ENTERED)
    return PlaceOptions(tuple(names), receive, catalog_sql, sender)


def way_of(sink: Endpoint) -> Endpoint:
    """How gateways are reached."""
    format, _, path = sink.required_path("nats:prefix").partition(":")
    return Endpoint(format, path, {name: value for name, value in sink.options.items() if name not in _OWN})


def below(sink: Endpoint, feed: Endpoint) -> Endpoint:
    """Where a broker writes that reads elsewhere."""
    if sink.format != FORMAT:
        raise UsageError(
            f"a broker writes to gateways: --sink places:nats:PREFIX or places:files:FOLDER, not {sink.format}:"
        )
    named = next((name for name in _OWN if name in sink.options), None)
    if named is not None:
        raise UsageError(f"the option {named!r} is one of the job's sink: a broker has what the job says")
    way = way_of(sink)
    if (way.format, way.path.rstrip("/")) == (feed.format, feed.path.rstrip("/")):
        raise UsageError(f"{way.format}:{way.path} is where the feed is: leave --sink away, or name another one")
    return way


def requests_of(sink: Endpoint) -> Endpoint | None:
    """Where gateways ask for something; None if the sink has none."""
    return requests_endpoint(way_of(sink)) if sink.format == FORMAT else None


class PlacesSink:
    def __init__(self, way: Endpoint, run: str) -> None:
        self._writer = open_writer(way, run)

    def prepare(self, run: str, asked: threading.Event) -> None:
        self._writer.prepare(run, asked)

    def write(self, batch: int, found: Output, metrics: Mapping[str, Any]) -> None:
        self._writer.write(found.parcels)
        self._writer.report(batch, found.reports(), metrics)

    def close(self) -> None:
        self._writer.close()
