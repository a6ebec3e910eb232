"""The label of a new member: next to those whose anchors are next to its own, so that a move reaches ranges of labels.

If there is none left between two neighbours, one that is near does, and what a move reaches may fall into more ranges; or, if
the index renews labels, some are given anew (`renewal`), and the order of a reach's labels is always that of its anchors.
"""

from __future__ import annotations

import numpy as np

from research.strategies.drift.kernels.threshold_index.layout import (
    ABSOLUTE,
    CHOOSE,
    DN,
    GAP,
    ITEM_FIELDS,
    KIND,
    L1,
    L2,
    LABEL_MAX,
    LABEL_MIN,
    LO,
    PERCENT,
    RENEWS,
    STEP,
    T0,
    TIME,
    UP,
    C,
    N,
    Pointers,
    thresholds,
)
from research.strategies.drift.kernels.threshold_index.runs import block_of, child_of, find, is_at, root_of, step
from tidings.kernels.arrays import Float, Int
from tidings.kernels.jit import kernel

LABEL_STEP = 1 << 32
"""Distance of a label from the one before it, if it is the last of its reach: room for others in between."""
GAPS_TRIED = 16
"""If there is no label left right behind an anchor, one behind the next few will do: near is nearly as good."""
# Where a member goes: as any with a given label; into a part; behind a part. Or there is no label left.
AS_GIVEN, INTO, BEHIND, NOWHERE = 0, 1, 2, 3


@kernel
def highest_below(s: Pointers, offset: Int, k: Int, start: Int, end: Int, limit: Float, slack: Float) -> Float:
    """The highest DN, of so many entries of a list, that is surely that of an anchor below the one with DN `limit`."""
    highest = -np.inf
    at = offset + (DN << k)
    for i in range(start, end):
        dn = s.f[at + i]
        if dn > highest and dn < limit - slack:
            highest = dn
    return highest


@kernel
def predecessor(s: Pointers, item: Int, reach: Float, d: Float, t: Int) -> tuple[Int, Int, Int, bool]:
    """Place of the first part of a reach with anchor (d, t), and True; else of the one with the highest anchor below d.

    Node -1 if there is neither. For one reach, thresholds rise with the anchor (for PERCENT: if the reach is less than
    100, and but for rounding, which `slack` allows for): so nodes and blocks are passed over by their aggregates.
    """
    n0, b0, i0 = find(s, item, reach, LABEL_MIN)
    if i0 < 0:
        i0 = 0
    else:
        n0, b0, i0 = step(s, item, n0, b0, i0)
    n1, b1, i1 = find(s, item, reach, LABEL_MAX)
    kind = s.head[KIND]
    up, dn = thresholds(kind, d, reach)
    slack = 0.0 if kind != PERCENT else abs(d) * 1e-9
    if kind == PERCENT and reach > 99:
        up, dn, slack = np.inf, -np.inf, 0.0
    root, _, kr = root_of(s, item)
    floor = highest_below(s, root, kr, n0 + 1, n1, dn, slack)
    best = -np.inf
    found, at_b, at_i = -1, 0, 0
    for ni in range(n0, n1 + 1):
        at = root + ni
        inside = n0 < ni < n1
        if inside and (s.f[at + (UP << kr)] > up + slack or s.f[at + (DN << kr)] < floor - slack):
            continue
        node, blocks, kn = child_of(s, root, kr, ni)
        start, end = (b0 if ni == n0 else 0), (b1 + 1 if ni == n1 else blocks)
        floor = max(floor, highest_below(s, node, kn, start + (ni == n0), end - (ni == n1), dn, slack))
        for bi in range(start, end):
            at = node + bi
            inside = not ((ni == n0 and bi == b0) or (ni == n1 and bi == b1))
            if inside and (s.f[at + (UP << kn)] > up + slack or s.f[at + (DN << kn)] < floor - slack):
                continue
            offset, size, k = child_of(s, node, kn, bi)
            begin = i0 if ni == n0 and bi == b0 else 0
            stop = i1 + 1 if ni == n1 and bi == b1 else size
            for i in range(begin, stop):
                c = s.f[offset + (C << k) + i]
                if c == d and s.m[offset + (T0 << k) + i] == t:
                    return ni, bi, i, True
                if c < d and c > best:
                    best, found, at_b, at_i = c, ni, bi, i
    return found, at_b, at_i, False


