"""Row queries of a view set as arrays, filed such that those that may embed in one are found without looking at all.

Ends of ranges are replaced by their ranks among all ends of that column of a table, so that integers are compared.

Queries of one table that compare the same columns form a group. In a group they are in the order of the starts of one column's
ranges. Those that contain a target's range start no later, which is a prefix; and those before the first place where the
greatest stop so far reaches the target's stop are too short.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.arrays import I32, I64
from tidings.relay.row_views.document import OrderKey, TableRows
from tidings.relay.row_views.embedding import row_needs
from tidings.relay.row_views.query import RowQuery

NEEDS_MAX = 64
"""Of a query that gets rewritings: a mask of needs is one word."""
BEYOND = 2**31 - 1
"""A rank above all others."""
ANY = -1
"""The start where a column may be anything, null too; the stop is BEYOND then."""
NULL = -2
"""The rank of null among values."""


class RowTable:
    """Row queries by number, from 0. Columns of tables that any query compares or carries have slots, numbered per table.

    place[q] is where query q stands in the order of groups, number[place] which query stands there. In the order of groups are
    starts, stops: int32[queries, slots], ranks of the ends of ranges; of queries that no row satisfies BEYOND and ANY.
    carries: uint8[queries, slots].
    """

    def __init__(self, queries: Sequence[RowQuery]) -> None:
        self._tables: dict[str, int] = {}
        self._slots: list[dict[str, int]] = []
        for query in queries:
            slots = self._slots_of(query.table)
            for name in (*query.range_of, *query.carried):
                slots.setdefault(name, len(slots))
        self._bounds = _bounds(queries)
        self._ranks = {column: {end: rank for rank, end in enumerate(ends)} for column, ends in self._bounds.items()}
        count, width = len(queries), max([1, *map(len, self._slots)])
        starts, stops = np.full((count, width), ANY, np.int32), np.full((count, width), BEYOND, np.int32)
        carries = np.zeros((count, width), np.uint8)
        compared = [self._write(query, starts[i], stops[i], carries[i]) for i, query in enumerate(queries)]
        self._write_needs(queries)
        self._write_groups([(self._tables[query.table], slots) for query, slots in zip(queries, compared, strict=True)])
        self._order(starts, stops)
        self.place = np.empty_like(self.number)
        self.place[self.number] = np.arange(count)
        self.table_of = np.array([self._tables[query.table] for query in queries], np.int32)
        self.starts, self.stops, self.carries = starts[self.number], stops[self.number], carries[self.number]

    def __len__(self) -> int:
        return len(self.number)

    @property
    def groups(self) -> tuple[I64, I64, I64, I32, I32]:
        """First group per table; per group its first query and its first slot; slots; per query its group."""
        return self.first_group, self.first_member, self.first_slot, self.slots, self.group_of

    def number_of(self, table: str) -> int | None:
        """None if no query is over it."""
        return self._tables.get(table)

    def ranks(self, rows: TableRows) -> I32:
        """int32[rows, slots]: the rank of the greatest end that is not above a value; NULL of null."""
        slots = self._slots[self._tables[rows.table.name]]
        found = np.full((len(rows.ids), self.starts.shape[1]), NULL, np.int32)
        for name, slot in slots.items():
            bounds = self._bounds.get((rows.table.name, name))
            if bounds is not None:
                keys = rows.order_keys(name)
                # Values below all ends are below all starts, as -1 is: a column that is compared has a start from 0 on.
                found[:, slot] = [NULL if key is None else bisect_right(bounds, key) - 1 for key in keys]
        return found

    def text_bytes(self, rows: TableRows) -> I64:
        """int64[rows, slots]: bytes of the JSON texts of values."""
        slots = self._slots[self._tables[rows.table.name]]
        found = np.zeros((len(rows.ids), self.starts.shape[1]), np.int64)
        for name, slot in slots.items():
            found[:, slot] = [len(text.encode()) for text in rows.texts(name)]
        return found

    def _slots_of(self, table: str) -> dict[str, int]:
        number = self._tables.setdefault(table, len(self._tables))
        if number == len(self._slots):
            self._slots.append({})
        return self._slots[number]

    def _write(self, query: RowQuery, starts: I32, stops: I32, carries: NDArray[np.uint8]) -> tuple[int, ...]:
        """Returns the slots of the columns that the query compares."""
        if query.is_empty:
            # Within any range, and containing no other: its conditions imply all, and are implied by none.
            starts[:], stops[:] = BEYOND, ANY
            return (0,)
        slots = self._slots[self._tables[query.table]]
        for name in query.carried:
            carries[slots[name]] = 1
        for name, each in query.range_of.items():
            ranks = self._ranks[query.table, name]
            starts[slots[name]] = ranks[each.start]
            stops[slots[name]] = BEYOND if each.stop is None else ranks[each.stop]
        return tuple(sorted(slots[name] for name in query.range_of))

    def _write_needs(self, queries: Sequence[RowQuery]) -> None:
        """needs: how many a query has; full: the mask of all, 0 where a word is too small.

        need_kinds, need_slots: those of query q are first_need[q]:first_need[q + 1].
        """
        kinds, columns = [], []
        needs = np.zeros(len(queries), np.int32)
        for number, query in enumerate(queries):
            slots = self._slots[self._tables[query.table]]
            found = row_needs(query)
            needs[number] = len(found)
            kinds += [int(kind) for kind, _ in found]
            columns += [slots.get(name, 0) for _, name in found]
        self.needs = needs
        words = [(1 << int(count)) - 1 if count <= NEEDS_MAX else 0 for count in needs]
        self.full = np.array(words, np.uint64)
        self.first_need = np.concatenate([[0], np.cumsum(needs, dtype=np.int64)])
        self.need_kinds, self.need_slots = np.array(kinds, np.uint8), np.array(columns, np.int32)

    def _write_groups(self, keys: list[tuple[int, tuple[int, ...]]]) -> None:
        groups = {key: number for number, key in enumerate(sorted(set(keys)))}
        self.group_of = np.array([groups[key] for key in keys], np.int32)
        of_table = [table for table, _ in groups]
        self.first_group = np.searchsorted(of_table, np.arange(len(self._tables) + 1)).astype(np.int64)
        self.first_member = np.concatenate([[0], np.cumsum(np.bincount(self.group_of, minlength=len(groups)))])
        self.first_slot = np.concatenate([[0], np.cumsum([len(slots) for _, slots in groups], dtype=np.int64)])
        self.slots = np.array([slot for _, slots in groups for slot in slots], np.int32)

    def _order(self, starts: I32, stops: I32) -> None:
        """lead: per group, the slot it is ordered by. lead_starts, lead_tops: per place, the start there and the greatest stop
        so far."""
        self.number = np.argsort(self.group_of, kind="stable")
        self.lead_starts, self.lead_tops = (np.full(len(self.number), BEYOND, np.int32) for _ in range(2))
        self.lead = np.zeros(len(self.first_member) - 1, np.int32)
        for group in range(len(self.lead)):
            places = slice(self.first_member[group], self.first_member[group + 1])
            own = self.number[places]
            slots = self.slots[self.first_slot[group] : self.first_slot[group + 1]]
            if not len(slots):
                continue
            # The column with most different starts tells queries apart best.
            lead = max(slots.tolist(), key=lambda slot: len(np.unique(starts[own, slot])))
            own = own[np.argsort(starts[own, lead], kind="stable")]
            self.lead[group] = lead
            self.number[places] = own
            self.lead_starts[places] = starts[own, lead]
            self.lead_tops[places] = np.maximum.accumulate(stops[own, lead])


def _bounds(queries: Sequence[RowQuery]) -> dict[tuple[str, str], list[OrderKey]]:
    """All ends of ranges of each column, in order."""
    found: dict[tuple[str, str], set[OrderKey]] = {}
    for query in queries:
        for name, each in query.range_of.items():
            ends = found.setdefault((query.table, name), set())
            ends.add(each.start)
            if each.stop is not None:
                ends.add(each.stop)
    return {column: sorted(ends) for column, ends in found.items()}
