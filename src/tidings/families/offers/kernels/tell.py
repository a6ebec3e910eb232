"""Who is told what: matches of the row before and after each change, merged by subscription."""

from __future__ import annotations

import numpy as np

from tidings.families.offers.kernels import rankings
from tidings.families.offers.kernels.rankings import LIMIT, looks_alike
from tidings.kernels.arrays import I64
from tidings.kernels.jit import kernel
from tidings.kernels.lives import PROJECTION, SINCE, UNTIL, Lives
from tidings.kernels.rows.read import NONE, rows_at

OLD, NEW, SIDES = 1, 2, 3
"""Which of the two rows a subscription matches; the bits of both."""

# Fields of a match: the event, the side, the subscription, and the rank if that is ordered.
EVENT, SIDE, SLOT, RANK, MATCH_FIELDS = range(5)

# Fields of `counts`: entries of told, tails, changes, and of steps of ranked subscriptions; stamps given.
TOLD, TAILS, CHANGES, STEPS, CLOCK, COUNTS = range(6)

# Fields of a projection's memory: when it was used last; whether it shows the change at all; its tail for each kind of change.
USED_AT, IS_SHOWN, TAIL_OF, MEMORY_FIELDS = 0, 1, 2, 6


@kernel
def tell_matches(
    handles: I64,
    matches: I64,
    old: I64,
    new: I64,
    lives: Lives,
    lists: I64,
    best: I64,
    starts: I64,
    column: I64,
    marks: I64,
    memory: I64,
    counts: I64,
    told: I64,
    tails: I64,
    changes: I64,
    steps: I64,
) -> None:
    """Goes through matches, sorted by event. There is room: told and tails for all matches, three changes for each event.

    old, new: [events], versions. lists: of ranked subscriptions; best: [slots, 2], scratch for their best ranks. marks:
    [slots], 4 * clock + sides of the event that last concerned each. memory: [projections, MEMORY_FIELDS]. steps: [matches,
    STEP_FIELDS], gets what concerns ranked subscriptions.
    """
    rows = rows_at(handles)
    at = tail_count = change_count = ranked_count = first = np.int64(0)
    change_of = np.empty(4, np.int64)
    while first < len(matches):
        event = matches[first, EVENT]
        counts[CLOCK] += 1
        clock = counts[CLOCK]
        # Those concerned are noted, once each, where they will be told; there were at least as many matches.
        stop, concerned = first, at
        while stop < len(matches) and matches[stop, EVENT] == event:
            slot, side = matches[stop, SLOT], matches[stop, SIDE]
            if marks[slot] >> 2 == clock:
                if lists[slot, LIMIT]:
                    rank = matches[stop, RANK]
                    if marks[slot] & side:
                        rank = min(rank, best[slot, side >> 1])
                    best[slot, side >> 1] = rank
                marks[slot] |= side
            elif lives[slot, SINCE] < event < lives[slot, UNTIL]:
                marks[slot] = clock << 2 | side
                if lists[slot, LIMIT]:
                    best[slot, side >> 1] = matches[stop, RANK]
                told[1, concerned] = slot
                concerned += 1
            stop += 1
        first = stop
        change_of[:] = NONE
        for i in range(at, concerned):
            slot = told[1, i]
            sides = marks[slot] & SIDES
            if lists[slot, LIMIT]:
                step = steps[ranked_count]
                step[rankings.EVENT], step[rankings.SIDE], step[rankings.SLOT] = event, sides, slot
                step[rankings.OLD_RANK], step[rankings.NEW_RANK] = best[slot, 0], best[slot, 1]
                ranked_count += 1
                continue
            projection = lives[slot, PROJECTION]
            if memory[projection, USED_AT] != clock:
                memory[projection, USED_AT], memory[projection, IS_SHOWN] = clock, NONE
                for kind in range(1, 4):
                    memory[projection, TAIL_OF + kind] = NONE
            if sides == SIDES:
                if memory[projection, IS_SHOWN] == NONE:
                    memory[projection, IS_SHOWN] = not looks_alike(
                        rows, starts, column, projection, old[event], new[event]
                    )
                if not memory[projection, IS_SHOWN]:
                    continue
            if memory[projection, TAIL_OF + sides] == NONE:
                if change_of[sides] == NONE:
                    change_of[sides] = change_count
                    changes[change_count, 0] = old[event] if sides & OLD else NONE
                    changes[change_count, 1] = new[event] if sides & NEW else NONE
                    change_count += 1
                memory[projection, TAIL_OF + sides] = tail_count
                tails[tail_count, 0], tails[tail_count, 1] = event, projection
                tails[tail_count, 2], tails[tail_count, 3] = change_of[sides], change_of[sides] + 1
                tail_count += 1
            told[0, at], told[1, at], told[2, at] = event, slot, memory[projection, TAIL_OF + sides]
            at += 1
    counts[TOLD], counts[TAILS], counts[CHANGES], counts[STEPS] = at, tail_count, change_count, ranked_count
