"""What the moves of a timeline make of messages and bytes, to ranges and by unicast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from research.bench.drift.data import DriftData, Timeline
from research.bench.drift.replay import DriftReplay, region_bytes, unicast_bytes
from research.strategies.drift.kernels.threshold_index import ABSOLUTE, ThresholdIndex
from tidings.model.codes import Int64Array

CHUNK = 1_000
_EPOCH_BYTES = 8
"""Of the epoch of labels in each message."""
_RENEWAL_BYTES, _LABEL_BYTES = 24, 16
"""Of a message that renews labels: item, radius and epoch; and for each label the old one and the new one."""


@dataclass(frozen=True)
class Outcome:
    """An element per event."""

    told: Int64Array
    ranges: Int64Array
    kept_ranges: Int64Array
    """Ranges if labels stay as they are."""
    region_bytes: Int64Array
    arrivals: int
    """People who came during these events."""
    unicast_bytes: float
    """Of one message."""
    renewals: int
    """How often labels were renewed for them."""
    relabelled: int
    """Labels that changed."""

    def messages(self) -> dict[str, float]:
        """The server's messages per event. A message of ours has several ranges; the paper sends each by itself."""
        late = len(self.told) * 9 // 10
        return {
            "unicast": float(self.told.mean()),
            "ranges": float(self.ranges.mean()),
            "messages": float((self.ranges > 0).mean()),
            "late_unicast": float(self.told[late:].mean()),
            "late_ranges": float(self.ranges[late:].mean()),
            "unicast_max": int(self.told.max()),
            "ranges_max": int(self.ranges.max()),
            "kept_ranges_max": int(self.kept_ranges.max()),
            "ranges_below_100": float((self.ranges < 100).mean()),
            "renewals": self.renewals,
            "relabelled": self.relabelled,
            "arrivals": self.arrivals,
        }

    def traffic(self) -> dict[str, float]:
        """Bytes that leave the server per event, and per operation: arrivals, too, are answered with the row."""
        events = len(self.told)
        renewed = self.renewals * _RENEWAL_BYTES + self.relabelled * _LABEL_BYTES
        region, unicast = float(self.region_bytes.sum()) + renewed, float(self.told.sum() * self.unicast_bytes)
        answers = self.arrivals * self.unicast_bytes
        operations = events + self.arrivals
        return {
            "region_bytes": region / events,
            "unicast_bytes": unicast / events,
            "region_bytes_per_operation": (region + answers) / operations,
            "unicast_bytes_per_operation": (unicast + answers) / operations,
            "renewed_bytes_per_operation": renewed / operations,
        }


def play(timeline: Timeline, begin: int) -> Outcome:
    """Everything but time, from the move `begin` on."""
    # Who is told is counted by labels that stay, as those that are renewed mean another thing before and after.
    plain, renewing = DriftReplay(timeline), DriftReplay(timeline, ThresholdIndex(ABSOLUTE, renews=True))
    data = DriftData(timeline)
    plain.play(begin)
    renewing.play(begin)
    arrivals, known = timeline.size - plain.joined, len(renewing.renewals)
    told, ranges, kept, sizes = [], [], [], []
    while plain.at < timeline.moves:
        members = plain.members()
        stayed = plain.play(CHUNK)
        told.append(plain.told(stayed, members))
        kept.append(np.diff(stayed.touched.starts))
        moved = renewing.play(CHUNK)
        ranges.append(np.diff(moved.touched.starts))
        sizes.append(region_bytes(data, moved) + _EPOCH_BYTES * (ranges[-1] > 0))
    renewals = renewing.renewals[known:]
    return Outcome(
        np.concatenate(told),
        np.concatenate(ranges),
        np.concatenate(kept),
        np.concatenate(sizes),
        arrivals,
        unicast_bytes(data),
        len(renewals),
        sum(len(renewal.old) for renewal in renewals),
    )
