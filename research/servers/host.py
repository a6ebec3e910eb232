"""Hosts the family servers of one shard. A form's server is made at its first subscription; a family's forms may share it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from research.servers.changes import runs_of
from research.servers.forms import spec_of
from research.servers.message import MessageBatch, SnapshotBatch
from research.servers.protocols import (
    ColumnarRows,
    FamilyServer,
    Interleaving,
    Memory,
    Moving,
    Remembering,
    Replanning,
    Server,
)
from research.strategies.servers import LOOSE, SERVERS
from tidings.families.registry import family_of
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.points import Event, PointBatch


@dataclass
class Sent:
    """Output of servers: messages about changes, and rows of snapshots."""

    messages: list[MessageBatch] = field(default_factory=list)
    snapshots: list[SnapshotBatch] = field(default_factory=list)

    def extend(self, other: Sent) -> None:
        self.messages.extend(other.messages)
        self.snapshots.extend(other.snapshots)

    def merged(self) -> list[MessageBatch]:
        """The messages with batches joined that agree in form, receivers (`to`), axes, payload columns and in being unicast."""
        alike: dict[tuple[object, ...], list[MessageBatch]] = {}
        for batch in self.messages:
            key = (batch.form, batch.to, batch.axes, batch.target is None, tuple(batch.payload.schema.names))
            alike.setdefault(key, []).append(batch)
        return [MessageBatch.concat(batches) for batches in alike.values()]


class Host:
    """The servers of one shard, and which forms and tables each of them serves."""

    def __init__(self, catalog: Catalog, strategies: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._strategies = strategies
        self._servers: dict[str, Server] = {}
        """Form key -> server, or family name -> server where all forms of a family share one (`FamilyServer`)."""
        self._forms: dict[str, list[str]] = {}
        """Key of a server -> its forms."""
        self._tables: dict[str, set[str]] = {}
        """Key of a server -> its tables."""
        self._by_table: dict[str, list[Server]] = {}
        self._leaving: list[tuple[Server, PointBatch]] = []

    def remembers(self, table: str) -> bool:
        """Whether a server of the table has Memory.CHANGES, so that a log replay must pass it the table's changes."""
        return any(server.memory is Memory.CHANGES for server in self._by_table.get(table, ()))

    def change(self, changes: TableChanges, sent: Sent | None, *, ignores_subscribers: bool) -> None:
        """Passes changes to the table's servers with Memory.NOTHING (`ignores_subscribers`), or to all its other servers.

        Messages are added to `sent`. None means a log replay: only servers with Memory.CHANGES get the changes.
        """
        for server in self._by_table.get(changes.table, ()):
            if (server.memory is Memory.NOTHING) is not ignores_subscribers:
                continue
            if sent is None and server.memory is not Memory.CHANGES:
                continue
            # Consumed even if nothing is sent: `change` may be a generator, which does its work only when it is consumed.
            messages = list(server.change(changes))
            if sent is not None:
                sent.messages.extend(messages)

    def release(self, points: PointBatch, tables: dict[str, ColumnarRows], sent: Sent | None) -> PointBatch:
        """Creates and drops subscriptions in the order of the events. Returns the events with the server's coordinates.

        Rows of snapshots are added to `sent`; with None (log replay) none are looked for.
        """
        server = self._server(points.form)
        placed = []
        for event, run in points.runs():
            if event is Event.DROP:
                if server.memory is Memory.NOTHING:
                    self._leaving.append((server, run))
                else:
                    server.drop(run)
                placed.append(run)
                continue
            created = server.create(run, tables, wants_snapshots=sent is not None)
            placed.append(created.points)
            if sent is not None:
                sent.snapshots.extend(created.snapshots)
        return PointBatch.concat(placed)

    def moved(self, form_key: str) -> PointBatch | None:
        """What the last creations on a form have moved (`Moving.moved`)."""
        server = self._server(form_key)
        return server.moved() if isinstance(server, Moving) else None

    def change_many(self, changes: Sequence[TableChanges], *, is_wanted: bool) -> Iterator[MessageBatch]:
        """Passes changes of all tables to all servers; yields their messages. Lazy: the caller must consume all of them.

        Not `is_wanted`: a log replay, only servers with Memory.CHANGES get the changes.
        """
        for key, server in self._servers.items():
            own = [batch for batch in changes if batch.table in self._tables[key]]
            if not own or not (is_wanted or server.memory is Memory.CHANGES):
                continue
            if isinstance(server, Interleaving):
                yield from server.change_many(own)
            else:
                for run in runs_of(own):
                    yield from server.change(run)

    def decide(self) -> dict[str, Any]:
        """Key of a server -> plan change that it asks for (`Replanning.decide`). Called once per micro-batch."""
        decided = {key: server.decide() for key, server in self._servers.items() if isinstance(server, Replanning)}
        return {key: decision for key, decision in decided.items() if decision is not None}

    def follow(self, decisions: Mapping[str, Any], seq: int) -> Iterator[MessageBatch]:
        for key, decision in decisions.items():
            server = self._servers[key]
            assert isinstance(server, Replanning), f"{type(server).__name__} has decided something, but cannot follow"
            yield from server.follow(decision, seq)

    def recover(self) -> None:
        """Tells servers that a log replay is over (`Replanning.recover`)."""
        for server in self._servers.values():
            if isinstance(server, Replanning):
                server.recover()

    def settle(self) -> None:
        """Ends a micro-batch: servers with Memory.NOTHING now drop the subscriptions that were dropped during it."""
        for server, points in self._leaving:
            server.drop(points)
        self._leaving.clear()

    def dump(self) -> dict[str, Any]:
        states = {key: server.dump() for key, server in self._servers.items() if isinstance(server, Remembering)}
        return {key: {"forms": self._forms[key], "state": states.get(key)} for key in self._servers}

    def load(self, state: dict[str, Any]) -> None:
        for key, value in state.items():
            for form_key in value["forms"]:
                self._server(form_key)
            server = self._servers[key]
            if isinstance(server, Remembering):
                server.load(value["state"])

    def _server(self, form_key: str) -> Server:
        """The server of a form. Made if there is none; a shared server is registered for the tables that are new to it."""
        family, form = family_of(form_key)
        key = family.name if family.name in self._servers else form_key
        if key not in self._servers:
            known = SERVERS[family.name] | LOOSE.get(family.name, {})
            strategy = self._strategies.get(family.name, next(iter(known)))
            server = known[strategy](form, self._catalog)
            key = family.name if isinstance(server, FamilyServer) else form_key
            self._servers[key] = server
        if form_key not in self._forms.setdefault(key, []):
            self._forms[key].append(form_key)
            tables = self._tables.setdefault(key, set())
            for table in spec_of(form_key, self._catalog).tables:
                if table not in tables:
                    tables.add(table)
                    self._by_table.setdefault(table, []).append(self._servers[key])
        return self._servers[key]
