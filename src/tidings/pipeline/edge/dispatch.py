"""What a live job sends to its gateways and brokers: one parcel for each node that something has happened to.

A node is sent a base first, then parcels of micro-batches. It is sent a base again when it asks for one (a gateway that has
lost its folder), and when what it was sent does not lead on: the tables or the places of the job are others than before, or an
evaluator failed and was made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tidings.model.blob import pack, unpack
from tidings.model.catalog import Catalog
from tidings.model.errors import UsageError
from tidings.model.notification import NO_NOTIFICATIONS, NotificationBatch
from tidings.model.points import PointBatch
from tidings.pipeline.edge.entered import EnteredSender
from tidings.pipeline.edge.pack import Pack
from tidings.pipeline.edge.place_tree import PlaceTree, check_name
from tidings.pipeline.edge.wire import Base, Kind, Parcel, Query, base_body, notices_body, pack_body
from tidings.pipeline.registrar import Answer, Registrar
from tidings.pipeline.replica.batch import Applied, Origin
from tidings.pipeline.replica.replica import Replica

T = TypeVar("T")
ROWS, NOTICES = "rows", "notices"


@dataclass(frozen=True)
class PlaceOptions:
    """names: of all gateways. receive: what they are sent. catalog_sql: what they need to read it."""

    names: tuple[str, ...]
    receive: str
    catalog_sql: str

    def __post_init__(self) -> None:
        if not self.names:
            raise UsageError("a sink places: needs the names of the gateways: --sink-option places=berlin,paris")
        if self.receive not in (ROWS, NOTICES):
            raise UsageError(f"gateways receive {ROWS} or {NOTICES}, not {self.receive!r}")
        for name in self.names:
            check_name(name)


class Dispatch:
    """The rows of all tables, the subscriptions of one's own places, and what each node has been sent."""

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
        self._options, self._tree, self._registrar, self._by_commit = options, tree, registrar, by_commit
        self._own = sorted({tree.number_of(name) for name in tree.names if is_own("", name)})
        """Nodes that are sent something from here, by number."""
        self._sender: EnteredSender | None = None
        if options.receive == ROWS:
            self._sender = EnteredSender(catalog, len(tree.nodes), self._number_of, by_commit=by_commit, is_stream=True)
            self.replica: Replica = self._sender.replica
        else:
            self.replica = Replica(catalog, keeps_points=True, is_stream=True, by_commit=by_commit)
        self._batch = 0
        self._last = dict.fromkeys(self._own, 0)
        """The last micro-batch that a node was sent something of; 0: none."""
        self._bare = set(self._own)
        """Nodes that must be sent a base."""

    def _number_of(self, id: str) -> int:
        return self._tree.number_of(self._registrar.place_of(id))

    def apply(
        self, lines: Sequence[bytes], origin: Origin, points: Iterable[PointBatch], answers: Sequence[Answer]
    ) -> tuple[Applied, list[Parcel]]:
        """Handles a micro-batch. answers: to the events that the points were made from. Nobody but nodes is told."""
        self._batch += 1
        if self._sender is not None:
            packs, applied = self._sender.feed(lines, origin, points)
            bodies = {node: (pack_body(found), found.passed) for node, found in packs.items()}
        else:
            applied = self.replica.apply(lines, origin, points)
            bodies = {
                node: (notices_body(told), self.replica.passed) for node, told in self._split(applied.notifications)
            }
        answers = [*answers, *(self._expelled(id, reason) for id, reason in applied.failed)]
        if applied.failed:
            # Subscriptions of the family have been created anew, and those at fault are gone: places know of neither.
            self._bare |= set(self._own)
        asked = {number for name in self._registrar.resyncs if (number := self._tree.number(name)) is not None}
        self._registrar.resyncs.clear()
        replies = self._by_node((answer.place, answer) for answer in answers if answer.place)
        ended = self._by_node((place, (id, place)) for id, place in self._registrar.left())
        parcels = []
        for node in self._own:
            if node in self._bare:
                parcels.append(self._base(node, replies.get(node, ()), is_compulsory=True))
                continue
            if node in bodies or node in replies or node in ended:
                body, passed = bodies.get(node, (b"", self.replica.passed))
                parcels.append(self._parcel(node, body, passed, replies.get(node, ()), ended.get(node, ())))
            if node in asked:
                parcels.append(self._base(node, (), is_compulsory=False))
        self._bare.clear()
        if not self.replica.store.is_loading:
            self._registrar.forget_left()
        return applied._replace(notifications=NO_NOTIFICATIONS), parcels

    def _expelled(self, id: str, reason: str) -> Answer:
        """The answer to a subscription that could not be evaluated, and is forgotten."""
        place = self._registrar.place_of(id)
        self._registrar.expel(id)
        return Answer("", 0, id, "create", refused=f"dropped: {reason}", place=place)

    def _by_node(self, found: Iterable[tuple[str, T]]) -> dict[int, list[T]]:
        """What is given with the names of places, by node."""
        of_node: dict[int, list[T]] = {}
        for place, each in found:
            of_node.setdefault(self._tree.number_of(place), []).append(each)
        return of_node

    def _parcel(
        self, node: int, body: bytes, passed: int, answers: Sequence[Answer], ended: Sequence[tuple[str, str]]
    ) -> Parcel:
        kind = Kind.ROWS if self._sender is not None else Kind.NOTICES
        if not body and kind is Kind.ROWS:
            body = pack_body(Pack(passed, passed, 0, b""))
        created = (answer.id for answer in answers if answer.event == "create" and answer.refused is None)
        known = [(id, self._registrar.query_of(id)) for id in dict.fromkeys(created) if id is not None]
        queries = [Query(id, *query) for id, query in known if query is not None]
        previous, self._last[node] = self._last[node], self._batch
        return Parcel(kind, "", self._tree.nodes[node], self._batch, previous, passed, body, answers, queries, ended)

    def _base(self, node: int, answers: Sequence[Answer], *, is_compulsory: bool) -> Parcel:
        name = self._tree.nodes[node]
        living = [Query(*each) for each in self._registrar.living() if self._tree.number_of(each[2]) == node]
        pieces: list[bytes] = []
        notices = b""
        if self._sender is not None:
            blob = self._sender.base(node)
            pieces = [blob[at : at + _PIECE_BYTES] for at in range(0, len(blob), _PIECE_BYTES)]
        else:
            slots = self.replica.subscriptions.slots
            own = sorted(slots[query.id] for query in living if query.id in slots)
            notices = notices_body(_whole(self.replica.snapshots(np.array(own, np.int64))))
        names = [each for each in self._tree.names if self._tree.node_of(each) == name]
        body = base_body(Base(self._options.catalog_sql, self._by_commit, pieces, living, notices, names))
        previous, self._last[node] = self._last[node], self._batch
        passed = self.replica.passed
        return Parcel(Kind.BASE, "", name, self._batch, previous, passed, body, answers, is_compulsory=is_compulsory)

    def _split(self, told: NotificationBatch) -> Iterable[tuple[int, NotificationBatch]]:
        """(node, what its subscriptions are told)."""
        if not len(told):
            return
        ids = told.subscriptions().dictionary_encode()
        node_of = np.array([self._number_of(id) for id in ids.dictionary.to_pylist()], np.int64)
        node = node_of[np.asarray(ids.indices)]
        order = np.argsort(node, kind="stable")
        nodes, starts = np.unique(node[order], return_index=True)
        for number, own in zip(nodes.tolist(), np.split(order, starts[1:]), strict=True):
            yield number, told.take(own)

    def dump(self) -> bytes:
        """State for `load`."""
        state: dict[str, Any] = {
            "batch": self._batch,
            "nodes": self._tree.nodes,
            "last": {self._tree.nodes[node]: batch for node, batch in self._last.items()},
            "receive": self._options.receive,
            "catalog": self._options.catalog_sql,
            "bare": sorted(self._bare),
        }
        state["state"] = {"replica": self.replica.dump()} if self._sender is None else self._sender.dump()
        return pack(state)

    def load(self, blob: bytes) -> None:
        """Restores what `dump` gave. Called when the registrar has been loaded.

        Nodes get new bases if places, tables, or what places receive are no longer as they were.
        """
        state = unpack(blob)
        same = ("nodes", self._tree.nodes), ("receive", self._options.receive), ("catalog", self._options.catalog_sql)
        leads_on = all(state[name] == value for name, value in same)
        self._batch = state["batch"]
        self._bare = set(state["bare"]) if leads_on else set(self._own)
        self._last |= {node: state["last"].get(self._tree.nodes[node], 0) for node in self._own}
        if self._sender is None:
            self.replica.load(state["state"]["replica"])
        else:
            self._sender.load(state["state"], knows_holders=leads_on and "may" in state["state"])


_PIECE_BYTES = 16 * 2**20


def _whole(told: NotificationBatch) -> NotificationBatch:
    """As columns that `tidings.model.blob.pack` takes."""
    return told.take(np.arange(len(told)))
