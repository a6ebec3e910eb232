"""A plan that follows change: nodes come and go, and a change takes time for the nodes it concerns only.

Prices of the last full plan stay in use: a newcomer takes the column of least cost + price of the units it uses, of those that
fit. After many changes a new full plan is due: it is made of a `snapshot`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tidings.model.errors import TidingsError
from tidings.relay.planning.instance import NO_SITE, UNLIMITED, Columns, Instance
from tidings.relay.planning.snapshot import Column, Snapshot, snapshot_of
from tidings.relay.planning.solve import Solution

_ENDLESS = float("inf")
NO_POOL = -1


class NoRoom(TidingsError):
    """A node cannot be added: none of its columns fits, and the publisher feeds as many nodes as it may."""


class _Choice(NamedTuple):
    """What feeds a node: the number of one of its columns, the column, and the pool of each unit of capacity it uses."""

    number: int
    column: Column
    pools: list[int]


class LivePlan:
    """Which column feeds each node, now. Nodes and pools keep their numbers; those of removed ones are not given again.

    The columns of a node are numbered as they came: those of the instance or of `add`, then those of `extend`. Column 0 is the
    publisher's.

    No pool ever feeds more than its capacity. The publisher feeds more than it may only after a removal whose orphans fit
    nowhere else: `overflow` says how many too many. Not for several threads at once.
    """

    def __init__(self, instance: Instance, solution: Solution) -> None:
        self._base = instance
        self._more: defaultdict[int, list[Column]] = defaultdict(list)
        self._site: list[int] = instance.site.tolist()
        self._pool: list[int] = instance.pool.tolist()
        self._weight: list[int] = instance.weight.tolist()
        self._position: list[tuple[float, float]] = [(across, along) for across, along in instance.position.tolist()]
        self._capacity: list[int] = instance.capacity.tolist()
        self._free = list(self._capacity)
        self._price: list[float] = solution.prices.tolist()
        self._publisher_free = instance.publisher_capacity
        self._is_alive = [True] * instance.nodes
        self._choice: list[_Choice | None] = [None] * instance.nodes
        self._dependants: defaultdict[int, set[int]] = defaultdict(set)
        self._nodes_of_site: defaultdict[int, set[int]] = defaultdict(set)
        self._nodes_of_pool: defaultdict[int, set[int]] = defaultdict(set)
        for node in range(instance.nodes):
            self._settle(node)
        self._take_over(solution.columns)

    def _take_over(self, columns: Columns) -> None:
        instance = self._base
        indexes = (columns - instance.first_column[:-1]).tolist()
        costs, delays = instance.cost[columns].tolist(), instance.delay[columns].tolist()
        starts, stops = instance.first_source[columns].tolist(), instance.first_source[columns + 1].tolist()
        for node, index in enumerate(indexes):
            sources = tuple(instance.sources[starts[node] : stops[node]].tolist())
            column = Column(costs[node], sources, delays[node])
            self._feed(node, _Choice(index, column, self._pools_used(node, sources)))

    @property
    def nodes(self) -> Iterator[int]:
        return (node for node, is_alive in enumerate(self._is_alive) if is_alive)

    @property
    def overflow(self) -> int:
        """How many nodes too many the publisher feeds."""
        return max(0, -self._publisher_free)

    @property
    def use(self) -> float:
        return sum(choice.column.cost for choice in self._choice if choice is not None)

    def choice(self, node: int) -> tuple[int, Column]:
        """Which of its columns feeds a node, and that column."""
        choice = self._choice[node]
        if choice is None:
            raise KeyError(node)
        return choice.number, choice.column

    def dependants(self, node: int) -> set[int]:
        """The nodes that this one feeds."""
        return set(self._dependants.get(node, ()))

    def add_pool(self, capacity: int = UNLIMITED) -> int:
        self._capacity.append(capacity)
        self._free.append(capacity)
        self._price.append(0.0)
        return len(self._free) - 1

    def add(
        self,
        columns: Sequence[Column],
        pool: int,
        site: int = NO_SITE,
        position: tuple[float, float] = (np.nan, np.nan),
        weight: int = 1,
    ) -> int:
        """A new node, fed by the best of its columns that fit; returns its number. The first column is the publisher's.

        Raises NoRoom, and changes nothing, if not even the publisher can feed it.
        """
        node = len(self._is_alive)
        choice = self._best(site, columns)
        if not choice.column.sources and self._publisher_free <= 0:
            raise NoRoom(
                "neither the node's sources nor the publisher have capacity left: plan anew, or raise a capacity"
            )
        self._more[node] = list(columns)
        self._site.append(site)
        self._pool.append(pool)
        self._position.append(position)
        self._weight.append(weight)
        self._is_alive.append(True)
        self._choice.append(None)
        self._settle(node)
        self._feed(node, choice)
        return node

    def extend(self, node: int, columns: Iterable[Column]) -> None:
        """More ways to feed a node, by newcomers; for when it must move, or for the next full plan.

        As always, sources must form no cycle, whichever columns are chosen.
        """
        self._more[node].extend(columns)

    def remove(self, node: int) -> list[int]:
        """Takes a node away, and feeds those that it fed in another way. Returns these orphans, sources first, and others.

        The others had to move to make room for orphans that had none but at the publisher.
        """
        return self._remove([node])

    def remove_site(self, site: int) -> list[int]:
        """All nodes of a site fail at once; returns what `remove` does."""
        return self._remove(sorted(self._nodes_of_site.get(site, ())))

    def remove_pool(self, pool: int) -> list[int]:
        """All nodes that share a capacity fail at once; returns what `remove` does."""
        return self._remove(sorted(self._nodes_of_pool.get(pool, ())))

    def columns_of(self, node: int) -> list[Column]:
        """All columns of a node, those with removed sources too."""
        found: list[Column] = []
        base = self._base
        if node < base.nodes:
            columns = slice(base.first_column[node], base.first_column[node + 1])
            firsts = base.first_source[columns.start : columns.stop + 1].tolist()
            sources = base.sources[firsts[0] : firsts[-1]].tolist()
            ranges = pairwise(firsts)
            own = (tuple(sources[start - firsts[0] : stop - firsts[0]]) for start, stop in ranges)
            values = zip(base.cost[columns].tolist(), own, base.delay[columns].tolist(), strict=True)
            found.extend(map(Column._make, values))
        found.extend(self._more.get(node, ()))
        return found

    def snapshot(self) -> Snapshot:
        """The nodes there are now as an instance to plan anew, with this plan."""
        places = (self._site, self._pool, self._weight, self._position, self._capacity)
        chosen = [-1 if choice is None else choice.number for choice in self._choice]
        return snapshot_of(self._base, dict(self._more), self._is_alive, chosen, *places)

    def _remove(self, gone: list[int]) -> list[int]:
        for node in gone:
            self.choice(node)
        orphans = set().union(*(self._dependants.get(node, ()) for node in gone)).difference(gone)
        waiting = self._sources_first(orphans)
        for node in (*waiting, *gone):
            self._unfeed(node)
        for node in gone:
            self._is_alive[node] = False
            self._nodes_of_site[self._site[node]].discard(node)
            self._nodes_of_pool[self._pool[node]].discard(node)
            self._more.pop(node, None)
        for node in waiting:
            self._feed(node, self._best(self._site[node], self.columns_of(node)))
        moved: dict[int, None] = dict.fromkeys(waiting)
        # A node that makes room for one may leave some for another, too: as long as one leaves, all are asked again.
        at_publisher = [node for node in waiting if not self.choice(node)[1].sources]
        while at_publisher:
            left = [node for node in at_publisher if not self._leave_publisher(node, moved)]
            if len(left) == len(at_publisher):
                break
            at_publisher = left
        return list(moved)

    def _leave_publisher(self, node: int, moved: dict[int, None]) -> bool:
        """Feeds a node by others again if that is possible, at most one of which has to be relieved of another node."""
        columns = self.columns_of(node)
        choice = self._best(self._site[node], columns)
        if not choice.column.sources:
            choice = self._best_if_one_moves(node, columns, moved)
        if not choice.column.sources:
            return False
        self._unfeed(node)
        self._feed(node, choice)
        return True

    def _best_if_one_moves(self, node: int, columns: Sequence[Column], moved: dict[int, None]) -> _Choice:
        """A column that fits after a node that uses the one pool it lacks has moved; the publisher's if there is none.

        The first that costs less than the publisher is taken.
        """
        for number, column in sorted(enumerate(columns), key=lambda numbered: numbered[1].cost):
            if not column.sources or not all(self._is_alive[source] for source in column.sources):
                continue
            pools = self._pools_used_from(self._site[node], column.sources)
            lacking = [pool for pool, units in Counter(pools).items() if units > self._free[pool]]
            if len(lacking) != 1:
                continue
            for other in sorted(self._users(lacking[0]) - {node}):
                if self._move_away(other, lacking[0], pools, columns[0].cost - column.cost):
                    moved[other] = None
                    return _Choice(number, column, pools)
        return _Choice(0, columns[0], [])

    def _move_away(self, node: int, pool: int, pools: list[int], loss_max: float) -> bool:
        """Moves a node to a column that does not use a pool, if all these pools have room then and it costs little enough."""
        old = self._choice[node]
        if old is None or pool not in old.pools:
            return False
        self._unfeed(node)
        new = self._best(self._site[node], self.columns_of(node), pool)
        self._feed(node, new)
        if new.column.sources and new.column.cost - old.column.cost < loss_max and self._has_room(pools):
            return True
        self._unfeed(node)
        self._feed(node, old)
        return False

    def _users(self, pool: int) -> set[int]:
        """The nodes that those of a pool feed."""
        return set().union(*(self._dependants.get(source, ()) for source in self._nodes_of_pool.get(pool, ())))

    def _best(self, site: int, columns: Sequence[Column], other_than: int = NO_POOL) -> _Choice:
        """The column of least cost and prices that fits, and does not use some pool; the publisher's if none does."""
        best = _Choice(0, columns[0], [])
        lowest = _ENDLESS
        for index, column in enumerate(columns):
            if column.sources and column.cost < lowest and all(self._is_alive[source] for source in column.sources):
                pools = self._pools_used_from(site, column.sources)
                total = column.cost + sum(self._price[pool] for pool in pools)
                if total < lowest and self._has_room(pools) and other_than not in pools:
                    lowest = total
                    best = _Choice(index, column, pools)
        return best

    def _has_room(self, pools: list[int]) -> bool:
        if len(set(pools)) == len(pools):
            return all(self._free[pool] > 0 for pool in pools)
        return all(self._free[pool] >= units for pool, units in Counter(pools).items())

    def _pools_used(self, node: int, sources: tuple[int, ...]) -> list[int]:
        return self._pools_used_from(self._site[node], sources)

    def _pools_used_from(self, site: int, sources: tuple[int, ...]) -> list[int]:
        """The pool of each unit that a node of this site uses."""
        return [self._pool[source] for source in sources if site == NO_SITE or self._site[source] != site]

    def _settle(self, node: int) -> None:
        if self._site[node] != NO_SITE:
            self._nodes_of_site[self._site[node]].add(node)
        self._nodes_of_pool[self._pool[node]].add(node)

    def _feed(self, node: int, choice: _Choice) -> None:
        self._choice[node] = choice
        for source in choice.column.sources:
            self._dependants[source].add(node)
        for pool in choice.pools:
            self._free[pool] -= 1
        self._publisher_free -= not choice.column.sources

    def _unfeed(self, node: int) -> None:
        choice = self._choice[node]
        if choice is None:
            return
        self._choice[node] = None
        for source in choice.column.sources:
            self._dependants[source].discard(node)
        for pool in choice.pools:
            self._free[pool] += 1
        self._publisher_free += not choice.column.sources

    def _sources_first(self, nodes: set[int]) -> list[int]:
        """By level in the plan, so that no node is before one that it gets data from."""
        level: dict[int, int] = {}
        stack = sorted(nodes, reverse=True)
        while stack:
            node = stack[-1]
            sources = self.choice(node)[1].sources
            missing = [source for source in sources if source not in level]
            if missing:
                stack.extend(missing)
            else:
                level[node] = 1 + max((level[source] for source in sources), default=0)
                stack.pop()
        return sorted(nodes, key=lambda node: (level[node], node))
