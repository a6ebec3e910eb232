"""Boxes come and go: newcomers join the tail of their cell, the dead of a tree are marked, trees are built anew in time."""

from __future__ import annotations

import numpy as np

from tidings.kernels.extents import NOWHERE, class_words, size_class
from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64, NONE, U8, Int, mix
from tidings.kernels.stabbing.stabbing_layout import (
    BOX,
    BOX_FREE,
    BOX_TOP,
    BUCKET_CELLS,
    BUCKET_FIELDS,
    BUCKET_HASH,
    BUCKET_SET,
    BUCKET_WORDS,
    BUCKETS,
    CELL_FIELDS,
    CELL_FREE,
    CELL_TOP,
    CODE_MAX,
    CODE_MIN,
    COMING,
    DATA,
    DEAD,
    DIMS,
    EQUAL,
    EXTRA_COLUMNS,
    FAN_BITS,
    KIND_FIELDS,
    KIND_MASK,
    LEAF,
    LEAF_BITS,
    LIVE,
    MASK,
    NUMBER,
    OFFSET,
    OWNER,
    PACKED,
    POSITION,
    ROOM,
    SET_AXES,
    SET_BUCKETS,
    SET_FIELDS,
    SET_WATCH,
    SHAPE,
    TEXT_START,
    TEXT_STOP,
    TEXTS,
    TREE,
    TREE_FIELDS,
    TREE_LEVELS,
    USED,
    VALID,
    Boxes,
    allocate,
    columns_of,
    drop_text,
    find_bucket,
    first_cell,
    has_room,
    keep_text,
    pointers_of,
    release,
)
from tidings.kernels.stabbing.stabbing_tree import drop_tree, rebuild, rebuild_words, tail_max

# Phases of adding: each box gets a cell, joins it, and cells with long tails get a tree.
PLACING, JOINING, PACKING, DONE = range(4)


@kernel
def put_bucket(table: I64, hashed: Int, bucket: Int) -> None:
    last = (table.shape[0] >> 1) - 1
    slot = hashed & last
    while table[2 * slot + 1] != NOWHERE:
        slot = (slot + 1) & last
    table[2 * slot], table[2 * slot + 1] = hashed, bucket


@kernel
def rehash(table: I64, larger: I64) -> None:
    """Moves all buckets to a larger table."""
    for slot in range(table.shape[0] >> 1):
        if table[2 * slot + 1] != NOWHERE:
            put_bucket(larger, table[2 * slot], table[2 * slot + 1])


@kernel
def take_bucket(table: I64, hashed: Int, bucket: Int) -> None:
    """Removes a bucket; those that were displaced by it move up."""
    last = (table.shape[0] >> 1) - 1
    hole = hashed & last
    while table[2 * hole + 1] != bucket:
        hole = (hole + 1) & last
    slot = (hole + 1) & last
    while table[2 * slot + 1] != NOWHERE:
        if ((slot - table[2 * slot]) & last) >= ((slot - hole) & last):
            table[2 * hole], table[2 * hole + 1] = table[2 * slot], table[2 * slot + 1]
            hole = slot
        slot = (slot + 1) & last
    table[2 * hole], table[2 * hole + 1] = 0, NOWHERE


@kernel
def move_bucket(boxes: Boxes, bucket: Int, target: Int) -> None:
    """Copies a bucket to a larger extent and tells all who know where it is."""
    arena = boxes.arena
    cell = first_cell(boxes, bucket)
    end = cell + arena[bucket + BUCKET_CELLS] * CELL_FIELDS
    for i in range(end - bucket):
        arena[target + i] = arena[bucket + i]
    while cell < end:
        boxes.cells[arena[cell + NUMBER]] = cell - bucket + target
        cell += CELL_FIELDS
    last = (boxes.table.shape[0] >> 1) - 1
    slot = arena[bucket + BUCKET_HASH] & last
    while boxes.table[2 * slot + 1] != bucket:
        slot = (slot + 1) & last
    boxes.table[2 * slot + 1] = target
    release(boxes, bucket, arena[bucket + BUCKET_WORDS])


