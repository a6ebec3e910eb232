"""Deliveries change sets; for each group of them: the combinations before and after that have a changed item in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.growth import grown
from tidings.kernels.jit import kernel
from tidings.kernels.meshes_arrays import I32, I64, ITEM, ITEM_KIND, NONE, Int, find
from tidings.kernels.meshes_change import change, has_room, with_room
from tidings.kernels.meshes_combine import combine, number_distinct
from tidings.kernels.meshes_plan import Plan

# Fields of a group in which something was found: its number, and where what was and what is now begin and end.
GROUP, OLD, NEW, END, GROUP_FIELDS = range(5)


@kernel
def apply(
    head: I64,
    firsts: I32,
    memory: I32,
    table: I64,
    items: I32,
    plan: Plan,
    mark: I32,
    starts: I64,
    number: I64,
    name: I64,
    item: I64,
    group: Int,
    found_max: Int,
) -> tuple[Int, I32, I64, I64, I32, I32]:
    """Makes deliveries starts[g] .. starts[g + 1] - 1, which go to one set, for every g from `group` on.

    Each says what the set is to hold of a name, NONE for nothing; the last that is not NONE counts. Nobody has heard of
    the name NONE. `mark` has a NONE for every name, before and after. Stops after a group with which more than
    `found_max` combinations were found. Gives (next group, memory, table, [groups, GROUP_FIELDS], found, combinations).
    """
    words, cells, heads, steps, checks = plan.words, plan.cells, plan.heads, plan.steps, plan.checks
    kinds = len(words) - 2
    chosen, cursor = np.empty(kinds, np.int32), np.empty(kinds, np.int64)
    out, end = np.empty((1024, kinds), np.int32), 0
    told, told_count = np.empty((256, GROUP_FIELDS), np.int64), 0
    widest = 1
    for g in range(group, len(starts) - 1):
        widest = max(widest, starts[g + 1] - starts[g])
    names, entries = np.empty(widest, np.int64), np.empty(widest, np.int64)
    held, wanted = np.empty(widest, np.int64), np.empty(widest, np.int64)
    while group < len(starts) - 1 and end <= found_max:
        own, start, stop = number[starts[group]], starts[group], starts[group + 1]
        group += 1
        if stop == start + 1:
            names[0], wanted[0], count = name[start], item[start], 1
        else:
            count = _net(mark, name, item, start, stop, names, wanted)
        changing = 0
        for i in range(count):
            entry = NONE if names[i] == NONE else find(memory, table, own, names[i])
            now = NONE if entry == NONE else memory[entry + ITEM]
            # Most of what comes is held already, or is to go and never was.
            if now != wanted[i] or (now != NONE and items[now, ITEM_KIND] == kinds):
                names[changing], entries[changing], held[changing], wanted[changing] = names[i], entry, now, wanted[i]
                changing += 1
        if changing == 0:
            continue
        # What is passed on and comes back costs more than the rest of a round, so arrays grow apart from it.
        new = _gather(memory, table, items, cells, heads, steps, checks, own, held, changing, chosen, cursor, out, end)
        while new == NONE:
            out = grown(out, 0)
            new = _gather(
                memory, table, items, cells, heads, steps, checks, own, held, changing, chosen, cursor, out, end
            )
        if not has_room(head, memory, table, words, cells, changing):
            memory, table = with_room(head, memory, table, words, cells, changing)
        for i in range(changing):
            change(head, firsts, memory, table, items, words, cells, heads, own, entries[i], names[i], wanted[i])
        last = _gather(
            memory, table, items, cells, heads, steps, checks, own, wanted, changing, chosen, cursor, out, new
        )
        while last == NONE:
            out = grown(out, 0)
            last = _gather(
                memory, table, items, cells, heads, steps, checks, own, wanted, changing, chosen, cursor, out, new
            )
        if last > end:
            if told_count == len(told):
                told = grown(told, 0)
            told[told_count, GROUP], told[told_count, OLD] = group - 1, end
            told[told_count, NEW], told[told_count, END] = new, last
            told_count += 1
        end = last
    found, combinations = number_distinct(out, end)
    return group, memory, table, told[:told_count].copy(), found, combinations


@kernel
def _net(mark: I32, name: I64, item: I64, start: Int, stop: Int, names: I64, wanted: I64) -> Int:
    """Writes what is wanted of each name by all deliveries of a group; gives how many names that is."""
    count = 0
    for i in range(start, stop):
        if name[i] == NONE:
            continue
        at = mark[name[i]]
        if at == NONE:
            mark[name[i]], names[count], wanted[count] = count, name[i], item[i]
            count += 1
        elif item[i] != NONE:
            wanted[at] = item[i]
    for i in range(count):
        mark[names[i]] = NONE
    return count


@kernel
def _gather(
    memory: I32,
    table: I64,
    items: I32,
    cells: I64,
    heads: I64,
    steps: Any,
    checks: I64,
    number: Int,
    chosen_from: I64,
    count: Int,
    chosen: I32,
    cursor: I64,
    out: I32,
    end: Int,
) -> Int:
    """Writes all combinations in which some items of a set are to out[end:]; gives the end, NONE if there is no room.

    Whole ones come last: they take precedence over others with the same names.
    """
    for is_whole in (False, True):
        for i in range(count):
            item = chosen_from[i]
            if item != NONE and (items[item, ITEM_KIND] == len(chosen)) == is_whole:
                end = combine(memory, table, items, cells, heads, steps, checks, number, item, chosen, cursor, out, end)
                if end == NONE:
                    return NONE
    return end
