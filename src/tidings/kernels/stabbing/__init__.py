"""StabbingIndex: which boxes hold this vector? Buckets by equality constants, packed kd-trees over the ranges in each."""

from tidings.kernels.stabbing.conditions import exact_sides, holds, owner_and_mask, ranges_of
from tidings.kernels.stabbing.stabbing_change import set_high
from tidings.kernels.stabbing.stabbing_index import BoxShape, StabbingIndex, TextEnds, Texts
from tidings.kernels.stabbing.stabbing_layout import (
    CODE,
    EQUAL,
    KIND_FIELDS,
    KIND_TAG,
    NEW,
    OLD,
    SIDES,
    TEXT_START,
    TEXT_STOP,
    VALID,
    VECTOR_FIELDS,
    Boxes,
    Pointers,
    pointers_of,
)
from tidings.kernels.stabbing.stabbing_query import stab

__all__ = [
    "CODE",
    "EQUAL",
    "KIND_FIELDS",
    "KIND_TAG",
    "NEW",
    "OLD",
    "SIDES",
    "TEXT_START",
    "TEXT_STOP",
    "VALID",
    "VECTOR_FIELDS",
    "BoxShape",
    "Boxes",
    "Pointers",
    "StabbingIndex",
    "TextEnds",
    "Texts",
    "exact_sides",
    "holds",
    "owner_and_mask",
    "pointers_of",
    "ranges_of",
    "set_high",
    "stab",
]
