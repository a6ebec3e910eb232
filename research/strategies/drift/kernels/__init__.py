"""Compiled structures of the baselines of drift."""
