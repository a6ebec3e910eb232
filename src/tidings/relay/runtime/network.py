"""A whole plan in one process: the publisher, a node for each view, and messages on their way between them.

    publish -> publisher matches what it feeds -> in flight -> node -> in flight -> .. -> results, document by document

A document is finished when every view has told its subscriber. Until then the publisher keeps the document, and every view what
it said of it: a view that fails, or that gets other inputs, may need any of it again. No more than `window` documents are in
the network at once, which bounds what is kept.

Failure: what a node had is lost. It starts again at the first unfinished document and says again what it said; nobody listens
twice, as receivers know what they have, and the subscriber is told only what comes behind the last document he was told of.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from tidings.model.errors import UsageError
from tidings.relay.errors import RowsError
from tidings.relay.files import View
from tidings.relay.pattern import Row
from tidings.relay.plan import PUBLISHER, RelayPlan, site_of
from tidings.relay.runtime.epochs import Epoch, Timeline, queries_of
from tidings.relay.runtime.message import Parts, ViewMessage
from tidings.relay.runtime.node import Emission, RelayNode
from tidings.relay.runtime.pattern_query import match_patterns
from tidings.relay.runtime.query import Matcher, Matching

WINDOW = 16
"""Documents in the network at once."""

Replan = Callable[[RelayPlan, Collection[str]], RelayPlan]
"""From a plan and the views that have failed, a plan of the same views for the documents that are not finished."""


class Result(NamedTuple):
    """What one subscriber is told of one document."""

    view: str
    document: str
    rows: list[Row] | RowsError


class Transfer(NamedTuple):
    """A message on its way."""

    source: str
    target: str
    message: ViewMessage


def same_plan(plan: RelayPlan, failed: Collection[str]) -> RelayPlan:
    """Views that failed start again elsewhere and feed whom they fed before."""
    return plan


class RelayNetwork:
    """UsageError if a plan does not fit its views."""

    def __init__(
        self,
        plan: RelayPlan,
        views: Iterable[View],
        *,
        matching: Matching = match_patterns,
        window: int = WINDOW,
        replan: Replan = same_plan,
    ) -> None:
        self._matching, self._window, self._replan = matching, window, replan
        views = list(views)
        self._sites = {view.id: site_of(view) for view in views}
        self._timeline = Timeline(Epoch(1, 1, plan, queries_of(views)))
        self._matchers: dict[int, Matcher] = {}
        self._documents: dict[int, tuple[str, Any]] = {}
        self._said: dict[int, dict[str, ViewMessage]] = {}
        self._told: dict[int, dict[str, list[Row] | RowsError]] = {}
        self._finished: deque[tuple[str, dict[str, list[Row] | RowsError]]] = deque()
        self._first = self._next = 1
        self._nodes: dict[str, RelayNode] = {}
        self._restarted: set[str] = set()
        self._add_nodes(plan.inputs)
        self.in_flight: deque[Transfer] = deque()
        self.messages = 0
        """How many have been delivered."""

    @property
    def has_room(self) -> bool:
        """Whether a document may be published."""
        return self._next - self._first < self._window

    @property
    def plans(self) -> list[RelayPlan]:
        """Those by which unfinished documents run, and the one for documents to come."""
        return [epoch.plan for epoch in self._timeline.epochs]

    def publish(self, name: str, document: Any) -> None:
        if not self.has_room:
            raise UsageError(f"there are {self._window} unfinished documents: deliver messages before you publish more")
        seq = self._next
        self._next += 1
        self._documents[seq] = name, document
        self._said[seq], self._told[seq] = {}, {}
        self._feed(seq)
        self._finish()

    def deliver(self, at: int = 0) -> None:
        """One of the messages in flight arrives, the oldest if nothing else is said."""
        if at:
            transfer = self.in_flight[at]
            del self.in_flight[at]
        else:
            transfer = self.in_flight.popleft()
        self.messages += 1
        node = self._nodes.get(transfer.target)
        if node is not None:
            self._emit(node.receive(transfer.source, transfer.message))

    def run(self) -> None:
        """Until no message is in flight: all documents are finished then."""
        while self.in_flight:
            self.deliver()

    def results(self) -> Iterator[Result]:
        """What subscribers are told of finished documents: by document, then by view; each once."""
        while self._finished:
            name, told = self._finished.popleft()
            for view in sorted(told):
                yield Result(view, name, told[view])

    def switch(self, plan: RelayPlan, views: Iterable[View]) -> None:
        """Documents published from now on run by this plan. Views may come and go."""
        views = list(views)
        self._timeline.switch(self._next, plan, queries_of(views))
        self._sites = {view.id: site_of(view) for view in views}
        self._reschedule()
        self._add_nodes(plan.inputs)

    def views_at(self, site: str) -> list[str]:
        return [view for view, at in self._sites.items() if at == site]

    def fail(self, failed: Collection[str]) -> None:
        """The nodes of these views are lost with all they have, and what was on its way to them. UsageError for other names."""
        for view in failed:
            if view not in self._nodes:
                raise UsageError(f"view {view!r} is not in the network")
        self.in_flight = deque(transfer for transfer in self.in_flight if transfer.target not in failed)
        for view in failed:
            del self._nodes[view]
            for said in self._said.values():
                said.pop(view, None)
        for at, epoch in enumerate(self._timeline.epochs):
            plan = self._replan(epoch.plan, [view for view in failed if view in epoch.recipes])
            if plan is not epoch.plan:
                self._timeline.replan(at, plan)
        self._reschedule()
        self._add_nodes(failed)
        self._restarted.update(failed)
        self._resend()

    def _reschedule(self) -> None:
        for view, node in self._nodes.items():
            self._emit(node.reschedule(self._timeline.schedule(view)))

    def _add_nodes(self, views: Iterable[str]) -> None:
        for view in views:
            if view not in self._nodes:
                told = max((seq for seq, told in self._told.items() if view in told), default=0)
                self._nodes[view] = RelayNode(view, self._timeline.schedule(view), self._first, told)

    def _resend(self) -> None:
        """All that nodes wait for and that others have said; it may be in flight as well."""
        for view, node in self._nodes.items():
            for seq in range(node.next, self._next):
                for source in node.wants(seq):
                    if source == PUBLISHER:
                        epoch = self._timeline.at(seq)
                        parts = epoch.queries[view].match(self._documents[seq][1])
                        self._send_root(epoch, seq, view, parts)
                    elif (message := self._said[seq].get(source)) is not None:
                        self.in_flight.append(Transfer(source, view, message))

    def _feed(self, seq: int) -> None:
        epoch = self._timeline.at(seq)
        matcher = self._matchers.get(epoch.number)
        if matcher is None:
            matcher = self._matchers[epoch.number] = self._matching(list(epoch.roots))
        for views, parts in zip(epoch.roots.values(), matcher(self._documents[seq][1]), strict=True):
            for view in views:
                self._send_root(epoch, seq, view, parts)

    def _send_root(self, epoch: Epoch, seq: int, view: str, parts: Parts) -> None:
        message = ViewMessage(epoch.number, seq, self._documents[seq][0], view, parts)
        self.in_flight.append(Transfer(PUBLISHER, view, message))

    def _emit(self, emissions: Iterable[Emission]) -> None:
        for message, rows in emissions:
            view, seq = message.view, message.seq
            if seq < self._first:  # said again, and nobody needs it
                continue
            plan = self._timeline.at(seq).plan
            self._said[seq][view] = message
            for target in plan.dependants[view]:
                self.in_flight.append(Transfer(view, target, message))
            if rows is not None:
                told = self._told[seq]
                told[view] = rows
                if len(told) == len(plan.inputs):
                    self._finish()

    def _finish(self) -> None:
        """Gives out what is told of documents that are finished, and forgets the documents."""
        while self._first < self._next:
            told = self._told[self._first]
            if len(told) < len(self._timeline.at(self._first).plan.inputs):
                break
            self._finished.append((self._documents.pop(self._first)[0], told))
            del self._told[self._first], self._said[self._first]
            self._first += 1
        self._catch_up()
        if self._timeline.forget(self._first):
            views = self._timeline.views()
            self._nodes = {view: node for view, node in self._nodes.items() if view in views}
            numbers = {epoch.number for epoch in self._timeline.epochs}
            self._matchers = {number: matcher for number, matcher in self._matchers.items() if number in numbers}

    def _catch_up(self) -> None:
        """Nodes that say again what they said do not go on with documents that are finished: their inputs may be gone."""
        for view in list(self._restarted):
            node = self._nodes.get(view)
            if node is None or node.next > node.told:
                self._restarted.discard(view)
            else:
                self._emit(node.advance(self._first))
