"""Relay: views over documents that feed each other. `parse_pattern` reads the tree pattern of a view."""

from tidings.relay.errors import PatternError
from tidings.relay.pattern import Axis, Pattern, PatternNode, Returned, parse_pattern

__all__ = ["Axis", "Pattern", "PatternError", "PatternNode", "Returned", "parse_pattern"]
