"""Compiled loops of the planner, on flat arrays."""
