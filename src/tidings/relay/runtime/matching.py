"""How the publisher matches what it feeds: all patterns at once, with shared work, and other queries one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidings.relay.document import Document
from tidings.relay.matching import PatternMatcher
from tidings.relay.message import Parts
from tidings.relay.pattern import Pattern
from tidings.relay.runtime.pattern_query import NodeMatches, PatternQuery, pattern_matching
from tidings.relay.runtime.query import Matcher, Query, match_each


def match_together(queries: Sequence[Query]) -> Matcher:
    patterns = [place for place, query in enumerate(queries) if isinstance(query, PatternQuery)]
    others = [place for place, query in enumerate(queries) if not isinstance(query, PatternQuery)]
    of_patterns = match_all_patterns([queries[place] for place in patterns])
    of_others = match_each([queries[place] for place in others])

    def matcher(document: object) -> list[Parts]:
        found: list[Parts] = [None] * len(queries)
        for places, match in ((patterns, of_patterns), (others, of_others)):
            if places:
                for place, parts in zip(places, match(document), strict=True):
                    found[place] = parts
        return found

    return matcher


def _together(patterns: Sequence[Pattern]) -> Callable[[Document], Sequence[NodeMatches]]:
    matcher = PatternMatcher(patterns)
    return lambda document: matcher.match(document).all()


match_all_patterns = pattern_matching(_together)
"""For queries that are patterns, all of them."""
