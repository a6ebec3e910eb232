"""Join subscriptions: rows of several tables that belong together."""

from tidings.families.join.family import JoinFamily

__all__ = ["JoinFamily"]
