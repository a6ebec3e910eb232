"""Top-k: the k first rows within a range."""

from tidings.families.topk.family import TopkFamily

__all__ = ["TopkFamily"]
