"""How the pool of ladders is moved: extents close up, and what was free between them goes to the top."""

from __future__ import annotations

from tidings.kernels.jit import kernel
from tidings.kernels.ladders_arrays import BLOCK, FREE, FREE_LISTS, HEIGHT, I64, LADDERS, OFFSET, ROOM, TOP, Int


@kernel
def move_extent(
    codes: I64, entries: I64, new_codes: I64, new_entries: I64, source: Int, target: Int, room: Int
) -> None:
    """Copy an extent into another pool."""
    for i in range(room):
        new_codes[target + i] = codes[source + i]
    for i in range(room):
        new_entries[target + i] = entries[source + i]


@kernel
def pack(head: I64, ladders: I64, codes: I64, entries: I64, new_codes: I64, new_entries: I64) -> None:
    """Copy all that is in use into another pool, without gaps."""
    top = 0
    for ladder in range(head[LADDERS]):
        room = ladders[ladder, ROOM]
        if room == 0:
            continue
        move_extent(codes, entries, new_codes, new_entries, ladders[ladder, OFFSET], top, room)
        ladders[ladder, OFFSET] = top
        blocks_at = top + room // 2
        top += room
        for at in range(blocks_at, blocks_at + ladders[ladder, HEIGHT]):
            move_extent(codes, entries, new_codes, new_entries, new_codes[at], top, BLOCK)
            new_codes[at] = top
            top += BLOCK
    head[TOP], head[FREE] = top, 0
    head[FREE_LISTS:] = -1
