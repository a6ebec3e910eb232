"""The edge bench: subscriptions spread over gateways. What travels, what each gateway holds, what sender and gateways compute.

A column is a number of places. Beside the two senders stand the two simplest ways: every change to every place (`feed`), and
finished notifications, each distinct text once per place with the subscriptions that it is for (`notices`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from tidings.bench import Options, Say, known_names
from tidings.bench.report import Figure, Heading, Report
from tidings.bench.stamp import describe, stamp
from tidings.engine import Engine
from tidings.model.catalog import Catalog
from tidings.model.notification import NotificationBatch
from tidings.pipeline.edge.pack import place_of
from tidings.placed import PlacedEngine
from tidings.sql import parse_catalog
from tidings.workloads import find

CASES = {"market": 20_000, "auctions": 10_000}
"""Workload -> subscriptions."""
_CHANGES_MAX = 20_000
_BATCH = 500
_RECEIVER_BYTES = 4
"""Of the number of a subscription in a notice."""


def run(options: Options, say: Say) -> Report:
    changes = min(options.changes, _CHANGES_MAX)
    report = Report(f"edge: gateways, {changes:,} changes", options.sizes, stamp(options.seed))
    report.notes.append(describe(report.stamp))
    for name in known_names("case", options.cases, tuple(CASES)):
        case = _Case(name, changes, options.seed)
        say(f"{name}: one engine with all rows")
        # Twice, as the first one loads its kernels.
        case.run_whole()
        case.run_whole()
        for places in options.sizes:
            for sender, strategies in (("entered", None), ("regions", {})):
                say(f"{name}: {places:,} places, {sender}")
                figures, is_right = case.figures(places, sender, strategies)
                report.add(places, figures)
                report.is_wrong |= not is_right
            report.add(places, case.others(places))
    report.notes.append("feed: every change to every place. notices: finished notifications, each text once per place.")
    return report


class _Case:
    """A workload, and what one engine with all rows makes of it."""

    def __init__(self, name: str, changes: int, seed: int) -> None:
        made = find(name).load()(seed=seed, rows=0, subscriptions=CASES[name], changes=changes)
        self.name = name
        self.catalog: Catalog = parse_catalog(made.catalog_sql)
        self._subscriptions = list(made.subscriptions)
        self._changes = [line.rstrip(b"\n") for line in made.changes]
        self._told: list[NotificationBatch] = []
        self._text = b""
        self._seconds = 0.0

    def _batches(self) -> Iterator[list[bytes]]:
        for start in range(0, len(self._changes), _BATCH):
            yield self._changes[start : start + _BATCH]

    def run_whole(self) -> None:
        engine = Engine(self.catalog)
        engine.door.read(self._subscriptions)
        self._told, self._seconds = [], 0.0
        for batch in self._batches():
            began = time.process_time()
            result = engine.feed(batch)
            self._seconds += time.process_time() - began
            self._told.append(result.notifications)
            # Ids and tails are kept as they are, whatever happens to subscriptions later.
            _ = result.notifications.seq
        self._text = _text(self._told)

    def figures(self, places: int, sender: str, strategies: dict[str, str] | None) -> tuple[list[Figure], bool]:
        """What a sender costs; and whether lines were those of one engine."""
        engine = PlacedEngine(self.catalog, places, strategies=strategies)
        engine.door.read(self._subscriptions)
        told = [engine.feed(batch).notifications for batch in self._batches()]
        cost, count = engine.places(), len(self._changes)
        each = cost["places"]
        heading = Heading(f"{self.name}.{sender}", f"{self.name}, {sender}")

        def total(field: str) -> float:
            return float(sum(place[field] for place in each))

        beyond = 1e6 * (cost["sender"]["seconds"] - self._seconds) / count
        return [
            heading.figure("bytes", "bytes a change, all places", "B", total("bytes") / count),
            heading.figure("messages", "rows sent a change", "rows", total("messages") / count),
            heading.figure("backfills", "of these without a change", "rows", total("backfills") / count),
            heading.figure(
                "held", f"rows a place holds, of {cost['sender']['rows']:,}", "rows", total("rows") / places
            ),
            heading.figure("sender_us", "sender, a change", "us", 1e6 * cost["sender"]["seconds"] / count),
            heading.figure("beyond_us", "of this beyond one engine that tells", "us", beyond),
            heading.figure("gateway_us", "a gateway, a change", "us", 1e6 * total("seconds") / count / places),
        ], _text(told) == self._text

    def others(self, places: int) -> list[Figure]:
        """Bytes of the two simplest ways."""
        count = len(self._changes)
        feed = sum(map(len, self._changes)) * places / count
        size = 0
        for told in self._told:
            place = np.array([place_of(id, places) for id in told.subscriptions().to_pylist()], np.int64)
            texts = np.unique(told.tail * places + place) // places
            size += int(told.tails.lengths[texts].sum()) + _RECEIVER_BYTES * len(told)
        return [
            Heading(f"{self.name}.feed", f"{self.name}, feed").figure("bytes", "bytes a change, all places", "B", feed),
            Heading(f"{self.name}.notices", f"{self.name}, notices").figure(
                "bytes", "bytes a change, all places", "B", size / count
            ),
        ]


def _text(told: Sequence[NotificationBatch]) -> bytes:
    return b"".join(bytes(piece) for batch in told for piece in batch.text())
