"""Compiled loops of the select family."""
