"""How tall ladders keep their blocks: full ones are cut in two, small ones joined with a neighbour."""

from __future__ import annotations

from tidings.kernels.jit import kernel
from tidings.kernels.ladders_arrays import (
    BLOCK,
    BLOCK_JOINED,
    BLOCK_LOW,
    HEIGHT,
    I64,
    OFFSET,
    ROOM,
    ROOM_MIN,
    SIZE,
    Int,
    block_of,
    copy_pairs,
    extent_free,
    extent_new,
)


@kernel
def make_tall(head: I64, ladders: I64, codes: I64, entries: I64, ladder: Int) -> None:
    """Let a short ladder be the only block of a tall one."""
    directory = extent_new(head, entries, 2 * ROOM_MIN)
    codes[directory + ROOM_MIN] = ladders[ladder, OFFSET]
    entries[directory + ROOM_MIN] = ladders[ladder, SIZE]
    ladders[ladder, OFFSET], ladders[ladder, ROOM], ladders[ladder, HEIGHT] = directory, 2 * ROOM_MIN, 1


@kernel
def make_short(head: I64, ladders: I64, codes: I64, entries: I64, ladder: Int) -> None:
    """Let the only block of a tall ladder be a short one."""
    offset, _ = block_of(ladders, codes, entries, ladder, 0)
    extent_free(head, entries, ladders[ladder, OFFSET], ladders[ladder, ROOM])
    ladders[ladder, OFFSET], ladders[ladder, ROOM], ladders[ladder, HEIGHT] = offset, BLOCK, 0


@kernel
def widen_directory(head: I64, ladders: I64, codes: I64, entries: I64, ladder: Int) -> None:
    """Give a directory twice the room."""
    old, room, height = ladders[ladder, OFFSET], ladders[ladder, ROOM], ladders[ladder, HEIGHT]
    directory = extent_new(head, entries, 2 * room)
    copy_pairs(codes, entries, old, directory, height)
    copy_pairs(codes, entries, old + room // 2, directory + room, height)
    extent_free(head, entries, old, room)
    ladders[ladder, OFFSET], ladders[ladder, ROOM] = directory, 2 * room


@kernel
def cut(head: I64, ladders: I64, codes: I64, entries: I64, ladder: Int, block: Int) -> None:
    """Move the second half of a full block into a new one, the next."""
    height = ladders[ladder, HEIGHT]
    if 2 * height == ladders[ladder, ROOM]:
        widen_directory(head, ladders, codes, entries, ladder)
    directory, room = ladders[ladder, OFFSET], ladders[ladder, ROOM]
    for part in (directory, directory + room // 2):
        for i in range(part + height, part + block + 1, -1):
            codes[i] = codes[i - 1]
            entries[i] = entries[i - 1]
    ladders[ladder, HEIGHT] += 1
    at = directory + room // 2 + block
    middle = codes[at] + BLOCK // 2
    new = extent_new(head, entries, BLOCK)
    copy_pairs(codes, entries, middle, new, BLOCK - BLOCK // 2)
    codes[directory + block + 1], entries[directory + block + 1] = codes[new], entries[new]
    codes[at + 1], entries[at + 1] = new, BLOCK - BLOCK // 2
    entries[at] = BLOCK // 2


@kernel
def join(head: I64, ladders: I64, codes: I64, entries: I64, ladder: Int, block: Int) -> None:
    """Move the pairs of the next block to the end of this one, which has room for them."""
    directory, room, height = ladders[ladder, OFFSET], ladders[ladder, ROOM], ladders[ladder, HEIGHT]
    at = directory + room // 2 + block
    copy_pairs(codes, entries, codes[at + 1], codes[at] + entries[at], entries[at + 1])
    entries[at] += entries[at + 1]
    extent_free(head, entries, codes[at + 1], BLOCK)
    for part in (directory, directory + room // 2):
        for i in range(part + block + 1, part + height - 1):
            codes[i] = codes[i + 1]
            entries[i] = entries[i + 1]
    ladders[ladder, HEIGHT] -= 1


@kernel
def join_if_low(head: I64, ladders: I64, codes: I64, entries: I64, ladder: Int, block: Int) -> None:
    """Join a block that has become small with a neighbour, if the two are small together; an empty one always."""
    height = ladders[ladder, HEIGHT]
    _, size = block_of(ladders, codes, entries, ladder, block)
    if size >= BLOCK_LOW:
        return
    for first in (block - 1, block):
        if 0 <= first < height - 1:
            _, one = block_of(ladders, codes, entries, ladder, first)
            _, other = block_of(ladders, codes, entries, ladder, first + 1)
            if one + other <= BLOCK_JOINED or size == 0:
                join(head, ladders, codes, entries, ladder, first)
                break
    if ladders[ladder, HEIGHT] == 1:
        make_short(head, ladders, codes, entries, ladder)
