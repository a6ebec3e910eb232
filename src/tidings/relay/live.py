"""A relay that follows its views: they come and go, sites fail, and each change concerns those it touches only.

A view that comes is fed by views with the same query, by a rewriting, or by the publisher: the cheapest by the prices of the
last full plan that has capacity left. Views that lose an input are fed in another way, by newcomers too, the publisher being
the last. Old prices, and views that stay where they are, make the plan worse over time: after a number of changes a full plan
is due, which is made aside (`replan`) while this one goes on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace

import numpy as np

from tidings.kernels.arrays import F64, I32, I64, grow
from tidings.model.errors import UsageError
from tidings.relay.costs import column_costs, column_delays
from tidings.relay.document import Document
from tidings.relay.embedding import carried_pattern
from tidings.relay.files import PUBLISHER, View, pattern_of
from tidings.relay.plan import RelayPlan
from tidings.relay.planner import Planned, plan_relay, source_costs
from tidings.relay.planning.instance import NO_SITE, UNLIMITED, Instance
from tidings.relay.planning.live import LivePlan, NoRoom
from tidings.relay.planning.snapshot import Column
from tidings.relay.planning.solve import Solution
from tidings.relay.rewriting.kernels.groups import columns_of_views
from tidings.relay.rewriting.rewritings import REWRITINGS_MAX, patterns_fed_by, rewritings_of
from tidings.relay.sizes import ViewSizes, measure_views

CHANGES_MAX = 1_000
"""Changes after which a full plan is due."""
_EARLIER = 3
"""Members of its group that a view can be fed by, beside the one that feeds it."""
_SAMPLES = 4
"""Documents on which a view that comes is measured: the others would take longer than all else."""
_OFFERS = 200
"""Queries to which a view that comes is offered as an input."""
_EQUALS = 30
"""Views with the same query that a view that comes looks at."""


class LiveRelay:
    """The views there are, and what feeds each. Not for several threads at once. UsageError for views over rows: relays with
    such views are planned as a whole.

    samples: documents on which the messages of views that come are measured.
    """

    def __init__(self, planned: Planned, samples: Sequence[Document] = ()) -> None:
        if planned.plan.feeds_in_part:
            raise UsageError(
                "the plan feeds views in part by the publisher: relays with such views are planned as a whole"
            )
        if planned.limits.has_bandwidth:
            raise UsageError("the plan keeps bandwidths: relays with such limits are planned as a whole")
        self._planned, self._samples = planned, samples
        sites = planned.roomy.sites
        self._sites = {site.id: site for site in sites}
        self._capacity = _of_view(planned)
        self._places = {site.id: place for place, site in enumerate(sites)}
        self._table = deepcopy(planned.table)
        self._sizes = (planned.sizes.ids.copy(), planned.sizes.bytes.copy())
        self._cost = source_costs(planned.sizes)
        groups = planned.groups
        self._queries = {
            carried_pattern(pattern_of(planned.views[head])): query for query, head in enumerate(groups.heads.tolist())
        }
        self._views: dict[int, View] = dict(enumerate(planned.views))
        self._nodes = {view.id: node for node, view in self._views.items()}
        self._query_of: list[int] = groups.query_of.tolist()
        self._holders: defaultdict[int, dict[int, None]] = defaultdict(dict)
        for node, query in enumerate(self._query_of):
            self._holders[query][node] = None
        instance, solution = _instance_of_views(planned)
        self._live = LivePlan(instance, solution)
        self._pools = {
            view.site: int(instance.pool[node]) for node, view in self._views.items() if view.site is not None
        }
        self.changes = 0
        """Since the last full plan."""

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def views(self) -> Iterator[View]:
        return iter(self._views.values())

    @property
    def is_plan_due(self) -> bool:
        return self.changes >= CHANGES_MAX

    @property
    def overflow(self) -> int:
        """How many views too many the publisher feeds, as those that lost an input fit nowhere else."""
        return self._live.overflow

    def inputs(self, id: str) -> tuple[str, ...]:
        """What a view is fed by. UsageError if there is no such view."""
        sources = self._live.choice(self._node(id))[1].sources
        return tuple(self._views[source].id for source in sources) or (PUBLISHER,)

    def plan(self) -> RelayPlan:
        """As it is now, for `RelayNetwork.switch`."""
        return RelayPlan({view.id: self.inputs(view.id) for view in self.views}, use=self._live.use)

    def add(self, view: View) -> tuple[str, ...]:
        """Feeds one more view; returns its inputs. UsageError if there is one with its id, `NoRoom` if nobody can feed it."""
        if view.id in self._nodes:
            raise UsageError(f"there is a view {view.id!r} already")
        if view.site is not None and view.site not in self._sites:
            raise UsageError(f"view {view.id!r} is at the site {view.site!r}, which is not known")
        query = self._query(view)
        site = NO_SITE if view.site is None else self._places[view.site]
        position = self._sites[view.site].position if view.site is not None else None
        columns = self._columns(query)
        try:
            node = self._live.add(columns, self._pool(view), site, position or (np.nan, np.nan))
        except NoRoom:
            self._table.alive[query] = bool(self._holders[query])
            raise
        self._views[node] = view
        self._nodes[view.id] = node
        self._query_of.append(query)
        assert len(self._query_of) == node + 1
        self._holders[query][node] = None
        self._offer(node, query)
        self.changes += 1
        return self.inputs(view.id)

    def remove(self, id: str) -> list[str]:
        """Takes a view away; returns those it fed, and those that made room for them: they are fed in another way now."""
        node = self._node(id)
        orphans = self._live.remove(node)
        self._forget([node])
        return [self._views[orphan].id for orphan in orphans]

    def fail(self, site: str) -> list[str]:
        """A site is gone with all views there; returns the views elsewhere that are fed in another way now."""
        if site not in self._places:
            raise UsageError(f"there is no site {site!r}")
        gone = [node for node, view in self._views.items() if view.site == site]
        orphans = self._live.remove_site(self._places[site])
        self._forget(gone)
        return [self._views[orphan].id for orphan in orphans]

    def replan(self) -> LiveRelay:
        """A relay of the same views by a full plan. This one may go on meanwhile; `follow` brings the new one up to date."""
        most = self._planned.instance.publisher_capacity
        planned = plan_relay(
            list(self.views),
            self._samples,
            sites=self._planned.limits.sites,
            capacity=self._planned.limits.capacity,
            haste=self._planned.haste,
            publisher_capacity=None if most == UNLIMITED else most,
        )
        return LiveRelay(planned, self._samples)

    def follow(self, other: LiveRelay) -> None:
        """Takes over the views of another relay: those that came or went there while this one was planned."""
        theirs = {view.id: view for view in other.views}
        for view in list(self.views):
            if theirs.get(view.id) != view:
                self.remove(view.id)
        for view in theirs.values():
            if view.id not in self._nodes:
                self.add(view)

    def _node(self, id: str) -> int:
        if id not in self._nodes:
            raise UsageError(f"there is no view {id!r}")
        return self._nodes[id]

    def _forget(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            del self._nodes[self._views.pop(node).id]
            holders = self._holders[self._query_of[node]]
            del holders[node]
            if not holders:
                self._table.alive[self._query_of[node]] = False
        self.changes += 1

    def _query(self, view: View) -> int:
        """The number of its query, which may be new."""
        pattern = pattern_of(view)
        key = carried_pattern(pattern)
        query = self._queries.get(key)
        if query is None:
            query = self._queries[key] = len(self._table)
            self._table.extend([pattern])
            sizes = measure_views([pattern], self._samples[:_SAMPLES])
            for array, values in zip(
                (*self._sizes, self._cost), (sizes.ids, sizes.bytes, source_costs(sizes)), strict=True
            ):
                grow(array, query + 1)
                array[query] = values[0]
        self._table.alive[query] = True
        return query

    def _columns(self, query: int) -> list[Column]:
        """Ways to feed a view that comes: the publisher, views with the same query, rewritings."""
        equals = [(query,)] if self._holders[query] else []
        found = rewritings_of(self._table, np.array([query]), self._cost, REWRITINGS_MAX, ordered=False).of(0)
        chosen: list[tuple[int, ...]] = [(), *equals, *found]
        first_source = np.concatenate([[0], np.cumsum([len(sources) for sources in chosen])])
        flat = np.array([source for sources in chosen for source in sources], np.int32)
        cost, delay = self._costs(np.full(len(chosen), query), first_source, flat)
        columns = []
        for place, sources in enumerate(chosen):
            holders = [list(self._holders[source])[:_EQUALS] for source in sources]
            for turn in range(max(map(len, holders), default=1)):
                nodes = tuple(held[turn % len(held)] for held in holders)
                columns.append(Column(cost[place], nodes, delay[place]))
        return columns

    def _offer(self, node: int, query: int) -> None:
        """Views for which the newcomer is enough may turn to it when they lose an input. Never those that could feed it."""
        targets = patterns_fed_by(self._table, query, _OFFERS)
        if not targets:
            return
        first_source, sources = np.arange(len(targets) + 1), np.full(len(targets), query, np.int32)
        cost, delay = self._costs(np.array(targets), first_source, sources)
        for place, target in enumerate(targets):
            for holder in list(self._holders[target])[:_EQUALS]:
                self._live.extend(holder, [Column(cost[place], (node,), delay[place])])

    def _costs(self, queries: I64, first_source: I64, sources: I32) -> tuple[list[float], list[float]]:
        """Cost and delay of each way to compute a query from others."""
        sizes = ViewSizes(*self._sizes, self._planned.sizes.document_bytes)
        cost = column_costs(sizes, queries, first_source, sources)
        return cost.tolist(), column_delays(sizes, first_source, sources).tolist()

    def _pool(self, view: View) -> int:
        if view.site is None:
            return self._live.add_pool(self._capacity)
        if view.site not in self._pools:
            own = self._sites[view.site].capacity
            self._pools[view.site] = self._live.add_pool(self._capacity if own is None else own)
        return self._pools[view.site]


def _of_view(planned: Planned) -> int:
    """What a view without a site may feed."""
    capacity = planned.roomy.capacity
    return UNLIMITED if capacity is None else min(capacity, UNLIMITED)


def _instance_of_views(planned: Planned) -> tuple[Instance, Solution]:
    """Each view a node of its own, with the ways of its group and those that were wired."""
    groups, of_groups = planned.groups, planned.instance
    first_input, inputs = _flat(planned)
    place = np.empty(len(groups.group_of), np.int64)
    place[groups.members] = np.arange(len(place)) - np.repeat(groups.first_member[:-1], groups.sizes)
    counts = np.empty(len(place), np.int64)
    columns, room = 0, 0
    while True:
        ends, sources = np.empty(columns, np.int64), np.empty(room, np.int32)
        columns, room, fits = columns_of_views(
            groups.group_of, place, groups.first_member, groups.members, of_groups.first_column, of_groups.first_source,
            of_groups.sources, first_input, inputs, _EARLIER, counts, ends, sources,
        )  # fmt: skip
        if fits:
            break
    first_column = np.concatenate([[0], np.cumsum(counts)])
    first_source = np.concatenate([[0], ends])
    owner = np.repeat(np.arange(len(place)), counts)
    sizes = planned.sizes.of(groups.query_of)
    pool, capacity, prices = _pools(planned)
    is_wired = np.diff(first_input) > 0
    instance = replace(
        of_groups,
        first_column=first_column,
        cost=column_costs(sizes, owner, first_source, sources),
        first_source=first_source,
        sources=sources,
        is_published=np.diff(first_source) == 0,
        sent=np.zeros(len(place), np.int32),
        bandwidth=np.full(len(capacity), UNLIMITED),
        pool=pool,
        capacity=capacity,
        site=groups.site[groups.group_of],
        delay=column_delays(sizes, first_source, sources),
        position=of_groups.position[groups.group_of],
        weight=np.ones(len(place), np.int64),
    )
    chosen = first_column[:-1] + is_wired
    return instance, replace(planned.solution, columns=chosen, prices=prices)


def _flat(planned: Planned) -> tuple[I64, I32]:
    """Inputs of each view as numbers of views; none where the publisher feeds it."""
    number = {view.id: place for place, view in enumerate(planned.views)}
    found: list[int] = []
    ends = [0]
    for view in planned.views:
        found += [number[source] for source in planned.plan.inputs[view.id] if source != PUBLISHER]
        ends.append(len(found))
    return np.array(ends, np.int64), np.array(found, np.int32)


def _pools(planned: Planned) -> tuple[I32, I64, F64]:
    """Pool per view; capacity and price per pool. Sites come first, then views that are alone."""
    groups, instance = planned.groups, planned.instance
    sites = instance.pools - len(groups)
    of_view = groups.site[groups.group_of]
    views = np.arange(len(of_view))
    price = planned.solution.prices
    return (
        np.where(of_view == NO_SITE, sites + views, of_view).astype(np.int32),
        np.concatenate([instance.capacity[:sites], np.full(len(views), _of_view(planned))]),
        np.concatenate([price[:sites], price[instance.pool[groups.group_of]]]),
    )
