"""The centre of a live job with gateways: all rows, the subscriptions of its own places, and what nodes are sent of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tidings.model.blob import pack, unpack
from tidings.model.catalog import Catalog
from tidings.model.notification import NO_NOTIFICATIONS, NotificationBatch
from tidings.model.points import PointBatch
from tidings.pipeline.edge.dispatch import REGIONS, ROWS, Dispatch, News, PlaceOptions
from tidings.pipeline.edge.entered import EnteredSender
from tidings.pipeline.edge.place_tree import PlaceTree
from tidings.pipeline.edge.regions import RegionSender
from tidings.pipeline.edge.sender import Sender
from tidings.pipeline.edge.wire import Parcel, Query
from tidings.pipeline.registrar import Answer, Registrar
from tidings.pipeline.replica.batch import Applied, Origin
from tidings.pipeline.replica.replica import Replica


class Centre:
    """In a job of several shards each has one, for the nodes that are its own."""

    def __init__(
        self,
        catalog: Catalog,
        options: PlaceOptions,
        tree: PlaceTree,
        registrar: Registrar,
        is_own: Callable[[str, str], bool],
        *,
        by_commit: bool,
    ) -> None:
        self._registrar, self._tree, self._batch = registrar, tree, 0
        self._sender: Sender | None = None
        if options.receive == ROWS:
            make = RegionSender if options.sender == REGIONS else EnteredSender
            self._sender = make(catalog, len(tree.nodes), self._number_of, by_commit=by_commit, is_stream=True)
            self.replica: Replica = self._sender.replica
        else:
            self.replica = Replica(catalog, keeps_points=True, is_stream=True, by_commit=by_commit)
        own = {tree.number_of(name) for name in tree.names if is_own("", name)}
        self._dispatch = Dispatch(tree, own, self, self._sender, options.catalog_sql, by_commit=by_commit)

    def _number_of(self, id: str) -> int:
        return self._tree.number_of(self.place_of(id))

    def place_of(self, id: str) -> str:
        return self._registrar.place_of(id)

    def living(self) -> Iterator[Query]:
        return (Query(*each) for each in self._registrar.living())

    def snapshots(self, ids: Collection[str]) -> NotificationBatch:
        slots = self.replica.subscriptions.slots
        return self.replica.snapshots(np.array(sorted(slots[id] for id in ids if id in slots), np.int64))

    def apply(
        self, lines: Sequence[bytes], origin: Origin, points: Iterable[PointBatch], answers: Sequence[Answer]
    ) -> tuple[Applied, list[Parcel]]:
        """Handles a micro-batch. answers: to the events that the points were made from. Nobody but nodes is told."""
        self._batch += 1
        if self._sender is not None:
            packs, applied = self._sender.feed(lines, origin, points)
            bodies = self._dispatch.packs(packs)
        else:
            applied = self.replica.apply(lines, origin, points)
            bodies = self._dispatch.notices(applied.notifications)
        answers = [*answers, *(self._expelled(id, reason) for id, reason in applied.failed)]
        if applied.failed:
            # Subscriptions of the family have been created anew, and those at fault are gone: places know of neither.
            self._dispatch.bare |= set(self._dispatch.last)
        created = dict.fromkeys(
            answer.id for answer in answers if answer.id and answer.event == "create" and answer.refused is None
        )
        queries = [Query(id, *query) for id in created if (query := self._registrar.query_of(id)) is not None]
        news = News(answers, queries, [*self._registrar.left()], [*self._registrar.resyncs])
        parcels = self._dispatch.parcels(self._batch, self.replica.passed, bodies, news)
        self._registrar.resyncs.clear()
        if not self.replica.store.is_loading:
            self._registrar.forget_left()
        return replace(applied, notifications=NO_NOTIFICATIONS), parcels

    def _expelled(self, id: str, reason: str) -> Answer:
        """The answer to a subscription that could not be evaluated, and is forgotten."""
        place = self.place_of(id)
        self._registrar.expel(id)
        return Answer("", 0, id, "create", refused=f"dropped: {reason}", place=place)

    def dump(self) -> bytes:
        """State for `load`."""
        held: Any = {"replica": self.replica.dump()} if self._sender is None else self._sender.dump()
        return pack({"batch": self._batch, "dispatch": self._dispatch.dump(), "held": held})

    def load(self, blob: bytes) -> None:
        """Restores what `dump` gave. Called when the registrar has been loaded.

        Nodes get new bases if places, tables, or what places receive are no longer as they were.
        """
        state = unpack(blob)
        self._batch, held = state["batch"], state["held"]
        leads_on = self._dispatch.load(state["dispatch"])
        if self._sender is None:
            self.replica.load(held["replica"])
        else:
            self._sender.load(held, knows_holders=leads_on)
