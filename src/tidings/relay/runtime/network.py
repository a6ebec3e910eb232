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
from tidings.relay.files import View
from tidings.relay.message import Parts, ViewMessage
from tidings.relay.plan import PUBLISHER, RelayPlan, own_site, site_of
from tidings.relay.runtime.epochs import Epoch, Timeline, queries_of
from tidings.relay.runtime.ledger import Ledger, Result, Told
from tidings.relay.runtime.matching import match_together
from tidings.relay.runtime.node import Emission, RelayNode
from tidings.relay.runtime.publisher import Publisher
from tidings.relay.runtime.query import Matching

WINDOW = 16
"""Documents in the network at once."""

Replan = Callable[[RelayPlan, Collection[str]], RelayPlan]
"""From a plan and the views that have failed, a plan of the same views for the documents that are not finished."""


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
        matching: Matching = match_together,
        window: int = WINDOW,
        replan: Replan = same_plan,
    ) -> None:
        self._publisher = Publisher(matching)
        self._window, self._replan = window, replan
        views = list(views)
        self._sites = {view.id: site_of(view) for view in views}
        self._timeline = Timeline(Epoch(1, 1, plan, queries_of(views)))
        self._ledger: Ledger[Told] = Ledger()
        self._documents: dict[int, Any] = {}
        self._said: dict[int, dict[str, ViewMessage]] = {}
        self._nodes: dict[str, RelayNode] = {}
        self._restarted: set[str] = set()
        self._add_nodes(plan.inputs)
        self.in_flight: deque[Transfer] = deque()
        self.messages = 0
        """How many have been delivered."""

    @property
    def has_room(self) -> bool:
        """Whether a document may be published."""
        return self._ledger.next - self._ledger.first < self._window

    @property
    def plans(self) -> list[RelayPlan]:
        """Those by which unfinished documents run, and the one for documents to come."""
        return [epoch.plan for epoch in self._timeline.epochs]

    def publish(self, name: str, document: Any) -> None:
        if not self.has_room:
            raise UsageError(f"there are {self._window} unfinished documents: deliver messages before you publish more")
        epoch = self._timeline.current
        if not epoch.recipes:
            self._ledger.open(name, 0)
            return
        seq = self._ledger.open(name, len(epoch.recipes))
        self._documents[seq], self._said[seq] = document, {}
        for view, parts in self._publisher.feeds(epoch, document):
            self._send_root(epoch, seq, view, parts)

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
        return map(Result._make, self._ledger.finished())

    def switch(self, plan: RelayPlan, views: Iterable[View]) -> None:
        """Documents published from now on run by this plan. Views may come and go."""
        views = list(views)
        self._timeline.switch(self._ledger.next, plan, queries_of(views))
        self._sites = {view.id: site_of(view) for view in views}
        self._reschedule()
        self._add_nodes(plan.inputs)

    def views_at(self, site: str) -> list[str]:
        return [view for view, at in self._sites.items() if at in (site, own_site(site))]

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
                told = self._ledger.missing(view) - 1
                self._nodes[view] = RelayNode(view, self._timeline.schedule(view), self._ledger.first, told)

    def _resend(self) -> None:
        """All that nodes wait for and that others have said; it may be in flight as well."""
        for view, node in self._nodes.items():
            for seq in range(node.next, self._ledger.next):
                for source in node.wants(seq):
                    if source == PUBLISHER:
                        epoch = self._timeline.at(seq)
                        parts = epoch.published(view).match(self._documents[seq])
                        self._send_root(epoch, seq, view, parts)
                    elif (message := self._said[seq].get(source)) is not None:
                        self.in_flight.append(Transfer(source, view, message))

    def _send_root(self, epoch: Epoch, seq: int, view: str, parts: Parts) -> None:
        message = ViewMessage(epoch.number, seq, self._ledger.name(seq), view, parts)
        self.in_flight.append(Transfer(PUBLISHER, view, message))

    def _emit(self, emissions: Iterable[Emission]) -> None:
        for message, rows in emissions:
            view, seq = message.view, message.seq
            if seq < self._ledger.first:  # said again, and nobody needs it
                continue
            self._said[seq][view] = message
            for target in self._timeline.at(seq).plan.dependants[view]:
                self.in_flight.append(Transfer(view, target, message))
            if rows is not None and self._ledger.enter(seq, view, rows):
                self._forget()

    def _forget(self) -> None:
        """What is kept for documents that are finished."""
        first = self._ledger.first
        for seq in [seq for seq in self._said if seq < first]:
            del self._documents[seq], self._said[seq]
        for view in list(self._restarted):
            node = self._nodes.get(view)
            if node is None or node.next > node.told:
                self._restarted.discard(view)
            else:
                # It has yet to say again what it said of documents that are finished now: their messages may be gone.
                self._emit(node.advance(first))
        if self._timeline.forget(first):
            views = self._timeline.views()
            self._nodes = {view: node for view, node in self._nodes.items() if view in views}
            self._publisher.forget(self._timeline)
