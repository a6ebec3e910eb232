"""Compiled parts of the join family."""
