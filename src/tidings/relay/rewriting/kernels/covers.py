"""The first k minimal covers of a target's needs by masks: set cover by branching, with a budget.

At each step the uncovered bit with the fewest candidates is branched on, in a given order of candidates. A candidate that
leaves an earlier choice without a bit of its own is passed over, so that every cover found is minimal.

The first cover of each candidate for the first bit comes before the second of any: a search that empties one branch after the
other would give k covers that all need the same view, which has no capacity for all who would want it. For the same reason
deeper branches start at another one of the first candidates each time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.intrinsics import lowest_bit
from tidings.kernels.jit import kernel

DEPTH_MAX = 6
"""Views of a rewriting."""
STEPS_MAX = 3000
"""Candidates that are tried for one target."""
_SPREAD = 8
"""Among how many of the first candidates deeper branches start."""

U64 = np.uint64


@kernel(nogil=True)
def first_covers(
    masks: Any, count: Any, full: Any, k: Any, seed: Any, first: Any, members: Any, found: Any, sizes: Any
) -> Any:
    """How many covers were found, at most k: half of them by cost, the others by chance. See `minimal_covers`.

    masks: what each candidate covers, cheapest candidate first. The cheapest sources of a target are those most like it, which
    are far from the publisher: a plan with little latency needs others as well.
    """
    order = np.arange(count)
    cheap = (k + 1) // 2
    made = minimal_covers(masks, order, full, cheap, first, members, found, sizes, np.int64(0))
    if made < cheap or made == k:
        return made
    shuffle(order, seed)
    return minimal_covers(masks, order, full, k, first, members, found, sizes, made)


@kernel(nogil=True, _nrt=False)
def shuffle(order: Any, seed: Any) -> None:
    """Any order, the same for the same seed."""
    state = U64(seed) * U64(0x9E3779B97F4A7C15) + U64(1)
    for last in range(len(order) - 1, 0, -1):
        state ^= state << U64(13)
        state ^= state >> U64(7)
        state ^= state << U64(17)
        other = np.int64(state % U64(last + 1))
        order[last], order[other] = order[other], order[last]


@kernel(nogil=True)
def lists_by_bit(masks: Any, order: Any, first: Any, members: Any) -> None:
    """Candidates of each bit, in an order: members[first[b]:first[b + 1]]."""
    first[:] = 0
    for candidate in order:
        rest = masks[candidate]
        while rest:
            first[lowest_bit(rest) + 1] += 1
            rest &= rest - U64(1)
    for bit in range(64):
        first[bit + 1] += first[bit]
    at = first.copy()
    for candidate in order:
        rest = masks[candidate]
        while rest:
            bit = lowest_bit(rest)
            members[at[bit]] = candidate
            at[bit] += 1
            rest &= rest - U64(1)


@kernel(nogil=True, _nrt=False)
def rarest_bit(uncovered: Any, first: Any) -> Any:
    best, fewest = -1, np.int64(2**62)
    rest = uncovered
    while rest:
        bit = lowest_bit(rest)
        count = first[bit + 1] - first[bit]
        if count < fewest:
            best, fewest = bit, count
        rest &= rest - U64(1)
    return best


@kernel(nogil=True)
def minimal_covers(
    masks: Any, order: Any, full: Any, k: Any, first: Any, members: Any, found: Any, sizes: Any, made: Any
) -> Any:
    """How many covers there are now, at most k, with `made` that were there before.

    found[i, :sizes[i]] are the candidates of the i-th, in rising order. masks: what each candidate covers. order: in which
    candidates are tried. first, members: room for `lists_by_bit`.
    """
    lists_by_bit(masks, order, first, members)
    rest = full
    while rest:
        bit = lowest_bit(rest)
        if first[bit] == first[bit + 1]:
            return made
        rest &= rest - U64(1)
    steps = np.int64(0)
    root = rarest_bit(full, first)
    width = first[root + 1] - first[root]
    quota = max(np.int64(1), k // (np.int64(2) * width))
    while True:
        before = made
        emptied = True
        for start in range(first[root], first[root + 1]):
            made, steps, ended = _below(
                masks, full, members[start], quota, k, first, members, found, sizes, made, steps
            )
            emptied &= ended
            if made == k or steps >= STEPS_MAX:
                return made
        if emptied or (made == before and quota >= k):
            return made
        quota = min(2 * quota + 1, k)


@kernel(nogil=True)
def _below(
    masks: Any,
    full: Any,
    root: Any,
    quota: Any,
    k: Any,
    first: Any,
    members: Any,
    found: Any,
    sizes: Any,
    made: Any,
    steps: Any,
) -> Any:
    """Covers that contain the candidate `root`: at most `quota` new ones, and whether the branch was emptied."""
    chosen = np.empty(DEPTH_MAX, np.int64)
    covered = np.empty(DEPTH_MAX + 1, U64)  # by the choices above
    shared = np.empty(DEPTH_MAX + 1, U64)  # by two of them or more
    begin = np.empty(DEPTH_MAX, np.int64)
    width = np.empty(DEPTH_MAX, np.int64)
    tried = np.empty(DEPTH_MAX, np.int64)
    offset = np.empty(DEPTH_MAX, np.int64)
    chosen[0] = root
    covered[1] = masks[root]
    shared[1] = U64(0)
    depth = 1
    limit = made + quota
    if covered[1] == full:
        if _is_new(chosen, 1, found, sizes, made):
            found[made, 0] = root
            sizes[made] = 1
            made += 1
        return made, steps + 1, True
    entering = True
    while depth > 0:
        if entering:
            bit = rarest_bit(full & ~covered[depth], first)
            begin[depth] = first[bit]
            width[depth] = first[bit + 1] - first[bit]
            tried[depth] = 0
            offset[depth] = (made + root) % min(width[depth], _SPREAD)
            entering = False
        if tried[depth] == width[depth]:
            depth -= 1
            continue
        if steps >= STEPS_MAX:
            return made, steps, False
        at = offset[depth] + tried[depth]
        if at >= width[depth]:
            at -= width[depth]
        candidate = members[begin[depth] + at]
        tried[depth] += 1
        steps += 1
        mask = masks[candidate]
        multiple = shared[depth] | (covered[depth] & mask)
        chosen[depth] = candidate
        if _is_redundant(masks, chosen, depth + 1, multiple):
            continue
        if covered[depth] | mask == full:
            if _is_new(chosen, depth + 1, found, sizes, made):
                for i in range(depth + 1):
                    found[made, i] = chosen[i]
                found[made, : depth + 1].sort()
                sizes[made] = depth + 1
                made += 1
                if made == k or made == limit:
                    return made, steps, False
            continue
        if depth + 1 < DEPTH_MAX:
            covered[depth + 1] = covered[depth] | mask
            shared[depth + 1] = multiple
            depth += 1
            entering = True
    return made, steps, True


@kernel(nogil=True, _nrt=False)
def _is_redundant(masks: Any, chosen: Any, count: Any, multiple: Any) -> Any:
    """Whether one of the choices covers nothing that no other does."""
    for i in range(count):
        if masks[chosen[i]] & ~multiple == 0:
            return True
    return False


@kernel(nogil=True, _nrt=False)
def _is_new(chosen: Any, count: Any, found: Any, sizes: Any, made: Any) -> Any:
    for i in range(made):
        if sizes[i] != count:
            continue
        common = 0
        for j in range(count):
            for other in range(count):
                if found[i, j] == chosen[other]:
                    common += 1
        if common == count:
            return False
    return True


@kernel(nogil=True, _nrt=False)
def store_covers(
    sources: Any, found: Any, sizes: Any, covers: Any, members: Any, ends: Any, made: Any, end: Any
) -> Any:
    """Writes covers behind the `made` ones that end at `end`, as sources; returns both as they are afterwards."""
    for cover in range(covers):
        for place in range(sizes[cover]):
            members[end] = sources[found[cover, place]]
            end += 1
        ends[made] = end
        made += 1
    return made, end
