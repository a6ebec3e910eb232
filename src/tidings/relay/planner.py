"""Planning a relay, from views to a plan: sizes, rewritings, the plan of least use, then less latency.

views -> groups of equal ones -> sizes by sample documents -> rewritings -> instance -> columns -> inputs of each view
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tidings.kernels.arrays import F64, I64
from tidings.relay.costs import INPUT_ID, column_delays
from tidings.relay.document import Document
from tidings.relay.files import PUBLISHER, Site, View
from tidings.relay.grouping import Groups, build_instance, group_views, pool_limits, split_alone
from tidings.relay.limits import Limits
from tidings.relay.partial import Queries, add_partial
from tidings.relay.pattern import Pattern
from tidings.relay.plan import RelayPlan, check_capacities
from tidings.relay.planning.instance import HOP, Columns, Instance
from tidings.relay.planning.latency import Haste, reduce_latency, total_latency
from tidings.relay.planning.solve import Solution, solve
from tidings.relay.rewriting import PatternTable, Rewritings, find_rewritings
from tidings.relay.rewriting.rewritings import REWRITINGS_MAX, joined, rewritings_of
from tidings.relay.rewriting.row_rewritings import find_row_rewritings, row_rewritings_of
from tidings.relay.rewriting.row_table import RowTable
from tidings.relay.row_views.document import RowDocument
from tidings.relay.row_views.query import RowQuery
from tidings.relay.row_views.sizes import measure_rows
from tidings.relay.sizes import ViewSizes, measure_views
from tidings.relay.wiring import FROM_PUBLISHER, Inputs, inputs_by_id, wire

Finding = Callable[[PatternTable, F64, int], Rewritings]
"""How rewritings are found: in this process, or by others."""
Tell = Callable[[str], None]
DEFAULT_HASTE = Haste()


@dataclass(frozen=True, eq=False)
class Planned:
    """A plan, and what it was made of.

    instance: with the slack that latency is given. solution: of least use. columns: what is used of each group's ways, after
    latency was reduced.
    """

    views: Sequence[View]
    limits: Limits
    groups: Groups
    table: PatternTable
    sizes: ViewSizes
    rewritings: Rewritings
    instance: Instance
    solution: Solution
    columns: Columns
    plan: RelayPlan
    haste: Haste | None = None

    @property
    def roomy(self) -> Limits:
        """The limits with the slack that latency is given: what sites may feed by this plan."""
        return self.limits if self.haste is None else self.limits.with_slack(self.haste.slack)

    @property
    def message_bytes(self) -> dict[str, float]:
        """Of each view, on average."""
        of_view = self.sizes.bytes[self.groups.query_of].tolist()
        return {view.id: bytes for view, bytes in zip(self.views, of_view, strict=True)}


def plan_relay(
    views: Sequence[View],
    documents: Iterable[Document | RowDocument],
    *,
    sites: Sequence[Site] = (),
    capacity: int | None = None,
    bandwidth: float | None = None,
    rate: float = 1.0,
    publisher_capacity: int | None = None,
    rewritings_max: int = REWRITINGS_MAX,
    find: Finding = find_rewritings,
    partial: bool = False,
    haste: Haste | None = DEFAULT_HASTE,
    tell: Tell = lambda sentence: None,
) -> Planned:
    """A plan by which no site feeds more views elsewhere than its capacity, with the slack that latency is given.

    documents: samples, for the sizes of messages. capacity, bandwidth, rate: see `Limits`. publisher_capacity: how many views
    the publisher may feed. partial: whether it may send the rest to views that others know a part of. haste: how to reduce
    latency; None: not at all. Raises `Infeasible`, with the plan of least overflow, if the publisher would have to feed more
    than it may.
    """
    limits = Limits(sites, capacity, bandwidth, rate)
    groups = group_views(views, sites)
    queries = [views[head].query for head in groups.heads.tolist()]
    patterns = [query for query in queries if isinstance(query, Pattern)]
    of_rows = [query for query in queries if isinstance(query, RowQuery)]
    tell(f"{len(views):,} views, {len(queries):,} different ones")
    samples = list(documents)
    sizes = measure_queries(queries, samples)
    tell("measured the sizes of their messages")
    table = PatternTable(patterns)
    cost = source_costs(sizes)
    rewritings = find(table, cost[: len(patterns)], rewritings_max)
    if of_rows:
        rewritings = _chained(
            rewritings, find_row_rewritings(of_rows, cost[len(patterns) :], rewritings_max), len(patterns)
        )
    rests = None
    if partial:

        def find_partial(targets: I64) -> Rewritings:
            at = int(np.searchsorted(targets, len(patterns)))
            trees = rewritings_of(table, targets[:at], cost[: len(patterns)], rewritings_max, partial=True)
            if not of_rows:
                return trees
            own = targets[at:] - len(patterns)
            rows = row_rewritings_of(RowTable(of_rows), own, cost[len(patterns) :], rewritings_max, partial=True)
            return _chained(trees, rows, len(patterns))

        rewritings, rests = add_partial(
            queries, rewritings, find_partial, lambda found: measure_queries(found, samples)
        )
    count, rewritten = len(rewritings.first_source) - 1, int((np.diff(rewritings.first) > 0).sum())
    tell(f"{rewritings.embedded:,} embeddings; {count:,} rewritings of {rewritten:,} views")
    groups = split_alone(groups, limits, sizes)
    instance = build_instance(groups, limits, rewritings, sizes, publisher_capacity, rewritings_max, rests)
    solution = solve(instance, progress=tell)
    roomy = limits if haste is None else limits.with_slack(haste.slack)
    room, line = pool_limits(groups, roomy, sizes)
    instance = replace(instance, capacity=room, bandwidth=line)
    columns = solution.columns
    if haste is not None:
        columns = reduce_latency(instance, columns, haste.alpha, haste.beta)
    tell(
        f"latency reduced from {total_latency(instance, solution.columns):.6g} to {total_latency(instance, columns):.6g}"
    )

    def wired(chosen: Columns, within: Limits) -> tuple[Inputs, float]:
        inputs = wire(groups, instance, chosen, within.of_views(sizes.bytes[groups.query]))
        return inputs, float(latencies(views, sites, groups, sizes, instance, chosen, inputs).sum())

    inputs, latency = wired(columns, roomy)
    _, least_use_latency = wired(solution.columns, limits)
    plan = RelayPlan(
        inputs_by_id(views, inputs),
        use=instance.use(columns),
        bound=solution.bound,
        gap=solution.gap,
        latency=latency,
        least_use=solution.use,
        least_use_latency=least_use_latency,
    )
    # No plan should break a rule; if one did, nobody should get it.
    check_capacities(plan, {view.id: view for view in views}, roomy.capacities(views))
    assert len(plan.order) == len(views), "no view feeds itself"
    planned = Planned(views, limits, groups, table, sizes, rewritings, instance, solution, columns, plan, haste)
    roomy.check_bandwidths(plan, views, planned.message_bytes)
    return planned


def _chained(trees: Rewritings, rows: Rewritings, patterns: int) -> Rewritings:
    """Queries over rows have the numbers behind all patterns."""
    return joined([trees, replace(rows, sources=rows.sources + np.int32(patterns))])


def measure_queries(queries: Queries, documents: Sequence[Document | RowDocument]) -> ViewSizes:
    """Sizes of patterns, then of queries over rows."""
    patterns = [query for query in queries if isinstance(query, Pattern)]
    of_rows = [query for query in queries if isinstance(query, RowQuery)]
    trees = measure_views(patterns, documents)
    if not of_rows:
        return trees
    rows = measure_rows(of_rows, documents)
    ids, bytes = np.concatenate([trees.ids, rows.ids]), np.concatenate([trees.bytes, rows.bytes])
    return ViewSizes(ids, bytes, trees.document_bytes)


def source_costs(sizes: ViewSizes) -> F64:
    """What it takes to have a view as an input: cheap ones are tried first in rewritings."""
    return sizes.bytes + INPUT_ID * sizes.ids


def latencies(
    views: Sequence[View],
    sites: Sequence[Site],
    groups: Groups,
    sizes: ViewSizes,
    instance: Instance,
    columns: Columns,
    inputs: Inputs,
) -> F64:
    """Per view, from the publication of a document to its result, in hops."""
    positions = {site.id: site.position for site in sites}
    place = [None if view.site is None else positions.get(view.site) for view in views]
    within = column_delays(sizes, np.arange(len(sizes) + 1), np.arange(len(sizes), dtype=np.int32))
    delay = within[groups.query_of]
    heads = groups.members[groups.first_member[:-1]]
    delay[heads] = instance.delay[columns]
    found = [-1.0] * len(views)
    publisher = positions.get(PUBLISHER)
    for start in range(len(views)):
        waiting = [start]
        while waiting:
            view = waiting[-1]
            own = [source for source in inputs[view] if source != FROM_PUBLISHER]
            unknown = [source for source in own if found[source] < 0]
            if unknown:
                waiting += unknown
                continue
            waiting.pop()
            arrivals = [found[source] + _distance(views, place, source, view) for source in own]
            if len(own) < len(inputs[view]):
                arrivals.append(_between(publisher, place[view]))
            found[view] = max(arrivals) + float(delay[view])
    return np.array(found)


_Place = tuple[float, float] | None


def _distance(views: Sequence[View], place: Sequence[_Place], source: int, view: int) -> float:
    if views[source].site is not None and views[source].site == views[view].site:
        return 0.0
    return _between(place[source], place[view])


def _between(one: _Place, other: _Place) -> float:
    if one is None or other is None:
        return HOP
    return float(np.hypot(one[0] - other[0], one[1] - other[1]))
