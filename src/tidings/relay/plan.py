"""Plans: which views each view is computed from, and the file they are written in.

    {"views": {"v1": {"inputs": ["publisher"], "level": 1}, "v2": {"inputs": ["v1", "v7"], "level": 2}},
     "publisher": {"feeds": 72}, "use": 1034.5, "bound": 1030.1, "gap": 0.004, "latency": 2.5}

A view that is fed by the publisher is on level 1, every other one is one level above its highest input. Where "publisher" is
one of several inputs, the others know a part of what the view asks for, and it sends the rest (`rest.py`). Plans come from a
planner or from a file that somebody may have edited: `check` refuses what would not run, and names the view.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from tidings.model.errors import UsageError
from tidings.relay.embedding import images
from tidings.relay.pattern import Pattern
from tidings.relay.rest import rest_of
from tidings.relay.row_views.embedding import embeds

if TYPE_CHECKING:
    from tidings.relay.files import View
    from tidings.relay.row_views.query import RowQuery

PUBLISHER = "publisher"
"""How plans name the source of all documents; no view may have this id."""


OWN = "\0"
"""Before the name of a view that is its own site."""


@dataclass(frozen=True)
class RelayPlan:
    """inputs: per view, what it is computed from; (PUBLISHER,) if from the documents, PUBLISHER among others if in part.

    use: what the plan costs, as the planner counts. least_use: what it cost before latency was reduced. bound: no plan costs
    less. gap: (least_use - bound) / least_use. latency: the sum over all views, in hops. least_use_latency: what it was before
    it was reduced. None where nobody has worked it out.
    """

    inputs: Mapping[str, tuple[str, ...]]
    use: float | None = None
    bound: float | None = None
    gap: float | None = None
    latency: float | None = None
    least_use: float | None = None
    least_use_latency: float | None = None

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The views, each behind its inputs. UsageError if the plan has a cycle or an input that is no view."""
        for view, inputs in self.inputs.items():
            _check_inputs(view, inputs, self.inputs)
        try:
            order = TopologicalSorter(self.inputs).static_order()
            return tuple(view for view in order if view != PUBLISHER)
        except CycleError as error:
            path = " <- ".join(map(repr, error.args[1]))
            raise UsageError(f"the plan feeds the view {error.args[1][0]!r} from itself: {path}") from None

    @cached_property
    def levels(self) -> dict[str, int]:
        """UsageError as of `order`."""
        found = {PUBLISHER: 0}
        for view in self.order:
            found[view] = 1 + max(found[source] for source in self.inputs[view])
        del found[PUBLISHER]
        return found

    @cached_property
    def dependants(self) -> dict[str, tuple[str, ...]]:
        """The views that each view feeds, and those that the publisher feeds."""
        found: dict[str, list[str]] = {PUBLISHER: [], **{view: [] for view in self.inputs}}
        for view, inputs in self.inputs.items():
            for source in inputs:
                found[source].append(view)
        return {source: tuple(views) for source, views in found.items()}

    @property
    def feeds(self) -> int:
        """Number of views which the publisher feeds, those that it feeds in part included."""
        return len(self.dependants[PUBLISHER])

    @property
    def feeds_in_part(self) -> int:
        """Number of views that other views feed as well."""
        return sum(len(self.inputs[view]) > 1 for view in self.dependants[PUBLISHER])


def plan_json(plan: RelayPlan) -> bytes:
    """The text of a plan's file."""
    views = {view: {"inputs": list(inputs), "level": plan.levels[view]} for view, inputs in plan.inputs.items()}
    figures = {name: getattr(plan, name) for name in _FIGURES}
    record = {"views": views, "publisher": {"feeds": plan.feeds}, **figures}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def parse_plan(data: bytes) -> RelayPlan:
    """A plan from the text of its file; fields that are not known are passed over. UsageError for what is no plan."""
    try:
        record = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the plan is not JSON: {error}") from None
    views = record.get("views") if isinstance(record, dict) else None
    if not isinstance(views, dict):
        raise UsageError('the plan has no "views", which are a JSON object with one field per view')
    plan = RelayPlan(
        {view: _inputs(view, planned) for view, planned in views.items()},
        **{name: _figure(name, record.get(name)) for name in _FIGURES},
    )
    for view, level in plan.levels.items():
        if views[view].get("level") != level:
            given = views[view].get("level")
            raise UsageError(
                f"the plan says that view {view!r} is on level {given!r}; its inputs put it on level {level}"
            )
    publisher = record.get("publisher", {})
    if not isinstance(publisher, dict) or publisher.get("feeds", plan.feeds) != plan.feeds:
        raise UsageError(f"the plan's publisher feeds {plan.feeds} views, not {publisher!r}")
    return plan


