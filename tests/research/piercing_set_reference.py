"""What `PiercingSet` means: the fewest numbers that pierce all intervals; and a check of all that the arrays promise."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from research.strategies.join.kernels.piercing_set import ANCHOR, HI, LO, SLACK, TIMES, WITNESSES, PiercingSet

Interval = tuple[int, int]


def fewest(intervals: list[Interval]) -> int:
    """The least number of anchors: going by upper ends, each interval not yet pierced needs one more."""
    count = 0
    last: int | None = None
    for lo, hi in sorted(intervals, key=lambda interval: interval[1]):
        if last is None or lo > last:
            last = hi
            count += 1
    return count


def check(pierced_by: PiercingSet, intervals: Counter[Interval]) -> None:
    """Every interval is pierced, by not many more anchors than are needed, and nothing else is held."""
    present = {interval: times for interval, times in intervals.items() if times}
    anchors = pierced_by.anchors().tolist()
    assert anchors == sorted(set(anchors))
    assert len(pierced_by) == len(present)
    assert len(anchors) <= 1.5 * fewest(list(present)) + SLACK
    held = pierced_by._table[pierced_by._table[:, TIMES] > 0]
    assert {(row[LO], row[HI]): row[TIMES] for row in held.tolist()} == present
    assert all(row[LO] <= row[ANCHOR] <= row[HI] for row in held.tolist())
    pierced = Counter(held[:, ANCHOR].tolist())
    assert anchors == sorted(pierced)
    counted = pierced_by._pierced[pierced_by._pierced[:, TIMES] > 0]
    assert {row[LO]: row[TIMES] for row in counted.tolist()} == pierced
    _, los, his = pierced_by._lists.gather([WITNESSES])
    witnesses = list(zip(los.tolist(), his.tolist(), strict=True))
    assert all(witness in present for witness in witnesses)
    assert all(before[1] < after[0] for before, after in pairwise(witnesses))
