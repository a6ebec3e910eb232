"""Tree patterns as queries of a relay network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tidings.relay.dewey import Key, key_text
from tidings.relay.document import Document
from tidings.relay.evaluate import node_matches
from tidings.relay.message import Part, Parts, encode_parts
from tidings.relay.pattern import Pattern, PatternNode, Returned, Row
from tidings.relay.reduction import KEYS
from tidings.relay.rows import pattern_rows
from tidings.relay.runtime.derive import PatternDerivation, derivation, part_columns
from tidings.relay.runtime.query import Matcher, Matching, Query

PATTERN = "pattern"
"""The kind of query, as views name it."""
NodeMatches = Sequence[Sequence[int]]
"""As of `node_matches`."""
PatternMatching = Callable[[Sequence[Pattern]], Callable[[Document], Sequence[NodeMatches]]]
"""Prepares a function that matches all of some patterns with a document."""


@dataclass(frozen=True)
class PatternQuery:
    """Parts are those of the pattern's nodes, in preorder."""

    pattern: Pattern

    @property
    def described(self) -> tuple[str, str]:
        return PATTERN, self.pattern.text

    def match(self, document: object) -> Parts:
        """None for documents that are no trees."""
        if not isinstance(document, Document):
            return None
        return _Reader(document).parts(self._columns, node_matches(self.pattern, document))

    def derivation(self, sources: Sequence[object]) -> PatternDerivation | None:
        patterns = [source.pattern for source in sources if isinstance(source, PatternQuery)]
        return derivation(self.pattern, patterns) if len(patterns) == len(sources) else None

    def rows(self, parts: Parts) -> list[Row]:
        if parts is None:
            return []
        values = [
            _values(step, part, columns) if step.returns else None
            for step, part, columns in zip(self.pattern.nodes, parts, self._columns, strict=True)
        ]

        def returned(number: int, key: Key) -> Row:
            of = values[number]
            return () if of is None else of[key]

        return pattern_rows(self.pattern, KEYS, [part.ids for part in parts], returned)

    @cached_property
    def _columns(self) -> tuple[tuple[Returned, ...], ...]:
        return tuple(map(part_columns, self.pattern.nodes))


def pattern_matching(prepare: PatternMatching) -> Matching:
    """Matching for a network all of whose views are patterns, by a function that matches many of them at once."""

    def matching(queries: Sequence[Query]) -> Matcher:
        patterns = [query for query in queries if isinstance(query, PatternQuery)]
        assert len(patterns) == len(queries)
        match = prepare([query.pattern for query in patterns])

        def matcher(document: object) -> list[Parts]:
            if not isinstance(document, Document):
                return [None] * len(patterns)
            reader = _Reader(document)
            found = match(document)
            return [reader.parts(query._columns, each) for query, each in zip(patterns, found, strict=True)]

        return matcher

    return matching


def _each(patterns: Sequence[Pattern]) -> Callable[[Document], list[NodeMatches]]:
    return lambda document: [node_matches(pattern, document) for pattern in patterns]


match_patterns = pattern_matching(_each)
"""One pattern after the other; what they say of a node is read once."""


def encode_parts_of(document: Document) -> Callable[[Pattern, NodeMatches], bytes]:
    """Parts of messages as bytes, from the matches of patterns; for matchers elsewhere, see `decode_parts`."""
    reader = _Reader(document)
    return lambda pattern, matches: encode_parts(reader.parts(PatternQuery(pattern)._columns, matches))


class _Reader:
    """Parts of messages from a document. What several patterns ask for is made once, if their matches are one list."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._contents: dict[int, str] = {}
        self._made: dict[tuple[int, tuple[Returned, ...]], tuple[Sequence[int], Part]] = {}

    def parts(self, columns: Sequence[tuple[Returned, ...]], matches: NodeMatches) -> Parts:
        if not len(matches[0]):
            return None
        return tuple([self._part(*each) for each in zip(columns, matches, strict=True)])

    def _part(self, columns: tuple[Returned, ...], nodes: Sequence[int]) -> Part:
        # Lists are kept with what is made of them, so that no other one gets the same address.
        key = id(nodes), columns
        made = self._made.get(key)
        if made is None:
            keys = self._document.keys
            values = tuple([self._values(returned, nodes) for returned in columns])
            made = self._made[key] = nodes, Part([keys[node] for node in nodes], values)
        return made[1]

    def _values(self, returned: Returned, nodes: Sequence[int]) -> list[str]:
        if returned is Returned.VAL:
            return list(map(self._document.val, nodes))
        for node in nodes:
            if node not in self._contents:
                self._contents[node] = self._document.cont(node)
        return [self._contents[node] for node in nodes]


def _values(step: PatternNode, part: Part, columns: Sequence[Returned]) -> dict[Key, Row]:
    """What a step returns, per match."""
    lists = []
    for returned in step.returns:
        if returned is Returned.ID:
            lists.append(list(map(key_text, part.ids)))
        elif returned in columns:
            lists.append(part.columns[columns.index(returned)])
        else:  # the text of a node with a predicate
            assert step.constant is not None
            lists.append([step.constant] * len(part.ids))
    return dict(zip(part.ids, zip(*lists, strict=True), strict=True))
