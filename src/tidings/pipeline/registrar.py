"""The registrar: subscriptions of a stream, created, replaced and dropped by events, each of which is answered.

The registry knows every living subscription by its id: the query, and the seq since which it is told. Creating a subscription
that is there already, with the same query, changes nothing: a front end that starts again may send all its subscriptions once
more. Another query under a taken id is refused, unless the event says that it replaces the one before.

Subscriptions may also be kept in a table with the columns `id` and `sql`: changes of it, as records of changes have them, are
events. An insert creates, an update replaces, a delete drops.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from tidings.model.catalog import Catalog
from tidings.model.errors import RecordError, TidingsError
from tidings.model.points import Event, PointBatch
from tidings.pipeline.door import After, Door, Id, rare_collections

_REGISTERED_BYTES = 400
"""Approximate bytes of a registered subscription, characters of its id and query left out."""


class _Event(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line of the stream of subscription events. It happens when its turn comes; `after` may name a seq that has passed."""

    id: Id
    sql: str | None = None
    after: After = 0
    drop: bool = False
    replace: bool = False
    option: Literal["net"] | None = None


class _Row(msgspec.Struct, gc=False):
    id: Id
    sql: str | None = None
    option: Literal["net"] | None = None


class _Key(msgspec.Struct, gc=False):
    id: Id


class _RowEvent(msgspec.Struct, gc=False):
    """A change of a table of subscriptions. keep: columns that the record leaves out, as they are; old: the key before.

    op: Debezium's ones too; `r` is a row of a first snapshot, or without a row the snapshot's end.
    """

    op: Literal["insert", "update", "upsert", "delete", "truncate", "c", "u", "d", "r"]
    row: _Row | None = None
    keep: list[str] = []
    old: _Key | None = None

    def events(self, known: Mapping[str, _Registered]) -> list[_Event]:
        """The events that the change stands for. Those of subscriptions that are not `known` may lack the query."""
        if self.op == "truncate":
            return [_Event(id, drop=True) for id in known]
        if self.row is None and self.op == "r":
            return []
        if self.row is None:
            raise RecordError("the change has no 'row'")
        before = self.row.id if self.old is None else self.old.id
        if self.op in ("delete", "d"):
            return [_Event(before, drop=True)]
        is_kept = self.row.sql is None and "sql" in self.keep and before in known
        sql = known[before].sql if is_kept else self.row.sql
        new = _Event(self.row.id, sql, replace=self.op not in ("insert", "c"), option=self.row.option)
        return [new] if before == self.row.id else [_Event(before, drop=True), new]


_row_decoder = msgspec.json.Decoder(_RowEvent)


class Answer(msgspec.Struct, omit_defaults=True):
    """What became of an event: accepted as of seq, or refused for a reason. partition, offset: where the event came from."""

    partition: str
    offset: int
    id: str | None = None
    event: str = ""
    seq: int | None = None
    refused: str | None = None


class _Registered(NamedTuple):
    sql: str
    is_net: bool
    seq: int
    """The subscription is told of changes after this one."""
    form: str
    """Of its first point."""


