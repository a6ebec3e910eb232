"""Many patterns matched against a document at once: equal parts of patterns and equal lists of matches are worked out once."""

from tidings.relay.matching.matcher import Matches, PatternMatcher

__all__ = ["Matches", "PatternMatcher"]
