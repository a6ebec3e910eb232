"""A client as a cursor: subscriptions, and up to which seq it has been told of each. Reads the notice log.

What comes out is in order of seq. An event carries a position only where it is safe to resume from it: everything at or before
that seq has been said, for all subscriptions of the cursor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from tidings.model.notification import snapshot_tail
from tidings.model.row_bag import RowBag
from tidings.server.gateway.position import Position
from tidings.server.log.reader import LogReader
from tidings.server.log.segment_layout import Record
from tidings.server.log.view import net

FRAME_BYTES_MAX = 1 << 20
"""Larger notifications are sent in parts."""
BEHIND_BYTES = 1 << 16
"""A client that could not keep up, and for which more than this has gathered, is told the net change."""
_HEAD = b'{"subscription": '
_EXPIRED, _EDITED, _BEHIND, _NEW_EPOCH = "position_expired", "edited", "behind", "new_epoch"


class Event(NamedTuple):
    """kind: snapshot, change, reset, end or progress. data: a JSON object. position: where it is safe to resume, or None."""

    kind: str
    data: bytes
    position: int | None = None


@dataclass
class _Followed:
    number: int
    quoted: bytes
    """The id as JSON, as clients know it."""
    key: Sequence[str]
    after: int
    has_view: bool = False
    reset: str = ""
    """Why the client must begin anew; empty: it need not."""
    is_new: bool = False
    due: float = 0.0
    """When it may be told again, if it wants net changes only now and then."""
    every_seconds: float = 0.0
    waiting: bool = field(default=False)
    """Whether something may have changed that has not been looked at."""


class _Part(msgspec.Struct):
    changes: list[msgspec.Raw]
    seq: int
    snapshot: bool
    tx: str | None = None
    net_from: int | None = None


_parts = msgspec.json.Decoder(_Part).decode


class Cursor:
    """Subscriptions of one connection. behind: what a client that cannot keep up gets: coalesce, every or disconnect."""

    def __init__(self, log: LogReader, *, behind: str = "coalesce") -> None:
        self._log = log
        self._behind = behind
        self._followed: dict[int, _Followed] = {}

    @property
    def gives_up(self) -> bool:
        """Whether a client that cannot keep up is disconnected."""
        return self._behind == "disconnect"

    @property
    def numbers(self) -> list[int]:
        return list(self._followed)

    def __len__(self) -> int:
        return len(self._followed)

    def follow(
        self, number: int, id: str, key: Sequence[str], after: Position | None, every_seconds: float = 0.0
    ) -> None:
        """Begins to follow a subscription: behind a position, or with a snapshot. key: columns that tell its rows apart."""
        entry = _Followed(number, msgspec.json.encode(id), key, self._log.passed)
        entry.every_seconds = every_seconds
        entry.waiting = True
        if after is None:
            entry.is_new = True
        elif after.epoch != self._log.epoch:
            entry.reset = _NEW_EPOCH
        elif after.seq > self._log.passed:
            entry.reset = _EXPIRED
        else:
            entry.after = after.seq
            entry.has_view = True
        self._followed[number] = entry

    def leave(self, number: int) -> None:
        self._followed.pop(number, None)

    def touch(self, numbers: Iterable[int]) -> None:
        """Says that the log may have something new for these."""
        for number in numbers:
            if (entry := self._followed.get(number)) is not None:
                entry.waiting = True

    @property
    def is_whole(self) -> bool:
        """Whether everything has been said that the log has: if not, its last seq is no place to resume from."""
        return not any(entry.waiting for entry in self._followed.values())

    def due(self) -> float | None:
        """When the next net change is due, of subscriptions that wait for one."""
        found = [entry.due for entry in self._followed.values() if entry.waiting and entry.every_seconds]
        return min(found, default=None)

    def read(self, now: float, *, was_blocked: bool = False) -> list[Event]:
        """All there is to say. was_blocked: the client has not taken what it was sent for a while."""
        taken = [entry for entry in self._followed.values() if entry.waiting and entry.due <= now]
        if not taken:
            return []
        told: list[tuple[int, bytes, Event]] = []
        is_whole = len(taken) == sum(entry.waiting for entry in self._followed.values())
        is_net = any(entry.is_new or entry.reset or entry.every_seconds for entry in taken)
        for entry in taken:
            entry.waiting = False
            records = [] if entry.is_new or entry.reset else self._log.since(entry.number, entry.after)
            if records is None:
                entry.reset = _BEHIND if was_blocked else _EXPIRED
                records = []
                is_net = True
            if entry.is_new or entry.reset:
                told += self._anew(entry)
            elif records:
                size = sum(len(record.tail) for record in records)
                must_net = was_blocked and self._behind == "coalesce" and size > BEHIND_BYTES and len(records) > 1
                if (must_net or entry.every_seconds) and len(records) >= 1:
                    is_net = is_net or must_net
                    told += self._net(entry, records)
                else:
                    told += self._each(entry, records)
            if entry.every_seconds:
                entry.due = now + entry.every_seconds
        told.sort(key=lambda item: item[:2])
        # While one of several waits for its net change, no position is safe: what it was not told lies before.
        events, seqs = [event for _, _, event in told], [seq for seq, _, _ in told]
        return _with_positions(events, seqs, self._log.passed, is_net=is_net, is_whole=is_whole)

    def _anew(self, entry: _Followed) -> Iterator[tuple[int, bytes, Event]]:
        """A snapshot as of now."""
        passed = self._log.passed
        if entry.reset:
            yield passed, entry.quoted, _reset(entry.quoted, entry.reset)
        last = self._log.since(entry.number, self._log.head_seq(entry.number) - 1)
        entry.after, entry.is_new, entry.reset, entry.has_view = passed, False, "", True
        if self._log.is_ended(entry.number):
            yield self._end(entry, self._log.head_seq(entry.number))
            return
        if last and last[-1].is_snapshot:
            # As it was told, row for row, with the seq of now.
            tail = b', "seq": %d%b' % (passed, last[-1].tail[last[-1].tail.index(b', "snapshot"') :])
        else:
            bag = self._log.view(entry.number) or RowBag()
            tail = snapshot_tail(passed, [row.decode() for row in bag.rows()]).encode()
        for data in pieces(entry.quoted, tail):
            yield passed, entry.quoted, Event("snapshot", data)

    def _each(self, entry: _Followed, records: list[Record]) -> Iterator[tuple[int, bytes, Event]]:
        for record in records:
            entry.after = record.seq
            if record.is_end:
                yield self._end(entry, record.seq)
                return
            if record.is_snapshot and entry.has_view and not record.is_first:
                yield record.seq, entry.quoted, _reset(entry.quoted, _EDITED)
            entry.has_view = True
            kind = "snapshot" if record.is_snapshot else "change"
            for data in pieces(entry.quoted, record.tail):
                yield record.seq, entry.quoted, Event(kind, data)

    def _net(self, entry: _Followed, records: list[Record]) -> Iterator[tuple[int, bytes, Event]]:
        """The net change since it was told last."""
        last = records[-1]
        if last.is_end:
            entry.after = last.seq
            yield self._end(entry, last.seq)
            return
        if len(records) == 1 and not last.is_snapshot:
            yield from self._each(entry, records)
            return
        before = None if any(record.is_snapshot for record in records) else self._log.view(entry.number, entry.after)
        after = self._log.view(entry.number, last.seq)
        if before is None or after is None:
            is_edited = any(record.is_snapshot and not record.is_first for record in records)
            entry.reset = (_EDITED if is_edited else _BEHIND) if entry.has_view else ""
            yield from self._anew(entry)
            return
        changes = ", ".join(net(before, after, entry.key))
        start, entry.after = entry.after, last.seq
        if changes:
            tail = f', "seq": {last.seq}, "snapshot": false, "net_from": {start}, "changes": [{changes}]}}'
            for data in pieces(entry.quoted, tail.encode()):
                yield last.seq, entry.quoted, Event("change", data)

    def revoked(self) -> list[Event]:
        """The last words to a caller that may read no longer."""
        found = [_end(entry.quoted, self._log.passed, "revoked") for entry in self._followed.values()]
        self._followed.clear()
        return found

    def _end(self, entry: _Followed, seq: int) -> tuple[int, bytes, Event]:
        del self._followed[entry.number]
        return seq, entry.quoted, _end(entry.quoted, seq, "dropped")


def _end(quoted: bytes, seq: int, why: str) -> Event:
    return Event("end", b'{"subscription": %b, "seq": %d, "why": "%b"}' % (quoted, seq, why.encode()))


def _reset(quoted: bytes, why: str) -> Event:
    return Event("reset", b'{"subscription": %b, "why": "%b"}' % (quoted, why.encode()))


def _with_positions(events: list[Event], seqs: list[int], passed: int, *, is_net: bool, is_whole: bool) -> list[Event]:
    """The events with positions where they are safe: behind the last of a seq, and if there are net changes or snapshots
    among them, which each reach over many seqs, behind the last of all."""
    if not events or not is_whole:
        return events
    if is_net:
        return [*events[:-1], events[-1]._replace(position=passed)]
    return [
        event._replace(position=seq) if at + 1 == len(events) or seqs[at + 1] != seq else event
        for at, (event, seq) in enumerate(zip(events, seqs, strict=True))
    ]


def progress(seq: int, *, is_whole: bool) -> Event:
    return Event("progress", b'{"seq": %d}' % seq, seq if is_whole else None)


def pieces(quoted: bytes, tail: bytes) -> list[bytes]:
    """A notification as JSON; in parts, if it is large."""
    if len(tail) <= FRAME_BYTES_MAX:
        return [_HEAD + quoted + tail]
    whole = _parts(_HEAD + quoted + tail)
    groups: list[list[bytes]] = [[]]
    size = 0
    for change in whole.changes:
        text = bytes(change)
        if size and size + len(text) > FRAME_BYTES_MAX - 1024:
            groups.append([])
            size = 0
        groups[-1].append(text)
        size += len(text) + 2
    found = []
    for number, group in enumerate(groups):
        more = b', "more": true' if number + 1 < len(groups) else b""
        extra = b"" if whole.tx is None else b', "tx": ' + msgspec.json.encode(whole.tx)
        extra += b"" if whole.net_from is None else b', "net_from": %d' % whole.net_from
        snapshot = b"true" if whole.snapshot else b"false"
        found.append(
            b'%b%b, "seq": %d%b, "snapshot": %b, "part": %d%b, "changes": [%b]}'
            % (_HEAD, quoted, whole.seq, extra, snapshot, number, more, b", ".join(group))
        )
    return found
