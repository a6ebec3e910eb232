"""What a broker makes of its parcels: parcels for the nodes below it.

A broker is a gateway for all subscriptions behind it: a partial replica over the rows that these need, each of which it is sent
once. Instead of telling anybody it does what the centre does with all rows: its replica is that of a sender, which finds out
what each of the nodes below needs of what has come. Notices are split by place.

What it sends follows from the last base it was sent, and the parcels behind it; parcels have the numbers of those they come of.
So after a crash, or if its folder is lost, the same ones go out again, and whoever has had them passes them over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from tidings.model.blob import pack, pieces, unpack
from tidings.model.errors import UsageError
from tidings.model.notification import NO_NOTIFICATIONS, NotificationBatch
from tidings.pipeline.edge.dispatch import Dispatch, News
from tidings.pipeline.edge.entered import EnteredSender
from tidings.pipeline.edge.gateway import Gateway, Taken
from tidings.pipeline.edge.partial import PartialReplica
from tidings.pipeline.edge.place_tree import PlaceTree
from tidings.pipeline.edge.wire import Base, Parcel, Query, notices_of, pack_of
from tidings.sql import parse_catalog


class Broker(Gateway):
    """The subscriptions of all places behind a broker, and what the nodes below it are sent."""

    def __init__(self) -> None:
        super().__init__()
        self._make_tree((), "", by_commit=True)
        self._sender: EnteredSender | None = None
        self._dispatch: Dispatch | None = None
        self._left: dict[str, str] = {}
        """Places of the subscriptions that end with the parcel."""
        self._notices = NO_NOTIFICATIONS
        """Snapshots that came with the parcel."""
        self._parcels: list[Parcel] = []

    def place_of(self, id: str) -> str:
        known = self.queries.get(id)
        return self._left[id] if known is None else known.place

    def living(self) -> Iterable[Query]:
        return self.queries.values()

    def snapshots(self, ids: Collection[str]) -> NotificationBatch:
        known = self._notices.subscriptions().to_pylist()
        return self._notices.take(np.flatnonzero(np.array([id in ids for id in known], np.bool_)))

    def take(self, parcel: Parcel, *, is_told: bool = True) -> Taken | None:
        self._left, self._parcels = dict(parcel.ended), []
        taken = super().take(parcel)
        return None if taken is None else taken._replace(parcels=self._parcels)

    def _begin(self, parcel: Parcel, base: Base, *, is_told: bool) -> NotificationBatch:
        if list(base.names) == [parcel.node]:
            raise UsageError(
                f"the place {parcel.node!r} is a gateway: for a broker let the job's sink name the gateways below it, as "
                f"places={parcel.node}/one,{parcel.node}/two"
            )
        former = {} if self._dispatch is None else self._dispatch.dump()["last"]
        self._catalog_sql, self._replica, self._sender = base.catalog_sql, None, None
        self._make_tree(base.names, parcel.node, by_commit=base.by_commit)
        if base.replica:
            self._load_rows(pack({"replica": b"".join(base.replica)}))
        dispatch = self._dispatch = self._new_dispatch()
        dispatch.last |= {node: former.get(self._tree.nodes[node], 0) for node in dispatch.last}
        self._notices = notices_of(base.notices) or NO_NOTIFICATIONS
        # Where this node has told all that the base says, so have those below, if they have missed nothing.
        news = News(parcel.answers)
        self._parcels = dispatch.parcels(parcel.batch, parcel.passed, {}, news, is_compulsory=is_told)
        return NO_NOTIFICATIONS

    def _apply(self, parcel: Parcel, *, is_told: bool) -> NotificationBatch:
        assert self._dispatch is not None
        if self._sender is not None and self._replica is not None:
            self._replica.take(pack_of(parcel.body))
            bodies = self._dispatch.packs(self._sender.packs())
        else:
            bodies = self._dispatch.notices(notices_of(parcel.body) or NO_NOTIFICATIONS)
        self._notices = notices_of(parcel.snapshots) or NO_NOTIFICATIONS
        news = News(parcel.answers, parcel.created, parcel.ended, parcel.asked)
        self._parcels = self._dispatch.parcels(parcel.batch, parcel.passed, bodies, news)
        return NO_NOTIFICATIONS

    def _make_tree(self, names: Sequence[str], node: str, *, by_commit: bool) -> None:
        """names: of the gateways behind the node."""
        self.names, self._node, self._by_commit = names, node, by_commit
        self._tree = PlaceTree(names, root=node)

    def _new_dispatch(self) -> Dispatch:
        nodes = range(len(self._tree.nodes))
        return Dispatch(self._tree, nodes, self, self._sender, self._catalog_sql, by_commit=self._by_commit)

    def _load_rows(self, blob: bytes) -> None:
        """blob: packed state of a sender."""
        catalog, state, tree = parse_catalog(self._catalog_sql), unpack(blob), self._tree
        self._replica = PartialReplica(catalog, keeps_points=True)
        self._sender = EnteredSender(
            catalog, len(tree.nodes), lambda id: tree.number_of(self.place_of(id)), replica=self._replica
        )
        self._sender.load(state, knows_holders="may" in state)

    def _dump_rows(self) -> bytes:
        return b"" if self._sender is None else pack(self._sender.dump())

    def dump(self) -> bytes:
        state: dict[str, Any] = {
            "node": self._node,
            "names": list(self.names),
            "by_commit": int(self._by_commit),
            "dispatch": {} if self._dispatch is None else self._dispatch.dump(),
            "gateway": pieces(super().dump()),
        }
        return pack(state)

    def load(self, blob: bytes) -> None:
        state = unpack(blob)
        self._make_tree(state["names"], state["node"], by_commit=bool(state["by_commit"]))
        super().load(b"".join(state["gateway"]))
        if state["dispatch"]:
            self._dispatch = self._new_dispatch()
            self._dispatch.load(state["dispatch"])