@kernel
def beyond(s: Pointers, label: Int, share: Float) -> Int:
    """A label above a given one, by this share of the usual distance; CHOOSE if there is none."""
    if label == LABEL_MAX:
        return CHOOSE
    # Two thousand million steps; towards the end shorter ones.
    room = min(s.head[STEP], (LABEL_MAX - max(label, 0)) >> 4)
    return label + max(1, int(room * share))


@kernel
def share_between(kind: Int, reach: Float, below: Float, above: Float, d: Float) -> Float:
    """How far from one anchor to the next a new one is, if the order goes round with the reach; a half if in doubt.

    Labels spread like the anchors themselves leave room where more will come: next to the last one.
    """
    if kind == ABSOLUTE:
        if above <= below:
            above += reach
        if d < below:
            d += reach
    share = (d - below) / (above - below) if above > below else 0.5
    return share if 0.0 < share < 1.0 else 0.5


@kernel
def choose(s: Pointers, item: Int, reach: Float, highest: Int) -> tuple[Int, Int, Int, Int, Int]:
    """Label for a new member of an item that is alone with its audience, and where it goes: (label, how, node, block, place).

    Members with one anchor share a label. A new anchor gets one right behind the next lower anchor of its reach, the
    highest coming before the lowest: so what a move touches of a reach tends to be one range of labels, or two.
    """
    d, t = s.values[item], s.items[item * ITEM_FIELDS + TIME]
    if np.isnan(d):
        return highest, AS_GIVEN, 0, 0, 0
    ni, bi, i = find(s, item, reach, LABEL_MAX)
    offset, _, k = block_of(s, item, ni, bi)
    if s.m[offset + (N << k) + i] == 0:
        label = highest if is_at(s, offset, k, i, d, t) else beyond(s, highest, 1.0)
        return label, NOWHERE if label == CHOOSE else AS_GIVEN, 0, 0, 0
    ni, bi, i, same = predecessor(s, item, reach, d, t)
    if ni < 0:
        ni, bi, i, _ = predecessor(s, item, reach, np.inf, t)
    if ni < 0:
        ni, bi, i = find(s, item, reach, LABEL_MAX)
    offset, _, k = block_of(s, item, ni, bi)
    label = s.m[offset + (L2 << k) + i]
    if same:
        return label, INTO, ni, bi, i
    kind, anchor = s.head[KIND], s.f[offset + (C << k) + i]
    share = share_between(kind, reach, anchor, anchor, d)
    for tried in range(GAPS_TRIED):
        n2, b2, i2 = step(s, item, ni, bi, i)
        if n2 < 0:
            break
        offset, _, k = block_of(s, item, n2, b2)
        if s.f[offset + (LO << k) + i2] != reach:
            break
        following = s.m[offset + (L1 << k) + i2]
        if label + 1 < following:
            if tried == 0:
                share = share_between(kind, reach, anchor, s.f[offset + (C << k) + i2], d)
            gap = np.float64(following) - np.float64(label)
            inside = label + max(1, int(gap * (share if tried == 0 else 0.5)))
            return min(inside, following - 1), BEHIND, ni, bi, i
        if s.head[RENEWS]:
            s.head[GAP] = label
            return CHOOSE, NOWHERE, 0, 0, 0
        ni, bi, i, label = n2, b2, i2, s.m[offset + (L2 << k) + i2]
        share = 1.0
    else:
        label, share = highest, 1.0
    label = beyond(s, label, share)
    return label, NOWHERE if label == CHOOSE else AS_GIVEN, 0, 0, 0
