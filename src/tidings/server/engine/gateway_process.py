"""The engine process of a gateway: parcels of a job in, notifications of one place's subscriptions into the notice log.

Subscriptions that are created or dropped here are asked for at the job, which answers in the parcels.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tidings.edge import Arrived, ParcelReader, open_reader
from tidings.edge.gateway import DurableGateway
from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.model.notification import NotificationBatch
from tidings.model.text_column import TextColumn
from tidings.pipeline.edge.dispatch import NOTICES, ROWS
from tidings.pipeline.edge.gateway import Taken
from tidings.pipeline.edge.wire import Parcel, Query
from tidings.pipeline.registrar import Answer
from tidings.pipeline.warm import STEPS, warm
from tidings.server.auth import DEFAULT_TENANT
from tidings.server.engine.connection import Sender, main
from tidings.server.engine.frames import Changes, Events, Mirrored, Result, Settings, Step
from tidings.server.engine.inbox import Inbox
from tidings.server.engine.telling import Teller, expelled
from tidings.server.garbage import Collector
from tidings.terminal import compile_kernels

_WAIT_SECONDS = 0.02
"""So long requests wait for parcels, and parcels for nobody."""
_CATCH_UP_SECONDS = 2.0
_PREFIX = f"{DEFAULT_TENANT}/"


def _serve(settings: Settings, inbox: Inbox, send: Sender) -> None:
    endpoint = Endpoint.parse(settings.feed, settings.feed_options)
    with closing(open_reader(endpoint, settings.place)) as reader, reader.alone():
        compile_kernels(STEPS, lambda text: send(Step(text)))
        warm()
        with closing(_Host(settings, reader, send)) as host:
            host.begin()
            garbage = Collector()
            while not inbox.is_closed:
                host.step(inbox)
                garbage.tick(time.monotonic())


class _Host:
    """The gateway, its log, and those who wait for answers of the job."""

    def __init__(self, settings: Settings, reader: ParcelReader, send: Sender) -> None:
        self._settings, self._reader, self._send = settings, reader, send
        self._teller = Teller(settings, send)
        self._held = DurableGateway(Path(settings.data) / "place", settings.place, self._teller.sync)
        self._life = secrets.token_hex(4)
        self._waiting: dict[str, tuple[int, int]] = {}
        """(token of the request, number of the event) of events that have no answer, by their own tokens."""
        self._answers: dict[int, list[tuple[int | None, str] | None]] = {}
        """Answers so far to each request."""
        self._is_ready = False
        self._catalog_sql = ""

    def close(self) -> None:
        self._teller.close()

    def begin(self) -> None:
        """Goes on where the life before stopped; one that is new begins with the newest base there is."""
        if self._held.position is None:
            self._send(Step(f"waiting for the job to send to the place {self._settings.place!r}"))
            self._held.seek(self._reader)
        # What clients were told of in the life before is here again before they come.
        while self._held.gateway.batch < self._teller.batch:
            arrived = self._reader.read(self._held.position, _CATCH_UP_SECONDS)
            if not arrived:
                break
            self._take(arrived)
        if self._held.gateway.catalog_sql and not self._is_ready:
            self._be_ready()

    def step(self, inbox: Inbox) -> None:
        if inbox.wait(0.0):
            results = [result for request in inbox.take().requests if (result := self._ask(request)) is not None]
            if results:
                self._send(self._teller.done(results, {}, 0.0, []))
        arrived = self._reader.read(self._held.position, _WAIT_SECONDS)
        self._take(arrived)
        if self._held.gateway.needs_base and not arrived:
            self._held.ask_for_base(self._reader, lambda text: self._send(Step(text)))
        self._held.settle(is_idle=not arrived)
        self._teller.retain()

    # Downwards

    def _take(self, arrived: Sequence[Arrived]) -> None:
        """Takes parcels. What several of them tell is one block of the log, if nothing else happens between them."""
        plain: list[tuple[Parcel, Taken]] = []
        for each in arrived:
            parcel, taken = self._held.take(each, self._teller.batch)
            if taken is None:
                continue
            if taken.ended or taken.created or taken.answers or taken.is_whole:
                self._tell(plain)
                self._tell([(parcel, taken)])
                plain = []
            else:
                plain.append((parcel, taken))
        self._tell(plain)

    def _tell(self, group: Sequence[tuple[Parcel, Taken]]) -> None:
        if not group or group[-1][0].batch <= self._teller.batch:
            # What is in the log already was told in the life before.
            return
        began = time.monotonic()
        parcel, taken = group[-1]
        self._check_kind()
        told, gateway = _named(NotificationBatch.merge([each.told for _, each in group])), self._held.gateway
        ended = [(_engine_id(id), parcel.passed) for id in taken.ended]
        self._teller.tell(parcel.batch, parcel.passed, told, ended)
        if not self._is_ready:
            self._be_ready()
        results = [result for answer in taken.answers if (result := self._answered(answer)) is not None]
        counts = {"notifications_all": len(told), "subscriptions": len(gateway.queries), "rows": gateway.rows}
        refused = [(_engine_id(id), reason) for id, reason in expelled(taken.answers)]
        seconds = time.monotonic() - began
        self._send(self._teller.done(results, counts, seconds, refused, self._mirrored(parcel, taken)))

    def _check_kind(self) -> None:
        receives = ROWS if self._held.gateway.has_rows else NOTICES
        if self._settings.receive not in ("", receives):
            raise UsageError(
                f"the job sends {receives} to its gateways, and this one is to receive {self._settings.receive}: start the "
                f"job with --sink-option receive={self._settings.receive}, or the gateway with --receive {receives}"
            )

    def _mirrored(self, parcel: Parcel, taken: Taken) -> Mirrored | None:
        sql, gateway = "", self._held.gateway
        if gateway.catalog_sql != self._catalog_sql:
            sql = self._catalog_sql = gateway.catalog_sql
        if not (taken.created or taken.ended or taken.is_whole or sql):
            return None
        created = [_entry(query, parcel.passed) for query in taken.created]
        return Mirrored(created, list(map(_engine_id, taken.ended)), taken.is_whole, sql)

    def _be_ready(self) -> None:
        """Reports all subscriptions: whoever mirrors them may lack some of the life before."""
        gateway = self._held.gateway
        self._is_ready = True
        self._catalog_sql = gateway.catalog_sql
        # One that has missed something knows not all of them; they come with the base that it asks for.
        is_whole = gateway.batch >= self._teller.batch and not gateway.needs_base
        created = [_entry(query, gateway.passed) for query in gateway.queries.values()] if is_whole else []
        mirrored = Mirrored(created, [], is_whole, gateway.catalog_sql)
        self._send(self._teller.done([], {}, 0.0, [], mirrored))

    # Upwards

    def _ask(self, request: Changes | Events) -> Result | None:
        """Passes a request on. Gives its result, if it has one already."""
        if isinstance(request, Changes):
            return Result(request.token, failed="changes go to the source of the job, not to a gateway")
        names = [f"{self._life}/{request.token}/{number}" for number in range(len(request.lines))]
        lines = [self._event(line, name) for line, name in zip(request.lines, names, strict=True)]
        self._waiting |= {name: (request.token, number) for number, name in enumerate(names)}
        self._answers[request.token] = [None] * len(names)
        try:
            self._reader.ask(lines)
        except UsageError as error:
            for name in names:
                del self._waiting[name]
            del self._answers[request.token]
            return Result(request.token, failed=f"the job cannot be asked: {error}")
        return None

    def _event(self, line: bytes, token: str) -> bytes:
        event: dict[str, Any] = msgspec.json.decode(line)
        return msgspec.json.encode(
            {**event, "id": event["id"].removeprefix(_PREFIX), "place": self._settings.place, "token": token}
        )

    def _answered(self, answer: Answer) -> Result | None:
        """The result of the request of which this was the last answer."""
        if answer.token not in self._waiting:
            return None
        token, number = self._waiting.pop(answer.token)
        own = self._answers[token]
        own[number] = (answer.seq if answer.refused is None else None, answer.refused or "")
        if any(each is None for each in own):
            return None
        del self._answers[token]
        return Result(token, answers=[each for each in own if each is not None])


def _engine_id(id: str) -> str:
    """Ids at the job that name no tenant are those of the default one."""
    return id if "/" in id else _PREFIX + id


def _entry(query: Query, seq: int) -> tuple[str, str, int]:
    return _engine_id(query.id), query.sql, seq


def _named(told: NotificationBatch) -> NotificationBatch:
    """With engine ids."""
    quoted = told.ids.arrow()
    has_tenant = pc.match_substring(quoted, "/")
    if len(told) and not pc.all(has_tenant).as_py():
        head, end, nothing = (pa.scalar(text, pa.large_binary()) for text in (f'"{_PREFIX}', '"', ""))
        renamed = pc.binary_join_element_wise(head, pc.binary_slice(quoted, 1, -1), end, nothing)
        told.ids = TextColumn.of(pc.if_else(has_tenant, quoted, renamed))
    return told


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), _serve))