def check(plan: RelayPlan, views: Iterable[View], capacities: Mapping[str, int] | None = None) -> None:
    """UsageError unless the plan has just these views, each computed from enough inputs, and no site feeds too many others.

    capacities: how many views elsewhere a site may feed, by `site_of` its views, and PUBLISHER the publisher.
    """
    by_id = {view.id: view for view in views}
    for id in by_id:
        if id not in plan.inputs:
            raise UsageError(f"the plan lacks the view {id!r}: it was made for other views")
    for id in plan.order:
        if id not in by_id:
            raise UsageError(f"the plan has a view {id!r} that is not among the views: it was made for others")
        _check_rewriting(plan, by_id[id], by_id)
    check_capacities(plan, by_id, capacities or {})


def site_of(view: View) -> str:
    """A view without a site is its own."""
    return own_site(view.id) if view.site is None else view.site


def own_site(view: str) -> str:
    """The site of a view that is its own; no other site has this name, as `files` refuses it."""
    return f"{OWN}{view}"


_FIGURES = ("use", "bound", "gap", "latency", "least_use", "least_use_latency")


def _inputs(view: str, planned: Any) -> tuple[str, ...]:
    inputs = planned.get("inputs") if isinstance(planned, dict) else None
    if not isinstance(inputs, list) or not all(isinstance(source, str) for source in inputs):
        raise UsageError(f'view {view!r} of the plan has no "inputs", which are a list of view ids or ["{PUBLISHER}"]')
    return tuple(inputs)


def _figure(name: str, value: Any) -> float | None:
    found = finite_number(value)
    if found is None and value is not None:
        raise UsageError(f'the "{name}" of the plan is not a finite number: {value!r}')
    return found


def finite_number(value: object) -> float | None:
    """A number of JSON as a float; None for what is none, or too large."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _check_inputs(view: str, inputs: tuple[str, ...], views: Mapping[str, object]) -> None:
    if view == PUBLISHER:
        raise UsageError(f"the plan has a view with the id {PUBLISHER!r}, which is where documents come from")
    if not inputs:
        raise UsageError(f"view {view!r} of the plan has no inputs: give it views, or {PUBLISHER!r}")
    for source in inputs:
        if source != PUBLISHER and source not in views:
            raise UsageError(f"view {view!r} of the plan has an input {source!r}, which is no view of the plan")
    if len(set(inputs)) < len(inputs):
        raise UsageError(f"view {view!r} of the plan has an input twice")


def _check_rewriting(plan: RelayPlan, view: View, views: Mapping[str, View]) -> None:
    inputs = plan.inputs[view.id]
    sources = [source for source in inputs if source != PUBLISHER]
    stranger = next((id for id in sources if not _embeds(views[id].query, view.query)), None)
    if stranger is not None:
        reason = f"{stranger!r} does not embed in it"
    elif rest_of(view.query, [views[source].query for source in sources]) is None:
        if len(sources) == len(inputs):
            return
        reason = f"the others know all that it asks for, and nothing is left to {PUBLISHER!r}"
    elif len(sources) < len(inputs):
        return
    else:
        reason = "they lack something that it asks for"
    raise UsageError(f"view {view.id!r} cannot be computed from its inputs {', '.join(map(repr, inputs))}: {reason}")


def _embeds(source: Pattern | RowQuery, target: Pattern | RowQuery) -> bool:
    if isinstance(source, Pattern) and isinstance(target, Pattern):
        return images(source, target) is not None
    return not isinstance(source, Pattern) and not isinstance(target, Pattern) and embeds(source, target)


def check_capacities(plan: RelayPlan, views: Mapping[str, View], capacities: Mapping[str, int]) -> None:
    """UsageError if a site feeds more views elsewhere than it may; see `check`."""
    fed: Counter[str] = Counter()
    for source, dependants in plan.dependants.items():
        site = PUBLISHER if source == PUBLISHER else site_of(views[source])
        fed[site] += sum(site_of(views[view]) != site for view in dependants)
    for site, count in fed.items():
        if count > capacities.get(site, count):
            name = site.removeprefix(OWN)
            raise UsageError(f"the plan lets {name!r} feed {count} views elsewhere; its capacity is {capacities[site]}")
