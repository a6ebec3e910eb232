"""How what a set holds changes: an item comes, goes, or takes the place of another of its name."""

from __future__ import annotations

from tidings.kernels.jit import kernel
from tidings.kernels.meshes_arrays import (
    CELL_LAST,
    CELL_NEXT,
    ENTRIES,
    FILLED,
    I32,
    I64,
    ITEM,
    ITEM_COUNT,
    ITEM_KIND,
    ITEM_TIES,
    KNOT_HEADS,
    LAST,
    LOOSE,
    LOW,
    NEXT,
    NONE,
    TOP,
    Int,
    find,
    give_back,
    locate,
    take,
    with_places,
    with_words,
)


@kernel
def has_room(head: I64, memory: I32, table: I64, words: I64, cells: I64, changes: Int) -> bool:
    """Whether memory and table have room for what so many items that come may need."""
    edges = cells.shape[1]
    needed = head[TOP] + changes * (words.max() + edges * words[-1])
    return bool(needed <= len(memory) and 5 * (head[FILLED] + changes * (1 + edges)) <= 4 * len(table))


@kernel
def with_room(head: I64, memory: I32, table: I64, words: I64, cells: I64, changes: Int) -> tuple[I32, I64]:
    """Memory and table that have the room."""
    edges = cells.shape[1]
    memory = with_words(head, memory, changes * (words.max() + edges * words[-1]))
    return memory, with_places(head, table, changes * (1 + edges))


@kernel
def change(
    head: I64,
    firsts: I32,
    memory: I32,
    table: I64,
    items: I32,
    words: I64,
    cells: I64,
    heads: I64,
    number: Int,
    entry: Int,
    name: Int,
    item: Int,
) -> None:
    """Lets a set hold the item instead of what it holds of its name, which `entry` is; either may be NONE."""
    if entry == NONE:
        if item != NONE:
            _come(head, firsts, memory, table, items, words, cells, heads, number, name, item)
    elif item == NONE:
        leave(head, firsts, memory, table, items, words, cells, heads, number, entry, name)
    elif item != memory[entry + ITEM]:
        _replace(head, memory, table, items, words, cells, heads, number, entry, item)


@kernel
def _come(
    head: I64,
    firsts: I32,
    memory: I32,
    table: I64,
    items: I32,
    words: I64,
    cells: I64,
    heads: I64,
    number: Int,
    name: Int,
    item: Int,
) -> None:
    kind, first = items[item, ITEM_KIND], firsts[number]
    entry = take(head, memory, table, words, kind, number, name)
    memory[entry + ITEM], memory[entry + NEXT], memory[entry + LAST] = item, first, NONE
    if first != NONE:
        memory[first + LAST] = entry
    firsts[number] = entry
    head[ENTRIES] += 1
    _count(head, items, item, 1)
    for edge in range(cells.shape[1]):
        if cells[kind, edge] != NONE:
            _tie(head, memory, table, words, cells, heads, number, entry, kind, edge, items[item, ITEM_TIES + edge])


@kernel
def leave(
    head: I64,
    firsts: I32,
    memory: I32,
    table: I64,
    items: I32,
    words: I64,
    cells: I64,
    heads: I64,
    number: Int,
    entry: Int,
    name: Int,
) -> None:
    """Lets go of an entry, of this name."""
    item = memory[entry + ITEM]
    kind = items[item, ITEM_KIND]
    for edge in range(cells.shape[1]):
        if cells[kind, edge] != NONE:
            _untie(head, memory, table, words, cells, heads, number, entry, kind, edge, items[item, ITEM_TIES + edge])
    after, before = memory[entry + NEXT], memory[entry + LAST]
    if before == NONE:
        firsts[number] = after
    else:
        memory[before + NEXT] = after
    if after != NONE:
        memory[after + LAST] = before
    head[ENTRIES] -= 1
    _count(head, items, item, -1)
    give_back(head, memory, table, kind, locate(memory, table, number, name))


@kernel
def _replace(
    head: I64,
    memory: I32,
    table: I64,
    items: I32,
    words: I64,
    cells: I64,
    heads: I64,
    number: Int,
    entry: Int,
    item: Int,
) -> None:
    old = memory[entry + ITEM]
    kind = items[item, ITEM_KIND]
    for edge in range(cells.shape[1]):
        before, after = items[old, ITEM_TIES + edge], items[item, ITEM_TIES + edge]
        if cells[kind, edge] != NONE and before != after:
            _untie(head, memory, table, words, cells, heads, number, entry, kind, edge, before)
            _tie(head, memory, table, words, cells, heads, number, entry, kind, edge, after)
    memory[entry + ITEM] = item
    _count(head, items, old, -1)
    _count(head, items, item, 1)


@kernel
def _count(head: I64, items: I32, item: Int, more: Int) -> None:
    was_held = items[item, ITEM_COUNT] > 0
    items[item, ITEM_COUNT] += more
    head[LOOSE] += was_held - (items[item, ITEM_COUNT] > 0)


@kernel
def _tie(
    head: I64,
    memory: I32,
    table: I64,
    words: I64,
    cells: I64,
    heads: I64,
    number: Int,
    entry: Int,
    kind: Int,
    edge: Int,
    tie: Int,
) -> None:
    """Puts an entry before the others of its kind that have the same tie at an edge."""
    if tie == NONE:
        return
    knot = find(memory, table, number, tie)
    if knot == NONE:
        knot = take(head, memory, table, words, len(words) - 1, number, tie)
        memory[knot + KNOT_HEADS] = memory[knot + KNOT_HEADS + 1] = NONE
    cell, first_at = cells[kind, edge], knot + heads[kind, edge]
    first = memory[first_at]
    memory[entry + cell + CELL_NEXT], memory[entry + cell + CELL_LAST] = first, NONE
    if first != NONE:
        memory[first + cell + CELL_LAST] = entry
    memory[first_at] = entry


@kernel
def _untie(
    head: I64,
    memory: I32,
    table: I64,
    words: I64,
    cells: I64,
    heads: I64,
    number: Int,
    entry: Int,
    kind: Int,
    edge: Int,
    tie: Int,
) -> None:
    if tie == NONE:
        return
    cell = cells[kind, edge]
    after, before = memory[entry + cell + CELL_NEXT], memory[entry + cell + CELL_LAST]
    if after != NONE:
        memory[after + cell + CELL_LAST] = before
    if before != NONE:
        memory[before + cell + CELL_NEXT] = after
        return
    at = locate(memory, table, number, tie)
    knot = table[at] & LOW
    memory[knot + heads[kind, edge]] = after
    if memory[knot + KNOT_HEADS] == NONE and memory[knot + KNOT_HEADS + 1] == NONE:
        give_back(head, memory, table, len(words) - 1, at)
