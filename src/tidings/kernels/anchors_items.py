"""Items as such: making and forgetting them."""

from __future__ import annotations

import numpy as np

from tidings.kernels.anchors_arrays import (
    AUDIENCE_FIELDS,
    F64,
    FIRST_ITEM,
    I64,
    ITEM_AUDIENCE,
    ITEM_FIELDS,
    ITEM_FREE,
    ITEM_SHAPE,
    ITEM_TOP,
    ITEMS,
    NEXT,
    PREVIOUS,
    TIME,
    TOTAL,
    Int,
    Pointers,
    pointers,
)
from tidings.kernels.anchors_members import extremes
from tidings.kernels.anchors_runs import free_runs, start_runs
from tidings.kernels.jit import kernel


@kernel
def link(s: Pointers, item: Int, audience: Int) -> None:
    """Make an item follow an audience."""
    following = s.audiences[audience * AUDIENCE_FIELDS + FIRST_ITEM]
    s.items[item * ITEM_FIELDS + ITEM_AUDIENCE] = audience
    s.items[item * ITEM_FIELDS + NEXT] = following
    s.items[item * ITEM_FIELDS + PREVIOUS] = -1
    s.items[item * ITEM_FIELDS + ITEM_SHAPE] = 0
    if following >= 0:
        s.items[following * ITEM_FIELDS + PREVIOUS] = item
    s.audiences[audience * AUDIENCE_FIELDS + FIRST_ITEM] = item
    s.audiences[audience * AUDIENCE_FIELDS + ITEMS] += 1


@kernel
def new_items(
    head: I64,
    items: I64,
    values: F64,
    audiences: I64,
    m: I64,
    f: F64,
    followed: I64,
    new_values: F64,
    new_times: I64,
) -> I64:
    """Make items, for which there is room; returns their numbers."""
    s = pointers(head, items, values, audiences, m, f)
    made = np.empty(followed.shape[0], np.int64)
    for i in range(followed.shape[0]):
        item = head[ITEM_FREE]
        if item >= 0:
            head[ITEM_FREE] = items[item, NEXT]
        else:
            item = head[ITEM_TOP]
            head[ITEM_TOP] += 1
        made[i] = item
        link(s, item, followed[i])
        values[item] = new_values[i]
        items[item, TIME] = new_times[i]
        if audiences[followed[i], TOTAL] and not np.isnan(new_values[i]):
            lo, hi = extremes(s, followed[i])
            start_runs(s, item, lo, hi)
    return made


@kernel
def free_item(
    head: I64,
    items: I64,
    values: F64,
    audiences: I64,
    m: I64,
    f: F64,
    item: Int,
) -> None:
    """Forget an item."""
    s = pointers(head, items, values, audiences, m, f)
    free_runs(s, item)
    audience, before, following = items[item, ITEM_AUDIENCE], items[item, PREVIOUS], items[item, NEXT]
    if following >= 0:
        items[following, PREVIOUS] = before
    if before >= 0:
        items[before, NEXT] = following
    else:
        audiences[audience, FIRST_ITEM] = following
    audiences[audience, ITEMS] -= 1
    values[item] = np.nan
    items[item, ITEM_AUDIENCE] = -1
    items[item, NEXT] = head[ITEM_FREE]
    head[ITEM_FREE] = item
