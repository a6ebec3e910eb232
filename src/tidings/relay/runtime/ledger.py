"""Which subscribers have been told of which documents: what is told goes out document by document, and only once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from tidings.relay.errors import RowsError
from tidings.relay.pattern import Row

Told = list[Row] | RowsError
"""What a subscriber is told of a document, or why he is not."""


class Result(NamedTuple):
    """What one subscriber is told of one document."""

    view: str
    document: str
    rows: Told


class Ledger:
    """first: the oldest document that is not finished. next: the number of the next one to be published, from 1."""

    def __init__(self) -> None:
        self.first = self.next = 1
        self._open: dict[int, tuple[str, int, dict[str, Told]]] = {}
        self._finished: deque[tuple[str, dict[str, Told]]] = deque()

    def open(self, name: str, views: int) -> int:
        """Another document, of which so many subscribers are to be told; its number."""
        seq = self.next
        self.next += 1
        self._open[seq] = name, views, {}
        if not views:
            self._advance()
        return seq

    def name(self, seq: int) -> str:
        return self._open[seq][0]

    def tell(self, seq: int, view: str, rows: Told) -> bool:
        """Whether this was what the oldest document waited for. What has been told already is passed over."""
        if seq < self.first:
            return False
        _, views, told = self._open[seq]
        told.setdefault(view, rows)
        return seq == self.first and len(told) == views and self._advance()

    def untold(self, view: str) -> int:
        """The first document of which a subscriber has not been told."""
        for seq in range(self.first, self.next):
            if view not in self._open[seq][2]:
                return seq
        return self.next

    def results(self) -> Iterator[Result]:
        """What has been told of finished documents: by document, then by view; each once."""
        while self._finished:
            name, told = self._finished.popleft()
            for view in sorted(told):
                yield Result(view, name, told[view])

    def _advance(self) -> bool:
        while self.first < self.next:
            name, views, told = self._open[self.first]
            if len(told) < views:
                break
            self._finished.append((name, told))
            del self._open[self.first]
            self.first += 1
        return True
