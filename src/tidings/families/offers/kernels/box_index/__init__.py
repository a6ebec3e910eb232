"""BoxIndex: which boxes meet this one? Hashing on single values, dominance reporting in packed kd-trees on intervals."""

from tidings.families.offers.kernels.box_index.box_index import BoxIndex
from tidings.families.offers.kernels.box_index.box_layout import TEXT_FIELDS, Queries

__all__ = ["TEXT_FIELDS", "BoxIndex", "Queries"]