@kernel
def new_bucket(boxes: Boxes, of: Int, x: I64, text: U8) -> Int:
    arena = boxes.arena
    n = boxes.sets[of + SET_AXES]
    words = BUCKET_FIELDS + 3 * n + CELL_FIELDS
    bucket = allocate(boxes, words)
    hashed = np.int64(of)
    for i in range(n):
        axis = boxes.sets[of + SET_FIELDS + i]
        hashed = mix(hashed, x[0, axis, EQUAL])
        arena[bucket + BUCKET_FIELDS + i] = x[0, axis, EQUAL]
        at = bucket + BUCKET_FIELDS + n + 2 * i
        start, stop = x[0, axis, TEXT_START], x[0, axis, TEXT_STOP]
        arena[at] = keep_text(boxes, text, start, stop) if start >= 0 else NONE
        arena[at + 1] = arena[at] + stop - start
    arena[bucket + BUCKET_SET], arena[bucket + BUCKET_HASH] = of, hashed
    arena[bucket + BUCKET_CELLS] = 0
    arena[bucket + BUCKET_WORDS] = class_words(size_class(words))
    put_bucket(boxes.table, hashed, bucket)
    boxes.head[BUCKETS] += 1
    boxes.sets[of + SET_BUCKETS] += 1
    return bucket


@kernel
def new_cell(boxes: Boxes, bucket: Int, shape: Int) -> Int:
    """A cell at the end of a bucket, which may have to move."""
    arena, head = boxes.arena, boxes.head
    cell = first_cell(boxes, bucket) + arena[bucket + BUCKET_CELLS] * CELL_FIELDS
    if cell + CELL_FIELDS > bucket + arena[bucket + BUCKET_WORDS]:
        words = class_words(size_class(cell + CELL_FIELDS - bucket))
        target = allocate(boxes, words)
        move_bucket(boxes, bucket, target)
        arena[target + BUCKET_WORDS] = words
        bucket, cell = target, cell - bucket + target
    arena[bucket + BUCKET_CELLS] += 1
    number = head[CELL_FREE]
    if number != NONE:
        head[CELL_FREE] = -2 - boxes.cells[number]
    else:
        number = head[CELL_TOP]
        head[CELL_TOP] += 1
    boxes.cells[number] = cell
    for i in range(CELL_FIELDS):
        arena[cell + i] = 0
    arena[cell + SHAPE], arena[cell + NUMBER], arena[cell + OFFSET] = shape, number, cell - bucket
    return cell


@kernel
def cell_for(boxes: Boxes, of: Int, shape: Int, x: I64, text: U8) -> Int:
    """The cell of boxes with the constants of vector x[0] and the given ranges; NONE if there is no room for it."""
    bucket = find_bucket(pointers_of(boxes, text, x), of, np.int64(0))
    if bucket != NOWHERE:
        cell = first_cell(boxes, bucket)
        for _ in range(boxes.arena[bucket + BUCKET_CELLS]):
            if boxes.arena[cell + SHAPE] == shape:
                return cell
            cell += CELL_FIELDS
    n = boxes.sets[of + SET_AXES]
    words = BUCKET_FIELDS + 3 * n + 2 * CELL_FIELDS
    if bucket != NOWHERE:
        words += boxes.arena[bucket + BUCKET_WORDS]
    for i in range(n):
        axis = boxes.sets[of + SET_FIELDS + i]
        words += ((x[0, axis, TEXT_STOP] - x[0, axis, TEXT_START]) >> 3) + 8
    if not has_room(boxes, words) or boxes.head[CELL_TOP] >= boxes.cells.shape[0]:
        return NONE
    if bucket == NOWHERE:
        if 4 * (boxes.head[BUCKETS] + 1) > boxes.table.shape[0]:
            return NONE
        bucket = new_bucket(boxes, of, x, text)
    return new_cell(boxes, bucket, shape)


@kernel
def grow_cell(boxes: Boxes, cell: Int) -> bool:
    """Makes room for the boxes that are coming; False if the arena has none."""
    arena = boxes.arena
    columns, used, room = columns_of(boxes, arena[cell + SHAPE]), arena[cell + USED], arena[cell + ROOM]
    # Doubled: what is left behind at each step is never used again by a cell that grows as the others do.
    words = columns * max(used + arena[cell + COMING], 2 * used)
    if not has_room(boxes, words):
        return False
    target, data = allocate(boxes, words), arena[cell + DATA]
    target_room = class_words(size_class(words)) // columns
    for c in range(columns):
        for i in range(used):
            arena[target + c * target_room + i] = arena[data + c * room + i]
    if data != NOWHERE:
        release(boxes, data, columns * room)
    arena[cell + DATA], arena[cell + ROOM] = target, target_room
    return True


@kernel
def new_box(boxes: Boxes) -> Int:
    head = boxes.head
    box = head[BOX_FREE]
    if box != NONE:
        head[BOX_FREE] = -2 - boxes.places[box]
    else:
        box = head[BOX_TOP]
        head[BOX_TOP] += 1
    head[LIVE] += 1
    return box


