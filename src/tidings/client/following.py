"""A followed stream, without I/O: which events are new, and from where to go on when the connection breaks.

The service puts a position (`id`) only on events behind which resuming is safe. After a reconnect, events beyond the last
position come again. Seqs of one subscription only grow, so what is at or below the last one it had is a repeat:

    connection 1    a 11 (id 11)    a 12    b 12 | cut, before the id of 12
    connection 2    behind 11:      a 12    b 12 (id 12)    b 13 (id 13)
    given out       a 11            a 12    b 12            b 13

Seqs are compared with two exceptions. A `reset` (but for an edit, which has a seq of its own) says that the service does not
know what this client had: the snapshot behind it counts, whatever its seq. And without any position to resume from, each
subscription begins with a snapshot again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from tidings.client.sse import ServerEvent


class _Data(msgspec.Struct):
    """What must be known of an event to place it; rows are left to others."""

    subscription: str = ""
    seq: int = 0
    snapshot: bool = False
    part: int | None = None
    more: bool = False
    net_from: int | None = None
    why: str = ""


_decode = msgspec.json.Decoder(_Data).decode


class Told(NamedTuple):
    """A notification that is new. lines: as received; several if it came in parts. position: where to resume behind it."""

    subscription: str
    seq: int
    snapshot: bool
    lines: list[str]
    position: str | None


class Following:
    """State of a stream of some subscriptions. Call `opened` for each new connection, then `take` for each of its events.

    after: a position to begin behind; None: each subscription begins with a snapshot.
    """

    def __init__(self, ids: Iterable[str], after: str | None = None) -> None:
        self.ids = list(dict.fromkeys(ids))
        """Subscriptions that have not ended."""
        self.position = after
        """The last position behind which it is safe to resume."""
        self.passed = 0
        """Everything up to this seq has been given out."""
        self.ended: dict[str, str] = {}
        """Why subscriptions have ended: dropped or revoked."""
        self.is_torn = False
        """The connection is of no more use: open another one."""
        self._had: dict[str, int] = {}
        self._awaited: set[str] = set()
        self._parts: dict[str, list[str]] = {}

    @property
    def is_over(self) -> bool:
        """Whether all subscriptions have ended."""
        return not self.ids

    @property
    def query(self) -> tuple[tuple[str, str], ...]:
        """Parameters of the request that opens the stream."""
        return tuple(("subscription", id) for id in self.ids)

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the request that opens the stream."""
        resumed = {} if self.position is None else {"last-event-id": self.position}
        return {"accept": "text/event-stream", "cache-control": "no-store", **resumed}

    def opened(self) -> None:
        """A connection begins: it repeats what was under way, from its first part on."""
        self.is_torn = False
        self._parts.clear()
        self._awaited = set(self.ids) if self.position is None else set()

    def forget_position(self) -> None:
        """The service cannot resume: the next connection begins with snapshots."""
        self.position = None

    def take(self, event: ServerEvent) -> Told | None:
        """What an event tells that was not told before; None if nothing."""
        if self.is_torn:
            return None
        if event.name in ("snapshot", "change"):
            found = self._tell(event, _decode(event.data))
        else:
            found = None
            self._note(event)
        if event.id and not self.is_torn:
            self.position = event.id
            self.passed = max(self.passed, _seq_of(event.id))
            found = found and found._replace(position=event.id)
        return found

    def _note(self, event: ServerEvent) -> None:
        if event.name == "progress":
            self.passed = max(self.passed, _decode(event.data).seq)
        elif event.name == "reset":
            data = _decode(event.data)
            if data.why != "edited":
                self._had.pop(data.subscription, None)
                self._awaited.add(data.subscription)
            if data.why == "new_epoch":
                self.passed = 0
        elif event.name == "end":
            data = _decode(event.data)
            if data.subscription in self.ids:
                self.ids.remove(data.subscription)
                self.ended[data.subscription] = data.why

    def _tell(self, event: ServerEvent, data: _Data) -> Told | None:
        id = data.subscription
        if id not in self.ids:
            return None
        if not data.part:
            self._parts.pop(id, None)
        if data.more:
            self._parts.setdefault(id, []).append(event.data)
            return None
        lines = [*self._parts.pop(id, []), event.data]
        had = self._had.get(id)
        if data.snapshot and id in self._awaited:
            self._awaited.discard(id)
            is_new = data.seq != had
        else:
            is_new = had is None or data.seq > had
            if is_new and had is not None and data.net_from is not None and data.net_from < had:
                # A net change from before what this client has: it cannot be added to that. Rare: a reconnect in the
                # middle of a seq, to a service that had gathered more meanwhile.
                self.is_torn = True
                self.forget_position()
                return None
        if not is_new:
            return None
        self._had[id] = data.seq
        return Told(id, data.seq, data.snapshot, lines, self.position)


def _seq_of(position: str) -> int:
    seq = position.rpartition("-")[2]
    return int(seq) if seq.isascii() and seq.isdigit() else 0
