"""Planning a relay stage by stage, as `plan_relay` does it, with the time that each takes."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tidings.bench.timing import Seconds, timed
from tidings.relay.document import Document
from tidings.relay.files import View
from tidings.relay.grouping import Groups, build_instance, group_views, pool_limits
from tidings.relay.limits import Limits
from tidings.relay.pattern import Pattern, parse_pattern
from tidings.relay.plan import RelayPlan
from tidings.relay.planner import Planned, source_costs
from tidings.relay.planning.instance import Columns, Instance
from tidings.relay.planning.latency import order_of, paths_of, reduce_latency
from tidings.relay.planning.solve import Infeasible, Solution, solve
from tidings.relay.rewriting import PatternTable, Rewritings, find_rewritings
from tidings.relay.rewriting.rewritings import REWRITINGS_MAX
from tidings.relay.sizes import ViewSizes, measure_views
from tidings.relay.wiring import inputs_by_id, wire

_MARGIN = 1.2
"""Of the published runs: the publisher may feed so many times the views that no other can feed."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """Views with all that plans of any capacity have in common.

    patterns: the different ones, by number. seconds: of each stage, by name.
    """

    views: Sequence[View]
    groups: Groups
    patterns: Sequence[Pattern]
    sizes: ViewSizes
    table: PatternTable
    rewritings: Rewritings
    seconds: dict[str, Seconds]

    @cached_property
    def unfed(self) -> int:
        """Groups of equal views that no other view can feed: the publisher must."""
        return int((np.diff(self.rewritings.first)[self.groups.query] == 0).sum())

    @property
    def publisher_capacity(self) -> int:
        """As in the published runs."""
        return int(_MARGIN * self.unfed)

    def relay_plan(self, instance: Instance, columns: Columns, capacity: int | None) -> RelayPlan:
        """The inputs of each view, by a plan for groups."""
        each = Limits(capacity=capacity).of_views(self.sizes.bytes[self.groups.query])
        inputs = wire(self.groups, instance, columns, each)
        return RelayPlan(inputs_by_id(self.views, inputs))


@dataclass(frozen=True)
class Pass:
    """The plan after so many passes that reduce latency. seconds: of a processor, from the start."""

    seconds: float
    latency: float
    use: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """A plan of least use, and what passes that reduce latency made of it.

    slack: how many times its capacity a view may use for that. infeasible: why the publisher's capacity was not kept, with the
    least that is known to do, which was taken instead.
    passes: the first is the plan of least use.
    """

    prepared: Prepared
    capacity: int | None
    slack: float
    publisher_capacity: int | None
    instance: Instance
    solution: Solution
    columns: Columns
    infeasible: Infeasible | None
    instance_s: float
    solve_s: Seconds
    latency_s: Seconds
    passes: tuple[Pass, ...]

    @cached_property
    def least_use(self) -> RelayPlan:
        return self.prepared.relay_plan(self.instance, self.solution.columns, self.capacity)

    @cached_property
    def hastened(self) -> RelayPlan:
        limits = Limits(capacity=self.capacity).with_slack(self.slack)
        return self.prepared.relay_plan(self.instance, self.columns, limits.capacity)

    def planned(self) -> Planned:
        """As the planner gives it."""
        known = self.prepared
        return Planned(
            known.views, Limits(capacity=self.capacity), known.groups, known.table, known.sizes, known.rewritings,
            self.instance, self.solution, self.columns, self.hastened,
        )  # fmt: skip

    @property
    def latency_change(self) -> float:
        return self.passes[-1].latency / self.passes[0].latency - 1

    @property
    def use_change(self) -> float:
        return self.passes[-1].use / self.passes[0].use - 1


def prepare(texts: Iterable[str], documents: Sequence[Document], rewritings_max: int = REWRITINGS_MAX) -> Prepared:
    """From the texts of views. documents: samples, for sizes."""
    seconds = {}
    seconds["parse"], views = timed(lambda: [View(f"v{n}", parse_pattern(text)) for n, text in enumerate(texts, 1)])
    seconds["group"], groups = timed(group_views, views, ())
    patterns = [views[head].query for head in groups.heads.tolist()]
    seconds["sizes"], sizes = timed(measure_views, patterns, documents)
    seconds["table"], table = timed(PatternTable, patterns)
    seconds["rewritings"], rewritings = timed(find_rewritings, table, source_costs(sizes), rewritings_max)
    return Prepared(views, groups, patterns, sizes, table, rewritings, seconds)


def plan(prepared: Prepared, capacity: int | None, publisher_capacity: int | None, *, slack: float = 1.0) -> Outcome:
    limits = Limits(capacity=capacity)
    made, instance = timed(
        build_instance, prepared.groups, limits, prepared.rewritings, prepared.sizes, publisher_capacity
    )
    infeasible = None
    solved, found = timed(_solution, instance)
    if isinstance(found, Infeasible):
        infeasible, found = found, found.least_overflow
        instance = replace(instance, publisher_capacity=infeasible.fed)
    return _hastened(
        Outcome(
            prepared, capacity, slack, publisher_capacity, instance, found, found.columns, infeasible,
            made.wall, solved, Seconds(0.0, 0.0), (),
        )
    )  # fmt: skip


def _hastened(outcome: Outcome) -> Outcome:
    known, found = outcome.prepared, outcome.solution
    room, _ = pool_limits(known.groups, Limits(capacity=outcome.capacity).with_slack(outcome.slack), known.sizes)
    instance = replace(outcome.instance, capacity=room)
    plans, seconds = [found.columns], [0.0]
    begun = time.process_time()

    def note(columns: Columns) -> None:
        plans.append(columns)
        seconds.append(time.process_time() - begun)

    hastened, columns = timed(reduce_latency, instance, found.columns, on_pass=note)
    order = order_of(instance)
    latencies = [float(paths_of(instance, each, order).latency @ instance.weight) for each in plans]
    passes = tuple(
        Pass(cpu, latency, instance.use(each)) for cpu, latency, each in zip(seconds, latencies, plans, strict=True)
    )
    return replace(outcome, columns=columns, latency_s=hastened, passes=passes)


def _solution(instance: Instance) -> Solution | Infeasible:
    try:
        return solve(instance)
    except Infeasible as error:
        return error


def peak_bytes() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
