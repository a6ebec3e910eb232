"""Which rows go by themselves: rows of tables of constraints may expire at a seq, or at a time.

The log is the clock. When a record with seq s is applied, rows that expire at s or before are gone; so are those that expire at
a time which a record of a table of constraints has said (`time`) it is. They go just before the record, with its seq.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from tidings.model.change import SEQ_MAX, Op

Key = tuple[str, str]
"""(table, id) of a row."""
Publication = tuple[str, tuple[Any, ...]]
"""(table, values) of a record of a table of constraints."""
EXPIRES, UNTIL, TIME = 3, 4, 5
"""Places of these columns in a row of constraints."""

_EPOCH = dt.datetime(1970, 1, 1)


class Expiry:
    """The rows that will expire. Its memory is bounded by their number."""

    def __init__(self) -> None:
        self._moments: dict[Key, tuple[bool, int]] = {}
        """Row -> (whether by time, seq or microseconds)."""
        self._queues: tuple[list[tuple[int, Key]], list[tuple[int, Key]]] = ([], [])
        """Heaps by seq and by time; entries of rows that have gone or changed since are left in them for a while."""
        self.now = -(2**63)
        """The latest time that a record has said, in microseconds."""

    def __len__(self) -> int:
        return len(self._moments)

    @property
    def next_seq(self) -> int:
        """No row expires by a record below this seq which says no time."""
        if self._queues[True] and self._queues[True][0][0] <= self.now:
            return 0
        return self._queues[False][0][0] if self._queues[False] else SEQ_MAX

    def enter(self, table: str, values: tuple[Any, ...]) -> None:
        """Takes a new or changed row of a table of constraints, by its values as ingest reads them."""
        key = (table, values[0])
        expires, until = values[EXPIRES], values[UNTIL]
        if expires is None and until is None:
            self._moments.pop(key, None)
            return
        by_time = expires is None
        moment = (until - _EPOCH) // dt.timedelta(microseconds=1) if by_time else expires
        self._moments[key] = (by_time, moment)
        queue = self._queues[by_time]
        heappush(queue, (moment, key))
        if len(queue) > 2 * len(self._moments) + 64:
            queue[:] = [entry for entry in queue if self._moments.get(entry[1]) == (by_time, entry[0])]
            heapify(queue)

    def leave(self, table: str, id: str) -> None:
        """Forgets a row that has been deleted."""
        self._moments.pop((table, id), None)

    def due(self, seq: int, time: dt.datetime | None) -> list[Key]:
        """Rows that are gone when a record with this seq, which says that it is this time, is applied. They are forgotten."""
        if time is not None:
            self.now = max(self.now, (time - _EPOCH) // dt.timedelta(microseconds=1))
        return [*self._passed(False, seq), *self._passed(True, self.now)]

    def _passed(self, by_time: bool, moment: int) -> Iterator[Key]:
        queue = self._queues[by_time]
        while queue and queue[0][0] <= moment:
            at, key = heappop(queue)
            if self._moments.get(key) == (by_time, at):
                del self._moments[key]
                yield key

    def walk(
        self, records: Iterable[tuple[int, int, Publication | None]], is_there: Callable[[int, Key], bool]
    ) -> Iterator[tuple[int, Key]]:
        """Goes through admitted records in order: (place of the record, row) of every row that expires with one of them.

        records: (seq, op, table and values if it is of a table of constraints). is_there: whether there was a row with the key
        of the record at a place before all of these.
        """
        touched: dict[Key, bool] = {}
        for place, (seq, op, publication) in enumerate(records):
            table, values = publication or ("", ())
            for gone in self.due(seq, values[TIME] if values else None):
                touched[gone] = False
                yield place, gone
            if not values:
                continue
            key = (table, values[0])
            known = touched[key] if key in touched else is_there(place, key)
            if known == (op == Op.INSERT) and op != Op.UPSERT:
                # In contradiction to the rows: it will be refused.
                continue
            touched[key] = op != Op.DELETE
            if op == Op.DELETE:
                self.leave(*key)
            else:
                self.enter(table, values)

    def dump(self) -> Any:
        rows = [[*key, by_time, moment] for key, (by_time, moment) in self._moments.items()]
        return {"rows": rows, "now": self.now}

    def load(self, state: Any) -> None:
        self.now = state["now"]
        self._moments = {(table, id): (bool(by_time), moment) for table, id, by_time, moment in state["rows"]}
        for key, (by_time, moment) in self._moments.items():
            self._queues[by_time].append((moment, key))
        for queue in self._queues:
            heapify(queue)
