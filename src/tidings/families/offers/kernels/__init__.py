"""Compiled loops of the offers family."""
