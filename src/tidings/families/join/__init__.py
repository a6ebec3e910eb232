"""Join subscriptions: joined rows of several tables."""

from tidings.families.join.family import JoinFamily

__all__ = ["JoinFamily"]
