"""Counts of a run: what went in, what the network had to carry, what came out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Stats:
    """Counts of a run, in all and per family, as `--stats` writes them."""

    changes: int = 0
    messages: Counter[str] = field(default_factory=Counter)
    message_bytes: Counter[str] = field(default_factory=Counter)
    deliveries: Counter[str] = field(default_factory=Counter)
    notifications: Counter[str] = field(default_factory=Counter)
    quarantined: int = 0

    def summary(self, seconds: float, peak_rss_mb: float) -> dict[str, Any]:
        counted = ("messages", "message_bytes", "deliveries", "notifications")
        families = sorted({family for name in counted for family in getattr(self, name)})
        totals = {name: sum(getattr(self, name).values()) for name in counted}
        return {
            "changes": self.changes,
            **totals,
            "seconds": round(seconds, 3),
            "peak_rss_mb": round(peak_rss_mb, 1),
            "quarantined": self.quarantined,
            "families": {family: {name: getattr(self, name)[family] for name in counted} for family in families},
        }
