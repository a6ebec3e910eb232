"""What nodes and networks know of views: how to match a document, to compute one view from others, and to list rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tidings.relay.message import Parts
from tidings.relay.pattern import Row

Derivation = Callable[[Sequence[Parts]], Parts]
"""From what each source says of a document, what the target says of it."""


class Query(Protocol):
    """What a view asks for. Equal queries are equal values, and hashable."""

    @property
    def described(self) -> tuple[str, str]:
        """What kind of query it is, and its text: for other processes (`read_query`)."""

    def match(self, document: Any) -> Parts:
        """By looking at the document itself."""

    def derivation(self, sources: Sequence[Any]) -> Derivation | None:
        """By looking at what views with these queries say; prepared once. None if that is not enough."""

    def rows(self, parts: Parts) -> list[Row]:
        """What the subscriber is told: distinct and sorted. RowsError if there are too many."""


Matcher = Callable[[Any], Sequence[Parts]]
"""What each of some queries says of a document."""
Matching = Callable[[Sequence[Query]], Matcher]
"""Prepares a matcher for queries that are all different."""


def match_each(queries: Sequence[Query]) -> Matcher:
    """One query after the other."""
    return lambda document: [query.match(document) for query in queries]
