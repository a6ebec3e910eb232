"""ThresholdIndex: which members does the new value of an item reach, each of whom has a threshold of its own?

A B+-tree with aggregates over runs of members that were last told the same, in the order of thresholds: a move visits only
runs that hold a reached member. docs/design/2026-11-16-drift.md has the published structures it was compared with.
"""

from research.strategies.drift.kernels.threshold_index.index import Runs, ThresholdIndex, Touched
from research.strategies.drift.kernels.threshold_index.layout import (
    ABSOLUTE,
    CHOOSE,
    LABEL_MAX,
    LABEL_MIN,
    NO_TIME,
    PERCENT,
    RATIO,
)
from research.strategies.drift.kernels.threshold_index.renewal import Renewal

__all__ = [
    "ABSOLUTE",
    "CHOOSE",
    "LABEL_MAX",
    "LABEL_MIN",
    "NO_TIME",
    "PERCENT",
    "RATIO",
    "Renewal",
    "Runs",
    "ThresholdIndex",
    "Touched",
]
