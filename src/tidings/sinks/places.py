"""Gateways as a sink: `places:nats:PREFIX` or `places:files:FOLDER`, with the option `places`, the names of all gateways.

Gateways and brokers are sent parcels (`tidings.edge`); what else a job has to say, answers and refused records, goes where the
sink `nats` or `files` of the same path puts it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tidings.edge import open_writer, requests_endpoint
from tidings.endpoint import Endpoint
from tidings.model.notification import NO_NOTIFICATIONS
from tidings.pipeline.edge.dispatch import ROWS, PlaceOptions
from tidings.pipeline.live import Output
from tidings.sinks import Sink
from tidings.sinks import open_sink as open_other

FORMAT = "places"
_OWN = ("places", "receive")


def open_sink(sink: Endpoint, run: str) -> PlacesSink:
    options_of(sink)
    return PlacesSink(way_of(sink), run)


def options_of(sink: Endpoint, catalog_sql: str = "") -> PlaceOptions | None:
    """None for another sink. UsageError if names are missing or wrong."""
    if sink.format != FORMAT:
        return None
    names = filter(None, (name.strip() for name in sink.options.get("places", "").split(",")))
    return PlaceOptions(tuple(names), sink.options.get("receive", ROWS), catalog_sql)


def way_of(sink: Endpoint) -> Endpoint:
    """How gateways are reached."""
    format, _, path = sink.required_path("nats:prefix").partition(":")
    return Endpoint(format, path, {name: value for name, value in sink.options.items() if name not in _OWN})


def requests_of(sink: Endpoint) -> Endpoint | None:
    """Where gateways ask for something; None if the sink has none."""
    return requests_endpoint(way_of(sink)) if sink.format == FORMAT else None


class PlacesSink:
    def __init__(self, way: Endpoint, run: str) -> None:
        self._writer = open_writer(way, run)
        rest = {name: value for name, value in way.options.items() if name != "keep"}
        self._reports: Sink | None = None
        self._way = Endpoint(way.format, way.path, rest)
        self._run, self._asked = run, threading.Event()

    def prepare(self, run: str, asked: threading.Event) -> None:
        self._writer.prepare(run, asked)
        self._run, self._asked = run, asked

    def write(self, batch: int, found: Output, metrics: Mapping[str, Any]) -> None:
        self._writer.write(found.parcels)
        if self._reports is None:
            self._reports = open_other(self._way, self._run)
            self._reports.prepare(self._run, self._asked)
        self._reports.write(batch, found._replace(told=NO_NOTIFICATIONS), metrics)

    def close(self) -> None:
        self._writer.close()
        if self._reports is not None:
            self._reports.close()
