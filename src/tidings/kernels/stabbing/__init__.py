"""StabbingIndex: which boxes hold this vector? Buckets by equality constants, packed kd-trees over the ranges in each."""

from tidings.kernels.stabbing.change import set_high
from tidings.kernels.stabbing.index import BoxShape, StabbingIndex
from tidings.kernels.stabbing.layout import (
    CODE,
    EQUAL,
    NEW,
    OLD,
    TEXT_START,
    TEXT_STOP,
    VALID,
    VECTOR_FIELDS,
    Boxes,
)
from tidings.kernels.stabbing.query import stab

__all__ = [
    "CODE",
    "EQUAL",
    "NEW",
    "OLD",
    "TEXT_START",
    "TEXT_STOP",
    "VALID",
    "VECTOR_FIELDS",
    "BoxShape",
    "Boxes",
    "StabbingIndex",
    "set_high",
    "stab",
]
