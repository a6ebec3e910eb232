"""Drift: told again when a value has moved far enough from the one last told."""

from tidings.families.drift.family import DriftFamily

__all__ = ["DriftFamily"]
