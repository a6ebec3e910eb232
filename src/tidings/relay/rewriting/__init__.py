"""Rewritings of the patterns of a set over each other."""

from tidings.relay.rewriting.rewritings import Rewritings, find_rewritings
from tidings.relay.rewriting.table import PatternTable

__all__ = ["PatternTable", "Rewritings", "find_rewritings"]
