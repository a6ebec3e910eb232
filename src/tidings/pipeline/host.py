"""Hosts the family servers of one shard: a form has one, or shares it with others, made when its first point arrives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidings.families.optional import FamilyServer, Interleaving, Remembering, Replanning
from tidings.families.protocols import Memory, Rows, Server
from tidings.families.registry import family_of, spec_of
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges, runs_of
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import Event, PointBatch


@dataclass
class Sent:
    """What servers have sent: messages of changes, and rows of snapshots."""

    messages: list[MessageBatch] = field(default_factory=list)
    snapshots: list[SnapshotBatch] = field(default_factory=list)

    def extend(self, other: Sent) -> None:
        self.messages.extend(other.messages)
        self.snapshots.extend(other.snapshots)

    def merged(self) -> list[MessageBatch]:
        """One batch of messages per form, or forms, that they are for, axes and columns."""
        alike: dict[tuple[object, ...], list[MessageBatch]] = {}
        for batch in self.messages:
            key = (batch.form, batch.to, batch.axes, batch.target is None, tuple(batch.payload.schema.names))
            alike.setdefault(key, []).append(batch)
        return [MessageBatch.concat(batches) for batches in alike.values()]


class Host:
    """Servers of the forms that points have arrived for."""

    def __init__(self, catalog: Catalog, strategies: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._strategies = strategies
        self._servers: dict[str, Server] = {}
        """By form or, where forms share theirs, by family."""
        self._forms: dict[str, list[str]] = {}
        """The forms of each server."""
        self._tables: dict[str, set[str]] = {}
        """The tables of each server."""
        self._by_table: dict[str, list[Server]] = {}
        self._leaving: list[tuple[Server, PointBatch]] = []

    def remembers(self, table: str) -> bool:
        """Whether any server must see the table's changes again when state is restored from a log."""
        return any(server.memory is Memory.CHANGES for server in self._by_table.get(table, ()))

    def change(self, changes: TableChanges, sent: Sent | None, *, ignores_subscribers: bool) -> None:
        """Passes changes to the servers that ignore who subscribes (Memory.NOTHING), or to the others.

        With `sent` None nothing is sent, and only servers that must remember changes get them.
        """
        for server in self._by_table.get(changes.table, ()):
            if (server.memory is Memory.NOTHING) is not ignores_subscribers:
                continue
            if sent is None and server.memory is not Memory.CHANGES:
                continue
            # Taken whether wanted or not: a server may well be a generator, which does nothing until it is asked.
            messages = list(server.change(changes))
            if sent is not None:
                sent.messages.extend(messages)

    def release(self, points: PointBatch, tables: dict[str, Rows], sent: Sent | None) -> PointBatch:
        """Creates and drops subscriptions in the order of the events; gives the events as the server has placed them.

        With `sent` None without looking for snapshots.
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

    def change_many(self, changes: Sequence[TableChanges], *, is_wanted: bool) -> Iterator[MessageBatch]:
        """The messages for changes of all tables up to some moment; made when they are asked for, and all must be."""
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
        """What servers want to do otherwise from now on."""
        decided = {key: server.decide() for key, server in self._servers.items() if isinstance(server, Replanning)}
        return {key: decision for key, decision in decided.items() if decision is not None}

    def follow(self, decisions: Mapping[str, Any], seq: int) -> Iterator[MessageBatch]:
        for key, decision in decisions.items():
            server = self._servers[key]
            assert isinstance(server, Replanning), f"{type(server).__name__} has decided something, but cannot follow"
            yield from server.follow(decision, seq)

    def recover(self) -> None:
        """Changes have been played again, to restore state."""
        for server in self._servers.values():
            if isinstance(server, Replanning):
                server.recover()

    def settle(self) -> None:
        """The end of a micro-batch: those who have gone are forgotten by servers that were not to notice earlier."""
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
        """The server of a form, which may have to be made, or to hear of more tables."""
        family, form = family_of(form_key)
        key = family.name if family.name in self._servers else form_key
        if key not in self._servers:
            strategy = self._strategies.get(family.name, family.strategies[0])
            server = family.server(form, self._catalog, strategy)
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
