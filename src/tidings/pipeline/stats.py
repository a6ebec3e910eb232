"""Counts of a run: what went in, what the network had to carry, what came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tidings.families.spec import Form
from tidings.model.message import MessageBatch
from tidings.network.wire import wire_size


@dataclass
class Stats:
    """Counts of a run, in all and per family, as `--stats` writes them."""

    changes: int = 0
    messages: Counter[str] = field(default_factory=Counter)
    message_bytes: Counter[str] = field(default_factory=Counter)
    deliveries: Counter[str] = field(default_factory=Counter)
    notifications: Counter[str] = field(default_factory=Counter)
    quarantined: int = 0

    def count_messages(self, batches: Iterable[MessageBatch], *, counts_bytes: bool) -> None:
        """Counts messages that are not encoded. counts_bytes: encode them to count their bytes, which takes time."""
        for batch in batches:
            family = Form.from_key(batch.form).family
            self.messages[family] += len(batch)
            if counts_bytes:
                self.message_bytes[family] += wire_size(batch)

    def count_sent(self, batch: MessageBatch, sizes: Iterable[int]) -> None:
        """Counts messages that have been sent. sizes: encoded bytes, one entry for each receiver."""
        family = Form.from_key(batch.form).family
        self.messages[family] += len(batch)
        self.message_bytes[family] += sum(sizes)

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
