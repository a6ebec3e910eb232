"""Sets that are filled at once, emptied, or read."""

from __future__ import annotations

import numpy as np

from tidings.kernels.growth import grown
from tidings.kernels.jit import kernel
from tidings.kernels.meshes_arrays import I32, I64, ITEM, ITEM_KIND, ITEM_NAME, NAME, NEXT, NONE, find
from tidings.kernels.meshes_change import change, has_room, leave, with_room
from tidings.kernels.meshes_combine import combine, number_distinct
from tidings.kernels.meshes_plan import Plan


@kernel
def clear(head: I64, firsts: I32, memory: I32, table: I64, items: I32, plan: Plan, numbers: I64) -> None:
    """Lets sets hold nothing."""
    words, cells, heads = plan.words, plan.cells, plan.heads
    for number in numbers:
        while firsts[number] != NONE:
            entry = firsts[number]
            leave(head, firsts, memory, table, items, words, cells, heads, number, entry, memory[entry + NAME])


@kernel
def fill(
    head: I64, firsts: I32, memory: I32, table: I64, items: I32, plan: Plan, numbers: I64, starts: I64, held: I64
) -> tuple[I32, I64]:
    """Lets set numbers[i] hold held[starts[i]:starts[i + 1]] besides what it holds; gives memory and table.

    Of items of one name the last counts.
    """
    words, cells, heads = plan.words, plan.cells, plan.heads
    for i in range(len(numbers)):
        for at in range(starts[i], starts[i + 1]):
            if not has_room(head, memory, table, words, cells, 1):
                memory, table = with_room(head, memory, table, words, cells, 1)
            name = items[held[at], ITEM_NAME]
            entry = find(memory, table, numbers[i], name)
            change(head, firsts, memory, table, items, words, cells, heads, numbers[i], entry, name, held[at])
    return memory, table


@kernel
def read(firsts: I32, memory: I32, numbers: I64) -> tuple[I64, I32]:
    """(starts, items): set numbers[i] holds items[starts[i]:starts[i + 1]]."""
    starts = np.zeros(len(numbers) + 1, np.int64)
    for i in range(len(numbers)):
        starts[i + 1], entry = starts[i], firsts[numbers[i]]
        while entry != NONE:
            starts[i + 1] += 1
            entry = memory[entry + NEXT]
    held = np.empty(starts[-1], np.int32)
    for i in range(len(numbers)):
        at, entry = starts[i], firsts[numbers[i]]
        while entry != NONE:
            held[at] = memory[entry + ITEM]
            at, entry = at + 1, memory[entry + NEXT]
    return starts, held


@kernel
def combine_all(firsts: I32, memory: I32, table: I64, items: I32, plan: Plan, numbers: I64) -> tuple[I64, I32, I32]:
    """(starts, found, combinations): set numbers[i] has combinations[found[starts[i]:starts[i + 1]]]."""
    cells, heads, steps, checks = plan.cells, plan.heads, plan.steps, plan.checks
    kinds = len(plan.words) - 2
    chosen, cursor = np.empty(kinds, np.int32), np.empty(kinds, np.int64)
    out, end = np.empty((1024, kinds), np.int32), 0
    starts = np.zeros(len(numbers) + 1, np.int64)
    for i in range(len(numbers)):
        entry = firsts[numbers[i]]
        while entry != NONE:
            item = memory[entry + ITEM]
            if items[item, ITEM_KIND] == 0 or items[item, ITEM_KIND] == kinds:
                start, end = end, NONE
                while end == NONE:
                    end = combine(
                        memory, table, items, cells, heads, steps, checks, numbers[i], item, chosen, cursor, out, start
                    )
                    if end == NONE:
                        out = grown(out, 0)
            entry = memory[entry + NEXT]
        starts[i + 1] = end
    found, combinations = number_distinct(out, end)
    return starts, found, combinations
