"""A view at work: takes in what its inputs say, says what it finds, and tells its subscriber. Knows no network.

Messages may come in any order between documents and inputs, and more than once. What a view says comes out once, in the order
of documents: a document waits until all inputs are in, and all documents before it have been done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidings.relay.errors import RowsError
from tidings.relay.message import Parts, ViewMessage
from tidings.relay.plan import PUBLISHER
from tidings.relay.runtime.epochs import Recipe
from tidings.relay.runtime.ledger import Told
from tidings.relay.runtime.query import Query

Schedule = Sequence[tuple[int, Recipe | None]]
"""Recipes by the first document they are for; None where the view is absent."""


class Emission(NamedTuple):
    """What a view has to say of a document, to other views and to its subscriber, who need not be told again: None."""

    message: ViewMessage
    rows: Told | None


class RelayNode:
    """One view.

    next: the first document that is not done. told: the last document of which the subscriber has been told, by this node or
    by one that was in its place before.
    """

    def __init__(self, view: str, schedule: Schedule, start: int, told: int = 0) -> None:
        self.view = view
        self.next = start
        self.told = told
        self._held: dict[int, dict[str, ViewMessage]] = {}
        self._schedule = list(schedule)
        self._skip()

    def reschedule(self, schedule: Schedule) -> list[Emission]:
        """Other recipes from now on; what was said by views that are no longer inputs is dropped."""
        self._schedule = list(schedule)
        self._skip()
        for seq, held in list(self._held.items()):
            recipe = self._recipe(seq)
            self._held[seq] = {
                source: message
                for source, message in held.items()
                if recipe is not None and _is_wanted(recipe, source, message)
            }
        return self._fire()

    def receive(self, source: str, message: ViewMessage) -> list[Emission]:
        seq = message.seq
        if seq < self.next:
            return []
        recipe = self._recipe(seq)
        if recipe is None or not _is_wanted(recipe, source, message):
            return []
        self._held.setdefault(seq, {})[source] = message
        return self._fire() if seq == self.next else []

    def advance(self, seq: int) -> list[Emission]:
        """Leaves out documents before this one: nobody needs to hear of them again."""
        if seq <= self.next:
            return []
        self.next = seq
        self._held = {at: held for at, held in self._held.items() if at >= seq}
        self._skip()
        return self._fire()

    def wants(self, seq: int) -> tuple[str, ...]:
        """The inputs that are to come for a document."""
        recipe = self._recipe(seq)
        if recipe is None or seq < self.next:
            return ()
        held = self._held.get(seq, {})
        return tuple(source for source in recipe.inputs if source not in held)

    @property
    def held(self) -> int:
        """Documents with an input that waits for others."""
        return len(self._held)

    def _fire(self) -> list[Emission]:
        found = []
        while (held := self._held.get(self.next)) is not None:
            recipe = self._recipe(self.next)
            if recipe is None or len(held) < len(recipe.inputs):
                break
            del self._held[self.next]
            found.append(self._emission(recipe, held))
            self.next += 1
            if len(self._schedule) > 1:
                self._skip()
        return found

    def _emission(self, recipe: Recipe, held: dict[str, ViewMessage]) -> Emission:
        first = held[recipe.inputs[0]]
        derive = recipe.derive
        parts = first.parts if derive is None else derive([held[source].parts for source in recipe.inputs])
        message = ViewMessage(recipe.epoch, self.next, first.document, self.view, parts)
        if self.next <= self.told:
            return Emission(message, None)
        return Emission(message, told(recipe.query, parts))

    def _recipe(self, seq: int) -> Recipe | None:
        found = None
        for first, recipe in self._schedule:
            if first > seq:
                break
            found = recipe
        return found

    def _skip(self) -> None:
        """Past recipes that have been used, and documents for which the view is absent."""
        while len(self._schedule) > 1:
            behind = self._schedule[1][0]
            if behind > self.next and self._schedule[0][1] is not None:
                return
            self.next = max(self.next, behind)
            del self._schedule[0]
        if self._schedule:
            self.next = max(self.next, self._schedule[0][0])


def _is_wanted(recipe: Recipe, source: str, message: ViewMessage) -> bool:
    """What the publisher sends to a view, all or some rest of it, depends on the plan; what views say does not."""
    return source in recipe.inputs and (source != PUBLISHER or message.epoch == recipe.epoch)


def told(query: Query, parts: Parts) -> Told:
    """What a subscriber is told of what his view says of a document."""
    if parts is None:
        return []
    try:
        return query.rows(parts)
    except RowsError as error:
        return RowsError(str(error))  # a new one: the traceback of the other keeps the rows in memory
