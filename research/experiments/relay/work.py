"""What views do with documents: by the nodes that run in production, or by a table that is much faster to ask.

A view says the same of a document by any plan. So the messages of all different views are made once for each document, as nodes
make them, and their sizes are kept. How long a node takes is measured on some documents; for others it is taken to be linear
in the ids of its inputs.

Rows are left to the subscriber: few views have most of the rows, and the time of these would hide all else. A node lists none
of documents of which its subscriber has been told.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from research.bench.relay.running import prepare_shared
from tidings.kernels.arrays import F64, I64
from tidings.relay.document import Document
from tidings.relay.files import View
from tidings.relay.message import Parts, ViewMessage, encode_message
from tidings.relay.pattern import Pattern
from tidings.relay.plan import PUBLISHER, RelayPlan
from tidings.relay.runtime.epochs import Epoch, Timeline, queries_of
from tidings.relay.runtime.node import RelayNode
from tidings.relay.runtime.pattern_query import PatternQuery, pattern_matching

_ALL = 1 << 60
"""More documents than there are."""


@dataclass(frozen=True, eq=False)
class MessageTable:
    """int64[documents, queries]. bytes: of a message, without the name of the view. ids: in it."""

    bytes: I64
    ids: I64


def tabulate(patterns: Sequence[Pattern], documents: Sequence[Document]) -> MessageTable:
    queries = [PatternQuery(pattern) for pattern in patterns]
    matcher = pattern_matching(prepare_shared)(queries)
    table = MessageTable(*(np.zeros((len(documents), len(queries)), np.int64) for _ in range(2)))
    for at, document in enumerate(documents):
        for number, parts in enumerate(matcher(document)):
            table.bytes[at, number] = len(encode_message(_message(at, "", parts)))
            table.ids[at, number] = _ids(parts)
    return table


@dataclass(frozen=True)
class Speed:
    """Seconds of a node: each time, and per id of its inputs."""

    each: float
    per_id: float


class NodeWork:
    """The nodes of a plan, for one document after the other. timings: (input ids, seconds) of all that was computed."""

    def __init__(self, plan: RelayPlan, views: Sequence[View]) -> None:
        epoch = Epoch(1, 1, plan, queries_of(views))
        timeline = Timeline(epoch)
        self._queries = [epoch.queries[view.id] for view in views]
        self._names = [view.id for view in views]
        self._inputs = [plan.inputs[view.id] for view in views]
        self._nodes = [RelayNode(view.id, timeline.schedule(view.id), 1, _ALL) for view in views]
        self._said: dict[str, ViewMessage] = {}
        self._from_publisher: dict[int, ViewMessage] = {}
        self._document: Document | None = None
        self._at = -1
        self.timings: list[tuple[int, float]] = []

    def take(self, document: Document) -> NodeWork:
        """The next document."""
        self._document = document
        self._at += 1
        self._said.clear()
        self._from_publisher.clear()
        return self

    def fed(self, view: int) -> int:
        parts = self._queries[view].match(self._document)
        message = self._from_publisher[view] = _message(self._at, self._names[view], parts)
        return len(encode_message(message))

    def compute(self, view: int) -> tuple[float, int]:
        node = self._nodes[view]
        given: list[tuple[str, ViewMessage]]
        if view in self._from_publisher:
            given = [(PUBLISHER, self._from_publisher[view])]
        else:
            given = [(source, self._said[source]) for source in self._inputs[view]]
        emissions: list[Any] = []
        begin = time.thread_time()
        for source, message in given:
            emissions += node.receive(source, message)
        seconds = time.thread_time() - begin
        (emission,) = emissions
        self._said[self._names[view]] = emission.message
        size = len(encode_message(emission.message))
        self.timings.append((sum(_ids(message.parts) for _, message in given), seconds))
        return seconds, size


def fit(timings: Sequence[tuple[int, float]]) -> Speed:
    """Least squares; neither is less than no time."""
    ids, seconds = np.array(timings).T
    away = ids - ids.mean()
    per_id = max(0.0, float(away @ seconds / max(1e-9, away @ away)))
    return Speed(max(0.0, float(seconds.mean() - per_id * ids.mean())), per_id)


class TableWork:
    """A plan's views by a table. query_of: of each view."""

    def __init__(
        self, table: MessageTable, speed: Speed, plan: RelayPlan, views: Sequence[View], query_of: I64
    ) -> None:
        number = {view.id: place for place, view in enumerate(views)}
        names = np.array([len(view.id.encode()) for view in views])
        # A view that the publisher feeds is sent its own message.
        inputs = [
            [place] if plan.inputs[view.id] == (PUBLISHER,) else [number[source] for source in plan.inputs[view.id]]
            for place, view in enumerate(views)
        ]
        self._sources = query_of[np.array([source for each in inputs for source in each])]
        self._starts = np.concatenate([[0], np.cumsum([len(each) for each in inputs])])[:-1]
        self._table, self._speed, self._query_of, self._names = table, speed, query_of, names

    def at(self, number: int) -> DocumentWork:
        """The document of this number."""
        table, speed = self._table, self._speed
        ids: F64 = np.add.reduceat(table.ids[number, self._sources], self._starts)
        bytes = table.bytes[number, self._query_of] + self._names
        return DocumentWork(bytes.tolist(), (speed.each + speed.per_id * ids).tolist())


@dataclass(frozen=True)
class DocumentWork:
    """bytes, seconds: per view."""

    bytes: list[int]
    seconds: list[float]

    def fed(self, view: int) -> int:
        return self.bytes[view]

    def compute(self, view: int) -> tuple[float, int]:
        return self.seconds[view], self.bytes[view]


def _message(at: int, view: str, parts: Parts) -> ViewMessage:
    return ViewMessage(1, at + 1, f"{at + 1:04}.xml", view, parts)


def _ids(parts: Parts) -> int:
    return 0 if parts is None else sum(len(part.ids) for part in parts)
