"""The registrar: subscriptions of a stream, created, replaced and dropped by events, each of which is answered.

The registry knows every living subscription by its id: the query, and the seq since which it is told. Creating a subscription
that is there already, with the same query, changes nothing: a front end that starts again may send all its subscriptions once
more. Another query under a taken id is refused, unless the event says that it replaces the one before.

Subscriptions may also be kept in a table with the columns `id` and `sql`: changes of it, as records of changes have them, are
events. An insert creates, an update replaces, a delete drops.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from tidings.model.catalog import Catalog
from tidings.model.errors import RecordError, TidingsError, UsageError
from tidings.model.points import Event, PointBatch
from tidings.pipeline.door import After, Door, Id, rare_collections
from tidings.pipeline.edge.place_tree import PlaceTree

_REGISTERED_BYTES = 400
"""Approximate bytes of a registered subscription, characters of its id and query left out."""


class _Event(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line of the stream of subscription events. It happens when its turn comes; `after` may name a seq that has passed.

    token: a text that the answer repeats.
    """

    id: Id
    sql: str | None = None
    after: After = 0
    drop: bool = False
    replace: bool = False
    option: Literal["net"] | None = None
    place: str | None = None
    token: str = ""


class _Resync(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A gateway or broker that has lost its state asks for all of it."""

    place: str
    resync: Literal[True]


class _Row(msgspec.Struct, gc=False):
    id: Id
    sql: str | None = None
    option: Literal["net"] | None = None
    place: str | None = None


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
        row, is_change = self.row, self.op not in ("insert", "c")
        new = _Event(row.id, sql, replace=is_change, option=row.option, place=row.place)
        return [new] if before == self.row.id else [_Event(before, drop=True), new]


_row_decoder = msgspec.json.Decoder(_RowEvent)
_resync_decoder = msgspec.json.Decoder(_Resync)


class Answer(msgspec.Struct, omit_defaults=True):
    """What became of an event: accepted as of seq, or refused for a reason. partition, offset: where the event came from."""

    partition: str
    offset: int
    id: str | None = None
    event: str = ""
    seq: int | None = None
    refused: str | None = None
    place: str = ""
    """The gateway that has the subscription, or would have it; empty in jobs without gateways."""
    token: str = ""


class _Registered(NamedTuple):
    sql: str
    is_net: bool
    seq: int
    """The subscription is told of changes after this one."""
    form: str
    """Of its first point."""
    place: str = ""


class Registrar:
    """The registry of subscriptions; of those whose id and place `is_own` it gives points and answers.

    Answers broken lines whose offset it `reports`. In a job with gateways (tree) every shard registers all subscriptions, as
    only so each knows which ids are taken; in others each registers its own ones, and places are empty.
    """

    def __init__(
        self,
        catalog: Catalog,
        is_own: Callable[[str, str], bool],
        reports: Callable[[int], bool],
        tree: PlaceTree | None = None,
    ) -> None:
        self._door = Door(catalog)
        self._is_own = is_own
        self._reports = reports
        self._tree = tree
        self._known: dict[str, _Registered] = {}
        self._known_bytes = 0
        self._decoder = msgspec.json.Decoder(_Event)
        self._left: dict[str, str] = {}
        """Places of subscriptions that were dropped since `forget_left`."""
        self.resyncs: list[str] = []
        """Nodes that have asked for all of their state, until somebody takes them."""

    def __len__(self) -> int:
        return len(self._known)

    @property
    def nbytes(self) -> int:
        """Approximate bytes of the registry and of the templates of its queries. Takes no time per subscription."""
        return self._known_bytes + self._door.nbytes

    def place_of(self, id: str) -> str:
        """The place of a subscription that is registered, or was when `forget_left` was called last."""
        known = self._known.get(id)
        return self._left[id] if known is None else known.place

    def query_of(self, id: str) -> tuple[str, str] | None:
        """(SQL, place) of a subscription that is there."""
        known = self._known.get(id)
        return None if known is None else (known.sql, known.place)

    def left(self) -> Iterator[tuple[str, str]]:
        """(id, place) of subscriptions that are at a place no more since `forget_left`."""
        for id, place in self._left.items():
            known = self._known.get(id)
            if known is None or known.place != place:
                yield id, place

    def forget_left(self) -> None:
        """Says that all events so far have happened: nobody asks for subscriptions any more that are not there."""
        if self._left:
            self._left.clear()

    def living(self) -> Iterator[tuple[str, str, str]]:
        """(id, SQL, place) of every subscription of one's own."""
        for id, known in self._known.items():
            if self._is_own(id, known.place):
                yield id, known.sql, known.place

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
                if isinstance(event, _Resync):
                    answer = self._resync(event, Answer(partition, offset, event="resync", seq=passed))
                    if self._reports(offset):
                        yield answer
                    continue
                if self._tree is None and not self._is_own(event.id, ""):
                    continue
                answer = Answer(partition, offset, event.id, "drop" if event.drop else "create", token=event.token)
                self._answer(answer, event, passed)
                if self._tree is None or self._is_own(event.id, answer.place):
                    yield answer

    def _resync(self, event: _Resync, answer: Answer) -> Answer:
        if self._tree is None:
            answer.seq, answer.refused = None, "this job has no gateways"
        elif not self._tree.has(event.place):
            answer.seq, answer.refused = None, f"there is no place {event.place!r}"
        else:
            self.resyncs.append(event.place)
        return answer

    def _answer(self, answer: Answer, event: _Event, passed: int) -> None:
        try:
            if self._tree is not None:
                answer.place = self._place(event)
            if event.after > passed:
                raise RecordError(f"'after' {event.after} has not come yet: events of a stream happen when they come")
            answer.seq = self._drop(event, passed) if event.drop else self._create(event, answer.place, passed)
        except TidingsError as error:
            answer.refused = str(error)

    def _place(self, event: _Event) -> str:
        """Where a subscription is, or is to be: what the event says, else where it is, else a hash of its id."""
        assert self._tree is not None
        known = self._known.get(event.id)
        if known is not None and (event.place is None or event.drop):
            return known.place
        return self._tree.choose(event.id, event.place)

    def _read(self, line: bytes) -> Sequence[_Event | _Resync]:
        try:
            return [self._decoder.decode(line)]
        except msgspec.ValidationError:
            # Nearly every event is in our own format; what is in no other is refused for not being in it.
            for decoder in (_row_decoder, _resync_decoder):
                try:
                    found = decoder.decode(line)
                except msgspec.ValidationError:
                    continue
                return found.events(self._known) if isinstance(found, _RowEvent) else [found]
            raise

    def _create(self, event: _Event, place: str, moment: int) -> int:
        """Returns the seq after which the subscription is told."""
        if event.sql is None:
            raise RecordError("neither 'sql' nor 'drop': true")
        known = self._known.get(event.id)
        is_net = event.option == "net"
        if known is not None and (known.sql, known.is_net, known.place) == (event.sql, is_net, place):
            return known.seq
        if known is not None and not event.replace:
            raise RecordError(
                f"subscription id {event.id!r} is taken by another query; drop it first, "
                'say "replace": true, or choose another id'
            )
        placement = self._door.place(event.sql, is_net=is_net, id=event.id)
        if known is not None:
            self._leave(event.id, known, moment)
        new = self._known[event.id] = _Registered(event.sql, is_net, moment, placement.form, place)
        self._known_bytes += _bytes_of(event.id, new)
        if self._is_own(event.id, place):
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
        if self._tree is not None:
            self._left[id] = known.place
        # Whoever drops needs the id alone. The query is not compiled again: under a catalog that has grown it may fail.
        if self._is_own(id, known.place):
            self._door.gather(Event.DROP, id, moment, self._door.nowhere(known.form))

    def dump(self) -> bytes:
        """The registry, for `load`."""
        return msgspec.msgpack.encode(self._known)

    def load(self, state: bytes) -> None:
        self._known = msgspec.msgpack.decode(state, type=dict[str, _Registered])
        self._known_bytes = sum(_bytes_of(id, known) for id, known in self._known.items())
        if self._tree is not None and (gone := {known.place for known in self._known.values()} - set(self._tree.names)):
            raise UsageError(
                f"the place {min(gone)!r} has subscriptions, and is none of the places of this job: name it, or move them "
                "to another one before"
            )


def _bytes_of(id: str, known: _Registered) -> int:
    return len(id) + len(known.sql) + _REGISTERED_BYTES