class Registrar:
    """The registry of those subscriptions whose id `is_own`. Answers broken lines whose offset it `reports`."""

    def __init__(self, catalog: Catalog, is_own: Callable[[str], bool], reports: Callable[[int], bool]) -> None:
        self._door = Door(catalog, needs_evaluator=True)
        self._is_own = is_own
        self._reports = reports
        self._known: dict[str, _Registered] = {}
        self._known_bytes = 0
        self._decoder = msgspec.json.Decoder(_Event)

    def __len__(self) -> int:
        return len(self._known)

    @property
    def nbytes(self) -> int:
        """Approximate bytes of the registry and of the templates of its queries. Takes no time per subscription."""
        return self._known_bytes + self._door.nbytes

    def handle(self, lines: Iterable[tuple[str, int, bytes]], passed: int) -> tuple[list[PointBatch], list[Answer]]:
        """Handles events, given as (partition, offset, line), in this order, when all changes up to seq `passed` are in."""
        self._door.forget(passed)
        with rare_collections():
            answers = list(self._answers(lines, passed))
        return self._door.take(), answers

    def _answers(self, lines: Iterable[tuple[str, int, bytes]], passed: int) -> Iterator[Answer]:
        for partition, offset, line in lines:
            if not line or line.isspace():
                continue
            try:
                events = self._read(line.removeprefix(BOM_UTF8))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, RecordError) as error:
                if self._reports(offset):
                    yield Answer(partition, offset, refused=f"not a usable subscription event: {error}")
                continue
            for event in events:
                if self._is_own(event.id):
                    yield self._answer(
                        Answer(partition, offset, event.id, "drop" if event.drop else "create"), event, passed
                    )

    def _answer(self, answer: Answer, event: _Event, passed: int) -> Answer:
        try:
            if event.after > passed:
                raise RecordError(f"'after' {event.after} has not come yet: events of a stream happen when they come")
            answer.seq = self._drop(event, passed) if event.drop else self._create(event, passed)
        except TidingsError as error:
            answer.refused = str(error)
        return answer

    def _read(self, line: bytes) -> list[_Event]:
        try:
            return [self._decoder.decode(line)]
        except msgspec.ValidationError:
            # Nearly every event is in our own format; what is in neither is refused for not being in it.
            try:
                change = _row_decoder.decode(line)
            except msgspec.ValidationError:
                change = None
            if change is None:
                raise
            return change.events(self._known)

    def _create(self, event: _Event, moment: int) -> int:
        """Returns the seq after which the subscription is told."""
        if event.sql is None:
            raise RecordError("neither 'sql' nor 'drop': true")
        known = self._known.get(event.id)
        is_net = event.option == "net"
        if known is not None and (known.sql, known.is_net) == (event.sql, is_net):
            return known.seq
        if known is not None and not event.replace:
            raise RecordError(
                f"subscription id {event.id!r} is taken by another query; drop it first, "
                'say "replace": true, or choose another id'
            )
        placement = self._door.place(event.sql, is_net=is_net, id=event.id)
        if known is not None:
            self._leave(event.id, known, moment)
        new = self._known[event.id] = _Registered(event.sql, is_net, moment, placement.form)
        self._known_bytes += _bytes_of(event.id, new)
        self._door.gather(Event.CREATE, event.id, moment, placement)
        return moment

    def _drop(self, event: _Event, moment: int) -> int:
        """Returns the last seq that the subscription is told of."""
        if event.sql is not None or event.option is not None or event.replace:
            raise RecordError("a drop carries no 'sql', no 'option' and no 'replace'")
        known = self._known.get(event.id)
        if known is None:
            raise RecordError(f"there is no subscription {event.id!r} to drop")
        self._leave(event.id, known, moment)
        return moment

    def expel(self, id: str) -> None:
        """Forgets a subscription that the replica has dropped because it could not be evaluated."""
        known = self._known.pop(id, None)
        if known is not None:
            self._known_bytes -= _bytes_of(id, known)

    def _leave(self, id: str, known: _Registered, moment: int) -> None:
        del self._known[id]
        self._known_bytes -= _bytes_of(id, known)
        # Whoever drops needs the id alone. The query is not compiled again: under a catalog that has grown it may fail.
        self._door.gather(Event.DROP, id, moment, self._door.nowhere(known.form))

    def dump(self) -> bytes:
        """The registry, for `load`."""
        return msgspec.msgpack.encode(self._known)

    def load(self, state: bytes) -> None:
        self._known = msgspec.msgpack.decode(state, type=dict[str, _Registered])
        self._known_bytes = sum(_bytes_of(id, known) for id, known in self._known.items())


def _bytes_of(id: str, known: _Registered) -> int:
    return len(id) + len(known.sql) + _REGISTERED_BYTES
