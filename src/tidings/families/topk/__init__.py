"""Top-k subscriptions: the first k rows within ranges, by a ranking column."""

from tidings.families.topk.family import TopkFamily

__all__ = ["TopkFamily"]
