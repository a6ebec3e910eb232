"""Which plan is in force for which documents.

Plans change between two documents of the stream: an epoch is a plan and the first document that runs by it. After a failure the
plan of an epoch is replaced, for documents that are not finished. This can be done at any moment, as a view says the same
of a document by any plan: messages of the old plan are as good as those of the new one. Only what the publisher sends, which
may be a part of what a view asks for, is of one plan, and is sent again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tidings.model.errors import UsageError
from tidings.relay.files import View
from tidings.relay.pattern import Pattern, parse_pattern
from tidings.relay.plan import PUBLISHER, RelayPlan
from tidings.relay.rest import rest_of
from tidings.relay.row_views.query import RowQuery, read_row_query
from tidings.relay.runtime.pattern_query import PATTERN, PatternQuery
from tidings.relay.runtime.query import Derivation, Query


def queries_of(views: Iterable[View]) -> dict[str, Query]:
    """What each view asks for."""
    found: dict[str, Query] = {}
    for view in views:
        found[view.id] = PatternQuery(view.query) if isinstance(view.query, Pattern) else view.query
    return found


def read_query(described: tuple[str, str]) -> Query:
    """The inverse of `Query.described`."""
    kind, text = described
    return PatternQuery(parse_pattern(text)) if kind == PATTERN else read_row_query(text)


@dataclass(frozen=True)
class Recipe:
    """How a view is computed in one epoch. sources: what the inputs ask for, the rest where the publisher is one of several.

    derive: None if the publisher is the only input.
    """

    epoch: int
    query: Query
    inputs: tuple[str, ...]
    sources: tuple[Query, ...] = ()
    derive: Derivation | None = None


class Epoch:
    """A plan for the documents from `first` on. UsageError if the plan does not fit the views."""

    def __init__(
        self,
        number: int,
        first: int,
        plan: RelayPlan,
        queries: Mapping[str, Query],
        before: Epoch | None = None,
    ) -> None:
        """before: an earlier epoch, from which recipes are taken over where nothing has changed."""
        self.number = number
        self.first = first
        self.plan = plan
        self.queries = dict(queries)
        for view in queries:
            if view not in plan.inputs:
                raise UsageError(f"the plan lacks the view {view!r}: it was made for other views")
        self.recipes = {view: self._recipe(view, before) for view in plan.order}

    @cached_property
    def roots(self) -> dict[Query, list[str]]:
        """The views which the publisher feeds, by what they ask for: it matches equal ones once."""
        found: dict[Query, list[str]] = {}
        for view in self.plan.dependants[PUBLISHER]:
            found.setdefault(self.published(view), []).append(view)
        return found

    def published(self, view: str) -> Query:
        """What the publisher matches for a view that it feeds: what the view asks for, or the rest of it."""
        recipe = self.recipes[view]
        return recipe.sources[recipe.inputs.index(PUBLISHER)] if recipe.sources else recipe.query

    def replanned(self, number: int, plan: RelayPlan) -> Epoch:
        """The same documents and views by another plan."""
        return Epoch(number, self.first, plan, self.queries, self)

    def _recipe(self, view: str, before: Epoch | None) -> Recipe:
        query = self.queries.get(view)
        if query is None:
            raise UsageError(f"the plan has a view {view!r} that is not among the views: it was made for others")
        inputs = self.plan.inputs[view]
        if inputs == (PUBLISHER,):
            return Recipe(self.number, query, inputs)
        sources = self._sources(query, inputs)
        earlier = None if before is None else before.recipes.get(view)
        if earlier is not None and (earlier.query, earlier.sources) == (query, sources):
            return Recipe(self.number, query, inputs, sources, earlier.derive)
        derive = query.derivation(sources) if len(sources) == len(inputs) else None
        if derive is None:
            names = ", ".join(map(repr, inputs))
            raise UsageError(
                f"view {view!r} cannot be computed from its inputs {names}: they lack something that it asks for, "
                "or have more than they need"
            )
        return Recipe(self.number, query, inputs, sources, derive)

    def _sources(self, query: Query, inputs: tuple[str, ...]) -> tuple[Query, ...]:
        """What each input is asked for; nothing for a publisher to which nothing is left."""
        known = [self.queries[source] for source in inputs if source != PUBLISHER]
        rest = _rest(query, known) if len(known) < len(inputs) else None
        found = [rest if source == PUBLISHER else self.queries[source] for source in inputs]
        return tuple(source for source in found if source is not None)


def _rest(query: Query, sources: Sequence[Query]) -> Query | None:
    """As `rest_of`, for queries of a network."""
    own, *known = (each.pattern if isinstance(each, PatternQuery) else each for each in (query, *sources))
    assert isinstance(own, Pattern | RowQuery)
    found = rest_of(own, [each for each in known if isinstance(each, Pattern | RowQuery)])
    return PatternQuery(found) if isinstance(found, Pattern) else found


class Timeline:
    """The epochs of all documents that are not finished, and of those to come."""

    def __init__(self, epoch: Epoch) -> None:
        self.epochs = [epoch]
        self._made = epoch.number

    @property
    def current(self) -> Epoch:
        """The epoch of documents to come."""
        return self.epochs[-1]

    def at(self, seq: int) -> Epoch:
        if len(self.epochs) == 1:
            return self.epochs[0]
        return self.epochs[max(0, bisect_right(self.epochs, seq, key=lambda epoch: epoch.first) - 1)]

    def switch(self, first: int, plan: RelayPlan, queries: Mapping[str, Query]) -> None:
        epoch = Epoch(self._number(), first, plan, queries, self.current)
        self.epochs = [*(earlier for earlier in self.epochs if earlier.first < first), epoch]

    def replan(self, at: int, plan: RelayPlan) -> None:
        """Another plan for the epoch in this place."""
        self.epochs[at] = self.epochs[at].replanned(self._number(), plan)

    def forget(self, below: int) -> bool:
        """Drops epochs all of whose documents are below; whether there were any."""
        kept = [epoch for epoch, behind in zip(self.epochs, self.epochs[1:], strict=False) if behind.first > below]
        is_less = len(kept) + 1 < len(self.epochs)
        self.epochs = [*kept, self.current]
        return is_less

    def schedule(self, view: str) -> list[tuple[int, Recipe | None]]:
        """The recipes of a view, each with the first document it is for; None where the view is absent."""
        return [(epoch.first, epoch.recipes.get(view)) for epoch in self.epochs]

    def views(self) -> set[str]:
        """Those of any epoch."""
        return {view for epoch in self.epochs for view in epoch.recipes}

    def _number(self) -> int:
        self._made += 1
        return self._made
