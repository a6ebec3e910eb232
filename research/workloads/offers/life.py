"""The life of offers on a constraint table: they come, change, come back, and are withdrawn or expire.

An offer with `expires` is gone as soon as a change with that sequence number or a later one is applied. Every update and delete
here finds its offer. An id comes back only after the change with which its offer expired, and an update of an offer that
expires says so again: no line depends on what a missing `expires` does to an earlier one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import chain
from typing import Protocol

from tidings.workloads.pool import Pool
from tidings.workloads.publications import publish, withdraw

_UPDATED, _UPSERTED = 0.5, 0.05
"""Share of updates among changes, and share of upserts among inserts and updates."""
_GROWTH = 0.7
"""Share of inserts among the other changes while there are fewer offers than at the start; else it is that of deletes."""
_EXPIRING, _LIFE = 0.4, 4
"""Share of the new offers that expire, and how long they live at most: in changes, by the number of offers at the start."""
_PROLONGED = 0.3
"""Share of the updates of an expiring offer that set another end."""
_COMES_BACK = 0.2
_GAPS, _GAP_MAX = 0.01, 5


class Offer(Protocol):
    @property
    def where(self) -> str: ...

    def changed(self, rng: random.Random) -> Offer:
        """The offer after its next update."""
        ...


class OfferLife:
    """The current offers of a table. `lines` yields changes without end, with some gaps between sequence numbers."""

    def __init__(self, table: str, new: Callable[[random.Random], Offer], offers: int, seed: int) -> None:
        """offers: their number at the start, about which it stays."""
        self._table, self._new, self._size = table, new, offers
        self._rng = random.Random(f"{table} changes {seed}")
        self._seq = 0
        """Of the change that is being made."""
        self._offers: dict[int, Offer] = {}
        self._pool = Pool()
        self._expires: dict[int, int] = {}
        self._expiring: list[tuple[int, int]] = []
        """Heap of (expires, id); an entry that `_expires` does not confirm is out of date."""
        self._gone: list[int] = []
        self._next = 1

    def lines(self) -> Iterator[bytes]:
        return chain(self._fill(), self._live())

    def _fill(self) -> Iterator[bytes]:
        for _ in range(self._size):
            self._advance()
            yield self._insert("insert")

    def _live(self) -> Iterator[bytes]:
        rng = self._rng
        while True:
            self._advance()
            expired = self._expire()
            is_update, share = rng.random() < _UPDATED, rng.random()
            if is_update and self._pool:
                line = self._update()
            elif not self._pool or share < (_GROWTH if len(self._pool) < self._size else 1 - _GROWTH):
                line = self._insert("upsert" if rng.random() < _UPSERTED else "insert")
            else:
                line = self._delete()
            self._gone += expired
            yield line

    def _insert(self, op: str) -> bytes:
        rng = self._rng
        if self._gone and rng.random() < _COMES_BACK:
            at = rng.randrange(len(self._gone))
            self._gone[at], self._gone[-1] = self._gone[-1], self._gone[at]
            id = self._gone.pop()
        else:
            id, self._next = self._next, self._next + 1
        self._pool.add(id)
        return self._put(op, id, self._new(rng), rng.random() < _EXPIRING)

    def _update(self) -> bytes:
        rng, id = self._rng, self._rng.choice(self._pool.ids)
        op = "upsert" if rng.random() < _UPSERTED else "update"
        is_prolonged = rng.random() < _PROLONGED and id in self._expires
        return self._put(op, id, self._offers[id].changed(rng), is_prolonged)

    def _delete(self) -> bytes:
        id = self._rng.choice(self._pool.ids)
        self._pool.remove(id)
        del self._offers[id]
        self._expires.pop(id, None)
        self._gone.append(id)
        return withdraw(self._seq, self._table, f"p{id}")

    def _put(self, op: str, id: int, offer: Offer, has_new_end: bool) -> bytes:
        """has_new_end: whether it is to expire at a new moment; else it expires, or does not, as before."""
        self._offers[id] = offer
        if has_new_end:
            # Not before the table is filled.
            expires = max(self._seq, self._size) + self._rng.randint(1, _LIFE * self._size)
            self._expires[id] = expires
            heappush(self._expiring, (expires, id))
        return publish(self._seq, self._table, op, f"p{id}", offer.where, self._expires.get(id, 0))

    def _expire(self) -> list[int]:
        """Removes the offers that are gone with the change of this number; their ids."""
        found = []
        while self._expiring and self._expiring[0][0] <= self._seq:
            expires, id = heappop(self._expiring)
            if self._expires.get(id) == expires:
                found.append(id)
                self._pool.remove(id)
                del self._offers[id], self._expires[id]
        return found

    def _advance(self) -> None:
        rng = self._rng
        self._seq += 1 + (rng.randint(1, _GAP_MAX) if rng.random() < _GAPS else 0)
