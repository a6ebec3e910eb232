"""Base class of the join servers that hold rows: relations, and the subscriptions of one or more forms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch, SnapshotBatch
from research.servers.protocols import ColumnarRows, Created, Memory, Remembering, Server
from research.strategies.join.relations.graph import JoinGraph
from research.strategies.join.relations.store import RelationChange, RelationStore
from research.strategies.join.relations.tombstones import NEVER
from research.strategies.join.semijoin.decomposition import Filters
from research.strategies.join.space import Space, space_of
from tidings.families.spec import Form
from tidings.kernels.arrays import covering
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.codes import Int64Array
from tidings.model.points import PointBatch


@dataclass(eq=False)
class Member:
    """A form that a server has subscriptions of."""

    graph: JoinGraph
    filters: list[Filters]
    """[sides]: the neighbours that filter the side."""

    @property
    def space(self) -> Space:
        return self.graph.space


class Subscribers:
    """Ids and points of all subscriptions of a server, by slot.

    An id may be in several forms at once, if a subscription is dropped and created with another query at one seq.
    """

    def __init__(self) -> None:
        self._slots: dict[str, dict[str, int]] = {}
        self._ids: list[str] = []
        self._free: list[int] = []
        self._coords = np.empty((0, 0), np.int64)
        """[slots, axes], as wide as the form with the most axes."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, form: str, ids: list[str], coords: Int64Array) -> Int64Array:
        """Adds points of a form. Returns their slots."""
        reused = [self._free.pop() for _ in range(min(len(ids), len(self._free)))]
        slots = np.array([*reused, *range(len(self._ids), len(self._ids) + len(ids) - len(reused))], np.int64)
        self._ids.extend([""] * (len(ids) - len(reused)))
        for slot, id in zip(slots.tolist(), ids, strict=True):
            self._ids[slot] = id
        self._slots.setdefault(form, {}).update(zip(ids, slots.tolist(), strict=True))
        self._count += len(ids)
        wider = max(0, coords.shape[1] - self._coords.shape[1])
        self._coords = covering(self._coords, len(self._ids) - 1)
        if wider:
            self._coords = np.pad(self._coords, ((0, 0), (0, wider)))
        self._coords[slots, : coords.shape[1]] = coords
        return slots

    def remove(self, points: PointBatch) -> Int64Array:
        """Removes points. Returns the slots they had."""
        of = self._slots[points.form]
        slots = np.array([of.pop(id) for id in points.id.to_pylist()], np.int64)
        self._free.extend(slots.tolist())
        self._count -= len(slots)
        return slots

    def count(self, form: str) -> int:
        return len(self._slots.get(form, ()))

    def slots(self, form: str) -> Int64Array:
        """Slots of all points of a form."""
        of = self._slots.get(form, {})
        return np.fromiter(of.values(), np.int64, len(of))

    def coords(self, slots: Int64Array, dims: int) -> Int64Array:
        # Before the first subscription the array is narrower.
        return self._coords[slots, :dims] if len(slots) else np.empty((0, dims), np.int64)

    def ids(self, slots: Int64Array) -> list[str]:
        return [self._ids[slot] for slot in slots.tolist()]

    def some(self, form: str, dims: int, count: int) -> Int64Array:
        """Coordinates of about `count` points of a form, evenly sampled."""
        slots = self.slots(form)
        return self.coords(slots[:: max(1, len(slots) // count)], dims)

    def dump(self, form: str, dims: int) -> Any:
        ids = pa.array(list(self._slots.get(form, ())), pa.string())
        return {"id": ids, "coords": self.coords(self.slots(form), dims)}


class JoinServer(Server, Remembering):
    """Holds the rows of all tables of its forms, and the points of all subscriptions."""

    memory = Memory.CHANGES

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._store = RelationStore()
        self.members: dict[str, Member] = {}
        self.subscribers = Subscribers()
        self._sure_since = NEVER
        """Clock of the store: it is known who was sent rows that arrived later; any subscription may hold older rows."""

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        for change in self._store.change(changes):
            if len(self.subscribers):
                yield from self._messages(change)

    def see(self, changes: TableChanges) -> None:
        """Applies changes without sending messages."""
        self._store.change(changes)

    def create(self, points: PointBatch, tables: Mapping[str, ColumnarRows], *, wants_snapshots: bool) -> Created:
        member = self.admit(points.form, tables)
        self._listen(member, self.subscribers.add(points.form, points.id.to_pylist(), points.coords))
        return Created(points, list(self._first_rows(member, points)) if wants_snapshots else [])

    def drop(self, points: PointBatch) -> None:
        self._leave(self.members[points.form], self.subscribers.remove(points))

    def admit(self, form: str, tables: Mapping[str, ColumnarRows]) -> Member:
        """The member of a form, made at its first subscription. tables: current rows."""
        if form not in self.members:
            graph = self._store.graph(space_of(Form.from_key(form), self._catalog), tables)
            self.members[form] = Member(graph, graph.default_filters())
            self._welcome(self.members[form])
        return self.members[form]

    @abstractmethod
    def _messages(self, change: RelationChange) -> Iterator[MessageBatch]:
        """Messages for changes that a relation has applied."""

    @abstractmethod
    def _welcome(self, member: Member) -> None:
        """Called for a new form."""

    @abstractmethod
    def _listen(self, member: Member, slots: Int64Array) -> None:
        """Called for new subscriptions."""

    @abstractmethod
    def _leave(self, member: Member, slots: Int64Array) -> None:
        """Called for subscriptions that are dropped."""

    @abstractmethod
    def _first_rows(self, member: Member, points: PointBatch) -> Iterator[SnapshotBatch]:
        """Snapshot rows of new subscriptions."""

    def dump(self) -> Any:
        rows = [relation.rows(relation.current()) for relation in self._store.relations.values()]
        members = [
            {"form": form, "filters": member.filters, "points": self.subscribers.dump(form, member.space.dims)}
            for form, member in self.members.items()
        ]
        return {"members": members, "rows": rows}

    def load(self, state: Any) -> None:
        for known in state["members"]:
            member = self.admit(known["form"], {})
            self.refilter(member, [tuple(some) for some in known["filters"]])
        # Relations are in the order in which forms requested them, the same as in `dump`.
        for wanted, rows in zip(list(self._store.relations), state["rows"], strict=True):
            self._store.fill(wanted, rows)
        for known in state["members"]:
            points = known["points"]
            slots = self.subscribers.add(known["form"], points["id"].to_pylist(), points["coords"])
            self._listen(self.members[known["form"]], slots)
        self.recover()

    def recover(self) -> None:
        """From now on assumes that any subscription may hold any present row."""
        self._store.clock += 1
        self._sure_since = self._store.clock

    def refilter(self, member: Member, filters: list[Filters]) -> None:
        """Replaces the filters of a form. filters: [sides]."""
        member.filters = filters
        self.recover()
