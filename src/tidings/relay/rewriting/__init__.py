"""Rewritings of the patterns of a set over each other, and of the row queries of a set."""

from tidings.relay.rewriting.rewritings import Rewritings, find_rewritings
from tidings.relay.rewriting.row_rewritings import find_row_rewritings
from tidings.relay.rewriting.row_table import RowTable
from tidings.relay.rewriting.table import PatternTable

__all__ = ["PatternTable", "Rewritings", "RowTable", "find_rewritings", "find_row_rewritings"]