@kernel
def add_boxes(
    boxes: Boxes,
    of: Int,
    shape: Int,
    x: I64,
    owner: I64,
    kinds: I64,
    equal: I64,
    ends: I64,
    texts: I64,
    text: U8,
    taken: I64,
    progress: I64,
) -> bool:
    """Adds boxes of one set and shape; False if more room is needed: then `progress` is where to go on.

    texts: [n, 2 * equality axes + TEXT_COLUMNS * text axes] places in `text`. taken: [n] numbers of the boxes.
    """
    arena, sets = boxes.arena, boxes.sets
    n, equals = owner.shape[0], sets[of + SET_AXES]
    dims, text_dims = arena[shape + DIMS], arena[shape + TEXTS]
    if progress[0] == PLACING:
        for i in range(progress[1], n):
            progress[1] = i
            for j in range(equals):
                axis = sets[of + SET_FIELDS + j]
                x[0, axis, VALID], x[0, axis, EQUAL] = 1, equal[i, j]
                x[0, axis, TEXT_START], x[0, axis, TEXT_STOP] = texts[i, 2 * j], texts[i, 2 * j + 1]
            cell = cell_for(boxes, of, shape, x, text)
            if cell == NONE:
                return False
            arena[cell + COMING] += 1
            taken[i] = arena[cell + NUMBER]
        progress[0], progress[1] = JOINING, 0
    if progress[0] == JOINING:
        for i in range(progress[1], n):
            progress[1] = i
            cell = boxes.cells[taken[i]]
            words = np.int64(0)
            for t in range(2 * text_dims):
                at = 2 * equals + 2 * t
                words += ((texts[i, at + 1] - (texts[i, at] >> 1)) >> 3) + 8
            if arena[cell + USED] == arena[cell + ROOM] and not grow_cell(boxes, cell):
                return False
            if text_dims and not has_room(boxes, words):
                return False
            data, room, position = arena[cell + DATA], arena[cell + ROOM], arena[cell + USED]
            for c in range(2 * dims):
                arena[data + c * room + position] = ends[i, c]
            box = new_box(boxes)
            at = data + 2 * dims * room + position
            arena[at + OWNER * room], arena[at + BOX * room] = kinds[i] << 32 | owner[i], box
            for t in range(2 * text_dims):
                start, stop = texts[i, 2 * equals + 2 * t], texts[i, 2 * equals + 2 * t + 1]
                key = NONE
                if start >= 0:
                    kept = keep_text(boxes, text, start >> 1, stop)
                    key, stop = kept << 1 | (start & 1), kept + stop - (start >> 1)
                arena[at + (EXTRA_COLUMNS + 2 * t) * room] = key
                arena[at + (EXTRA_COLUMNS + 2 * t + 1) * room] = stop
            mask = boxes.kinds[kinds[i] * KIND_FIELDS + KIND_MASK]
            arena[cell + MASK] |= mask
            sets[of + SET_WATCH] |= mask
            arena[cell + USED] += 1
            arena[cell + COMING] -= 1
            boxes.places[box] = taken[i] << 32 | position
            taken[i] = box
        progress[0], progress[1] = PACKING, 0
    if dims:
        for i in range(progress[1], n):
            progress[1] = i
            cell = boxes.cells[boxes.places[taken[i]] >> 32]
            if arena[cell + USED] - arena[cell + PACKED] > tail_max(arena[cell + PACKED]):
                if not has_room(boxes, rebuild_words(boxes, cell)):
                    return False
                rebuild(boxes, cell)
    progress[0] = DONE
    return True


@kernel
def drop_bucket(boxes: Boxes, bucket: Int) -> None:
    arena, of = boxes.arena, boxes.arena[bucket + BUCKET_SET]
    n = boxes.sets[of + SET_AXES]
    for i in range(n):
        at = bucket + BUCKET_FIELDS + n + 2 * i
        if arena[at] >= 0:
            drop_text(boxes, arena[at], arena[at + 1])
    take_bucket(boxes.table, arena[bucket + BUCKET_HASH], bucket)
    release(boxes, bucket, arena[bucket + BUCKET_WORDS])
    boxes.head[BUCKETS] -= 1
    boxes.sets[of + SET_BUCKETS] -= 1
    if boxes.sets[of + SET_BUCKETS] == 0:
        boxes.sets[of + SET_WATCH] = 0


