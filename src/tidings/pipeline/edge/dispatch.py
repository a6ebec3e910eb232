"""What a job, or a broker, sends to the nodes below it: one parcel for each node that something has happened to.

A node is sent a base first, then parcels of micro-batches. It is sent a base again when it asks for one (a gateway that has
lost its folder), and when what it was sent does not lead on: the tables or the places of the job are others than before, or an
evaluator failed and was made anew. Who asks, asks the job, wherever in the tree: so everything below a node happens in the
order of the parcels that it is sent, and happens in the same way again after a crash.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from msgspec import structs

from tidings.model.blob import pieces
from tidings.model.errors import UsageError
from tidings.model.notification import NotificationBatch
from tidings.pipeline.edge.pack import Pack
from tidings.pipeline.edge.place_tree import PlaceTree, check_name, is_at
from tidings.pipeline.edge.sender import Sender
from tidings.pipeline.edge.wire import Base, Kind, Parcel, Query, base_body, notices_body, pack_body
from tidings.pipeline.registrar import Answer

T = TypeVar("T")
ROWS, NOTICES = "rows", "notices"
ENTERED, REGIONS = "entered", "regions"
_QUIET = 256
"""A node to which nothing has happened in so many micro-batches is told that time has passed."""


@dataclass(frozen=True)
class PlaceOptions:
    """names: of all gateways. receive: what they are sent. catalog_sql: what they need to read it.

    sender: how rows find them.
    """

    names: tuple[str, ...]
    receive: str
    catalog_sql: str
    sender: str = ENTERED

    def __post_init__(self) -> None:
        if not self.names:
            raise UsageError("a sink places: needs the names of the gateways: --sink-option places=berlin,paris")
        if self.receive not in (ROWS, NOTICES):
            raise UsageError(f"gateways receive {ROWS} or {NOTICES}, not {self.receive!r}")
        if self.sender not in (ENTERED, REGIONS):
            raise UsageError(f"rows find gateways by the sender {ENTERED} or {REGIONS}, not {self.sender!r}")
        if self.sender == REGIONS and self.receive == NOTICES:
            raise UsageError(f"sender={REGIONS} sends rows: leave receive={NOTICES} away")
        for name in self.names:
            check_name(name)


class Subscribers(Protocol):
    """Who knows the subscriptions of all places below."""

    def place_of(self, id: str) -> str:
        """The place of a subscription that is there, or was before the micro-batch."""
        ...

    def living(self) -> Iterable[Query]: ...

    def snapshots(self, ids: Collection[str]) -> NotificationBatch:
        """The answers of subscriptions, where nodes are sent notices."""
        ...


class News(NamedTuple):
    """What a micro-batch says of subscriptions: fields as in `Parcel`. asked: places and nodes that need all of their state."""

    answers: Sequence[Answer] = ()
    created: Sequence[Query] = ()
    ended: Sequence[tuple[str, str]] = ()
    asked: Iterable[str] = ()


class Dispatch:
    """What each node below has been sent."""

    def __init__(
        self,
        tree: PlaceTree,
        own: Iterable[int],
        known: Subscribers,
        sender: Sender | None,
        catalog_sql: str,
        *,
        by_commit: bool,
    ) -> None:
        """own: nodes that are sent something from here, by number. sender: None where nodes are sent notices."""
        self._tree, self._known, self._sender = tree, known, sender
        self._catalog_sql, self._by_commit = catalog_sql, by_commit
        self.last = dict.fromkeys(sorted(own), 0)
        """Node -> the last micro-batch that it was sent something of; 0: none."""
        self.bare = set(self.last)
        """Nodes that must be sent a base."""

    def packs(self, packs: Mapping[int, Pack]) -> dict[int, bytes]:
        """Bodies of parcels of rows, by node."""
        return {node: pack_body(found) for node, found in packs.items()}

    def notices(self, told: NotificationBatch) -> dict[int, bytes]:
        """Bodies of parcels of notices, by node."""
        if not len(told):
            return {}
        ids = told.subscriptions().dictionary_encode()
        node_of = np.array([self._number_of(id) for id in ids.dictionary.to_pylist()], np.int64)
        node = node_of[np.asarray(ids.indices)]
        order = np.argsort(node, kind="stable")
        nodes, starts = np.unique(node[order], return_index=True)
        parts = zip(nodes.tolist(), np.split(order, starts[1:]), strict=True)
        return {number: notices_body(told.take(own)) for number, own in parts}

    def parcels(
        self, batch: int, passed: int, bodies: Mapping[int, bytes], news: News, *, is_compulsory: bool = True
    ) -> list[Parcel]:
        """Everything for the nodes of a micro-batch. is_compulsory: whether bases of bare nodes are."""
        answers = self._by_node((answer.place, answer) for answer in news.answers if answer.place)
        created = self._by_node((query.place, query) for query in news.created)
        ended = self._by_node((place, (id, place)) for id, place in news.ended)
        asked = self._by_node((place, place) for place in news.asked)
        happened = bodies.keys() | answers.keys() | created.keys() | ended.keys()
        found = []
        for node, last in self.last.items():
            replies, name = answers.get(node, ()), self._tree.nodes[node]
            if node in self.bare:
                found.append(self._base(node, batch, passed, replies, is_compulsory=is_compulsory))
                continue
            below = [place for place in asked.get(node, ()) if place != name]
            if node in happened or below or batch - last >= _QUIET:
                body = bodies.get(node) or self._nothing(passed)
                parcel = Parcel(self._kind, "", name, batch, last, passed, body, replies)
                parcel = structs.replace(parcel, created=created.get(node, ()), ended=ended.get(node, ()))
                if below:
                    parcel = structs.replace(parcel, asked=below, snapshots=self._snapshots(below))
                found.append(parcel)
                self.last[node] = batch
            if name in asked.get(node, ()):
                found.append(self._base(node, batch, passed, (), is_compulsory=False))
        self.bare.clear()
        return found

    @property
    def _kind(self) -> Kind:
        return Kind.NOTICES if self._sender is None else Kind.ROWS

    def _nothing(self, passed: int) -> bytes:
        return b"" if self._sender is None else pack_body(Pack(passed, passed, 0, b""))

    def _number_of(self, id: str) -> int:
        return self._tree.number_of(self._known.place_of(id))

    def _by_node(self, found: Iterable[tuple[str, T]]) -> dict[int, list[T]]:
        """What is given with the names of places, by node."""
        of_node: dict[int, list[T]] = {}
        for place, each in found:
            of_node.setdefault(self._tree.number_of(place), []).append(each)
        return of_node

    def _snapshots(self, places: Collection[str]) -> bytes:
        """The answers of the subscriptions at some places, or behind them, where these are sent notices."""
        if self._sender is not None:
            return b""
        ids = {query.id for query in self._known.living() if any(is_at(query.place, place) for place in places)}
        told = self._known.snapshots(ids)
        # As columns that can be packed.
        return notices_body(told.take(np.arange(len(told))))

    def _base(self, node: int, batch: int, passed: int, answers: Sequence[Answer], *, is_compulsory: bool) -> Parcel:
        name = self._tree.nodes[node]
        base = Base(
            self._catalog_sql,
            self._by_commit,
            [] if self._sender is None else pieces(self._sender.base(node)),
            [query for query in self._known.living() if is_at(query.place, name)],
            self._snapshots([name]),
            [place for place in self._tree.names if is_at(place, name)],
        )
        previous, self.last[node] = self.last[node], batch
        return Parcel(
            Kind.BASE, "", name, batch, previous, passed, base_body(base), answers, is_compulsory=is_compulsory
        )

    def dump(self) -> dict[str, Any]:
        """State for `load`, as something `tidings.model.blob.pack` takes."""
        return {
            "nodes": self._tree.nodes,
            "last": {self._tree.nodes[node]: batch for node, batch in self.last.items()},
            "catalog": self._catalog_sql,
            "kind": int(self._kind),
            "bare": sorted(self.bare),
        }

    def load(self, state: Mapping[str, Any]) -> bool:
        """Restores what `dump` gave. Whether what nodes were sent leads on to what they will be; else each gets a base."""
        now = self.dump()
        leads_on = all(state[name] == now[name] for name in ("nodes", "catalog", "kind"))
        self.bare = set(state["bare"]) if leads_on else set(self.last)
        self.last |= {node: state["last"].get(self._tree.nodes[node], 0) for node in self.last}
        return leads_on
