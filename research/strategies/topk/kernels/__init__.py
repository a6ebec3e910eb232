"""Compiled structures of the strategies of top-k."""