@kernel
def drop_cell(boxes: Boxes, cell: Int) -> None:
    """Forgets an empty cell, and its bucket with the last one."""
    arena, head = boxes.arena, boxes.head
    bucket = cell - arena[cell + OFFSET]
    number = arena[cell + NUMBER]
    drop_tree(boxes, cell)
    release(boxes, arena[cell + DATA], columns_of(boxes, arena[cell + SHAPE]) * arena[cell + ROOM])
    boxes.cells[number] = -2 - head[CELL_FREE]
    head[CELL_FREE] = number
    arena[bucket + BUCKET_CELLS] -= 1
    last = first_cell(boxes, bucket) + arena[bucket + BUCKET_CELLS] * CELL_FIELDS
    if last != cell:
        for i in range(CELL_FIELDS):
            arena[cell + i] = arena[last + i]
        arena[cell + OFFSET] = cell - bucket
        boxes.cells[arena[cell + NUMBER]] = cell
    elif arena[bucket + BUCKET_CELLS] == 0:
        drop_bucket(boxes, bucket)


@kernel
def take_box(boxes: Boxes, cell: Int, position: Int) -> None:
    """Takes a box from its cell: the last newcomer takes its place, or in a tree it is marked as one that holds nothing."""
    arena = boxes.arena
    shape, data, room = arena[cell + SHAPE], arena[cell + DATA], arena[cell + ROOM]
    dims, columns = arena[shape + DIMS], columns_of(boxes, shape)
    for c in range(2 * dims + EXTRA_COLUMNS, columns, 2):
        at = data + c * room + position
        if arena[at] >= 0:
            drop_text(boxes, arena[at] >> 1, arena[at + room])
    if position < arena[cell + PACKED]:
        arena[data + position], arena[data + room + position] = CODE_MAX, CODE_MIN
        arena[data + (2 * dims + BOX) * room + position] = NONE
        arena[cell + DEAD] += 1
        return
    last = arena[cell + USED] - 1
    arena[cell + USED] = last
    if last != position:
        for c in range(columns):
            arena[data + c * room + position] = arena[data + c * room + last]
        boxes.places[arena[data + (2 * dims + BOX) * room + position]] = arena[cell + NUMBER] << 32 | position


@kernel
def remove_boxes(boxes: Boxes, gone: I64, start: Int) -> Int:
    """Removes boxes gone[start:]; where it stopped for want of room."""
    arena, head = boxes.arena, boxes.head
    for i in range(start, gone.shape[0]):
        place = boxes.places[gone[i]]
        if place < 0:
            continue
        cell = boxes.cells[place >> 32]
        live = arena[cell + USED] - arena[cell + DEAD] - 1
        dead = arena[cell + DEAD] + (1 if place & POSITION < arena[cell + PACKED] else 0)
        is_rebuilt = live > 0 and (4 * dead > arena[cell + PACKED] + LEAF or 4 * live + LEAF < arena[cell + ROOM])
        if is_rebuilt and not has_room(boxes, rebuild_words(boxes, cell)):
            return i
        take_box(boxes, cell, place & POSITION)
        boxes.places[gone[i]] = -2 - head[BOX_FREE]
        head[BOX_FREE] = gone[i]
        head[LIVE] -= 1
        if live == 0:
            drop_cell(boxes, cell)
        elif is_rebuilt:
            rebuild(boxes, cell)
    return gone.shape[0]


@kernel
def set_high(boxes: Boxes, box: Int, place: Int, value: Int) -> None:
    """Moves the upper end of the box's range axis number `place`; bounds above it stay exact."""
    arena = boxes.arena
    where = boxes.places[box]
    cell, position = boxes.cells[where >> 32], where & POSITION
    source, stride, count, shift = arena[cell + DATA], arena[cell + ROOM], arena[cell + PACKED], LEAF_BITS
    at = source + (2 * place + 1) * stride + position
    before = arena[at]
    arena[at] = value
    if position >= count:
        return
    tree, entry = arena[cell + TREE], position
    for level in range(arena[tree + TREE_LEVELS]):
        entry >>= shift
        base, entries = arena[tree + TREE_FIELDS + 2 * level], arena[tree + TREE_FIELDS + 2 * level + 1]
        at = base + (2 * place + 1) * entries + entry
        bound = arena[at]
        if value >= bound:
            arena[at] = value
        elif before == bound:
            first = entry << shift
            for i in range(min(1 << shift, count - first)):
                found = arena[source + (2 * place + 1) * stride + first + i]
                value = found if i == 0 or found > value else value
            arena[at] = value
        if arena[at] == bound:
            return
        before, value = bound, arena[at]
        source, stride, count, shift = base, entries, entries, FAN_BITS
