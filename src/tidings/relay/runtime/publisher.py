"""The source of documents: matches what it feeds, equal queries once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidings.relay.message import Parts
from tidings.relay.runtime.epochs import Epoch, Timeline
from tidings.relay.runtime.query import Matcher, Matching


class Publisher:
    """Prepares matching once for each epoch."""

    def __init__(self, matching: Matching) -> None:
        self._matching = matching
        self._matchers: dict[int, Matcher] = {}

    def feeds(self, epoch: Epoch, document: Any) -> Iterator[tuple[str, Parts]]:
        """What each view that the publisher feeds says of a document."""
        matcher = self._matchers.get(epoch.number)
        if matcher is None:
            matcher = self._matchers[epoch.number] = self._matching(list(epoch.roots))
        for views, parts in zip(epoch.roots.values(), matcher(document), strict=True):
            for view in views:
                yield view, parts

    def forget(self, timeline: Timeline) -> None:
        """What was prepared for epochs that are over."""
        numbers = {epoch.number for epoch in timeline.epochs}
        self._matchers = {number: matcher for number, matcher in self._matchers.items() if number in numbers}
