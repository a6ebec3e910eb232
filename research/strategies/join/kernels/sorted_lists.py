"""Many sorted lists of (code, entry), most of them short, in one pool; each change gives the gap that its code lies in.

A list of up to BLOCK pairs is one sorted run. A longer one is a B-tree of height two (Bayer and McCreight, 1972): blocks of
up to BLOCK pairs, and a directory of these. So a change moves a few hundred pairs at most.

    one run   codes   [c0 c1 c2 ..]          blocks   codes   [c0 c1 c2 .. | offset0 offset1 offset2 ..]
              entries [e0 e1 e2 ..]                   entries [e0 e1 e2 .. | size0   size1   size2   ..]

The separator (c, e) of a block is not above any pair of it, and is above all pairs of the block before; that of the first block
has no meaning. No block is empty. Runs, blocks and directories are extents of the pool (`tidings.kernels.extents`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tidings.kernels.arguments import as_argument, as_ints
from tidings.kernels.arrays import covering
from tidings.kernels.buddy import CLASSES, EXTENT_FIELDS, extent_free, extent_new
from tidings.kernels.extents import CAPACITY, TOP, WANTED, class_for, has_room
from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64, Int
from tidings.model.codes import CODE_MAX, CODE_MIN, BoolArray

# Fields of a row of `lists`: extent and its words, pairs in all, blocks (0: the list is one run).
OFFSET, ROOM, SIZE, BLOCKS, LIST_FIELDS = range(5)
# Fields of `head` after the first of extents: where the last kernel stopped, and the free lists of extents.
PROGRESS, FREE = range(EXTENT_FIELDS, EXTENT_FIELDS + 2)
HEAD_FIELDS = FREE + CLASSES
# What `change` reports; where it stopped is in head[PROGRESS].
DONE, NEEDS_ROOM, MISFIT = range(3)

BLOCK = 256
"""Most pairs of a run or of a block."""
BLOCK_LOW = BLOCK // 4
"""A block with fewer pairs is merged with a neighbour, if the two have at most BLOCK_MERGED together."""
BLOCK_MERGED = 3 * BLOCK // 4
ROOM_MIN = 8
"""Words of the smallest extent."""
NOWHERE = -1


class Neighbours(NamedTuple):
    """For each change, the gap around its code among the other pairs of its list at that moment.

    No other pair has a code from lo_from to hi_to, which is the largest such range: it ends beside the codes next to it, or at
    CODE_MIN and CODE_MAX. Where another pair has the same code, has_twin is set and the range has no meaning.
    """

    lo_from: I64
    hi_to: I64
    has_twin: BoolArray


class SortedLists:
    """Lists of (code, entry) in ascending order, numbered from 0.

    Codes are any int64 and may repeat. Entries are integers chosen by the caller; a pair is in a list at most once.

    Not safe for use by several threads at a time.
    """

    def __init__(self) -> None:
        self._head = np.zeros(HEAD_FIELDS, np.int64)
        self._head[FREE:] = NOWHERE
        self._count = 0
        self._lists = np.zeros((0, LIST_FIELDS), np.int64)
        self._codes = np.zeros(0, np.int64)
        self._entries = np.zeros(0, np.int64)

    def __len__(self) -> int:
        """Number of lists."""
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def arrays(self) -> tuple[I64, I64, I64, I64]:
        """All state, as kernels want it: head, lists, codes and entries. The last two are replaced by `make_room`."""
        return self._head, self._lists, self._codes, self._entries

    def new(self, count: int) -> int:
        """Makes so many empty lists; gives the number of the first."""
        first = self._count
        self._count += count
        self._lists = covering(self._lists, self._count - 1)
        return first

    def change(self, lists: ArrayLike, entries: ArrayLike, codes: ArrayLike, is_present: ArrayLike) -> Neighbours:
        """Puts (codes[i], entries[i]) into lists[i] if is_present[i], else removes it; one change after the other.

        If a pair to put is there already, or one to remove is not there, an error is raised; the changes before it are made.
        """
        which, step_entries, step_codes = self._which(lists), as_ints(entries), as_ints(codes)
        present = as_argument(is_present, np.bool_).reshape(-1)
        if not len(which) == len(step_entries) == len(step_codes) == len(present):
            raise ValueError("there must be as many lists as entries, codes and is_present")
        n = len(which)
        told = Neighbours(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.bool_))
        at = 0
        while (status := change(*self.arrays, which, step_entries, step_codes, present, at, *told)) != DONE:
            at = int(self._head[PROGRESS])
            if status == MISFIT:
                what = f"entry {step_entries[at]} at code {step_codes[at]}"
                if present[at]:
                    raise ValueError(f"{what} is in list {which[at]} already")
                raise KeyError(f"{what} is not in list {which[at]}")
            self.make_room()
        return told

    def gather(self, lists: ArrayLike) -> tuple[I64, I64, I64]:
        """(starts, entries, codes): lists[i] has those from starts[i] to starts[i + 1], by code and then by entry."""
        starts, entries, codes = gather(self._lists, self._codes, self._entries, self._which(lists))
        return starts, entries, codes

    def distinct(self, lists: ArrayLike) -> tuple[I64, I64]:
        """(starts, codes): the different codes of lists[i], ascending, are codes[starts[i]:starts[i + 1]]."""
        starts, codes = distinct(self._lists, self._codes, self._entries, self._which(lists))
        return starts, codes

    def nearest(self, lists: ArrayLike, marks: ArrayLike) -> tuple[I64, I64]:
        """(starts, codes): those codes of lists[i] that are next to a mark, each once, ascending.

        Next to a mark are the greatest code not above it and the least not below it. The marks are ascending.
        """
        starts, codes = nearest(self._lists, self._codes, self._entries, self._which(lists), as_ints(marks))
        return starts, codes

    def size(self, number: int) -> int:
        """Number of pairs of a list."""
        return int(self._lists[number, SIZE])

    def sizes(self, lists: ArrayLike) -> I64:
        """Numbers of pairs of lists."""
        sizes: I64 = self._lists[self._which(lists), SIZE]
        return sizes

    def make_room(self) -> None:
        """Copies all that is in use into a new pool, which has the room that a kernel wants above TOP."""
        used = int(self._lists[:, ROOM].sum() + BLOCK * self._lists[:, BLOCKS].sum())
        self._head[CAPACITY] = used + used // 2 + self._head[WANTED]
        codes, entries = (np.empty(self._head[CAPACITY], np.int64) for _ in range(2))
        self._head[TOP] = pack(self._lists, self._codes, self._entries, codes, entries)
        self._head[FREE:] = NOWHERE
        self._codes, self._entries = codes, entries

    def _which(self, lists: ArrayLike) -> I64:
        which = as_ints(lists)
        if len(which) and (which.min() < 0 or which.max() >= len(self)):
            raise IndexError(f"there are {len(self)} lists, asked for {which.min()} to {which.max()}")
        return which


# Finding


@kernel
def block_at(lists: I64, codes: I64, entries: I64, number: Int, block: Int) -> tuple[Int, Int]:
    """(offset, size) of a block; a run is its own only block."""
    if lists[number, BLOCKS] == 0:
        return lists[number, OFFSET], lists[number, SIZE]
    at = lists[number, OFFSET] + lists[number, ROOM] // 2 + block
    return codes[at], entries[at]


@kernel
def place_in(codes: I64, entries: I64, offset: Int, size: Int, code: Int, entry: Int) -> Int:
    """How many of the sorted pairs of an extent are below this one."""
    low, left = offset, size
    while left > 0:
        half = left >> 1
        middle = low + half
        if codes[middle] < code or (codes[middle] == code and entries[middle] < entry):
            low = middle + 1
            left -= half + 1
        else:
            left = half
    return low - offset


@kernel
def locate(lists: I64, codes: I64, entries: I64, number: Int, code: Int, entry: Int) -> tuple[Int, Int, Int, Int]:
    """(block, its offset, its size, place in it) where a pair is, or would be put."""
    block, count = 0, lists[number, BLOCKS]
    if count:
        directory = lists[number, OFFSET]
        block = place_in(codes, entries, directory + 1, count - 1, code, entry)
        at = directory + 1 + block
        block += block < count - 1 and codes[at] == code and entries[at] == entry
    offset, size = block_at(lists, codes, entries, number, block)
    return block, offset, size, place_in(codes, entries, offset, size, code, entry)


@kernel
def first_from(lists: I64, codes: I64, entries: I64, number: Int, code: Int, entry: Int) -> Int:
    """Where in the pool the first pair of a list is that is not below this one; NOWHERE if there is none."""
    block, offset, size, place = locate(lists, codes, entries, number, code, entry)
    if place < size:
        return offset + place
    if block + 1 < lists[number, BLOCKS]:
        return block_at(lists, codes, entries, number, block + 1)[0]
    return NOWHERE


@kernel
def beside(lists: I64, codes: I64, entries: I64, number: Int, block: Int, place: Int, after: Int) -> tuple[Int, Int]:
    """Where in the pool the pairs before place `place` and from place `after` of a block on are; NOWHERE if there are none."""
    offset, size = block_at(lists, codes, entries, number, block)
    before = offset + place - 1
    if place == 0:
        before = NOWHERE
        if block > 0:
            other, count = block_at(lists, codes, entries, number, block - 1)
            before = other + count - 1
    if after < size:
        return before, offset + after
    if block + 1 < lists[number, BLOCKS]:
        return before, block_at(lists, codes, entries, number, block + 1)[0]
    return before, NOWHERE


# Changing


@kernel
def copy_pairs(codes: I64, entries: I64, source: Int, to_codes: I64, to_entries: I64, target: Int, count: Int) -> None:
    """Copies pairs to words that are not among those they are read from."""
    for i in range(count):
        to_codes[target + i] = codes[source + i]
    for i in range(count):
        to_entries[target + i] = entries[source + i]


@kernel
def resize_run(head: I64, lists: I64, codes: I64, entries: I64, number: Int, room: Int) -> None:
    """Moves a run into an extent of so many words, or into none if these are 0."""
    old, old_room = lists[number, OFFSET], lists[number, ROOM]
    if room:
        offset = extent_new(entries, head, FREE, 1, class_for(room))
        copy_pairs(codes, entries, old, codes, entries, offset, lists[number, SIZE])
        lists[number, OFFSET] = offset
    lists[number, ROOM] = room
    if old_room:
        extent_free(entries, head, FREE, old, class_for(old_room))


@kernel
def split(head: I64, lists: I64, codes: I64, entries: I64, number: Int, block: Int) -> None:
    """Moves the second half of a full block into a new one, the next. A run becomes the only block of its list first."""
    count = lists[number, BLOCKS]
    old, old_room = lists[number, OFFSET], lists[number, ROOM]
    if count == 0 or 2 * count == old_room:
        room = 2 * ROOM_MIN if count == 0 else 2 * old_room
        directory = extent_new(entries, head, FREE, 1, class_for(room))
        if count == 0:
            codes[directory + ROOM_MIN], entries[directory + ROOM_MIN] = old, lists[number, SIZE]
            count = 1
        else:
            copy_pairs(codes, entries, old, codes, entries, directory, count)
            copy_pairs(codes, entries, old + old_room // 2, codes, entries, directory + old_room, count)
            extent_free(entries, head, FREE, old, class_for(old_room))
        lists[number, OFFSET], lists[number, ROOM] = directory, room
    directory, room = lists[number, OFFSET], lists[number, ROOM]
    for part in (directory, directory + room // 2):
        for i in range(part + count, part + block + 1, -1):
            codes[i] = codes[i - 1]
            entries[i] = entries[i - 1]
    lists[number, BLOCKS] = count + 1
    at = directory + room // 2 + block
    new = extent_new(entries, head, FREE, 1, class_for(BLOCK))
    copy_pairs(codes, entries, codes[at] + BLOCK // 2, codes, entries, new, BLOCK - BLOCK // 2)
    codes[directory + block + 1], entries[directory + block + 1] = codes[new], entries[new]
    codes[at + 1], entries[at + 1] = new, BLOCK - BLOCK // 2
    entries[at] = BLOCK // 2


@kernel
def merge(head: I64, lists: I64, codes: I64, entries: I64, number: Int, block: Int) -> None:
    """Merges a block that has become small with a neighbour, if the two are small together; an empty one always.

    The only block that is left becomes a run.
    """
    directory, room, count = lists[number, OFFSET], lists[number, ROOM], lists[number, BLOCKS]
    sizes = directory + room // 2
    for first in (block - 1, block):
        if 0 <= first < count - 1:
            at = sizes + first
            if entries[at] + entries[at + 1] <= BLOCK_MERGED or entries[sizes + block] == 0:
                copy_pairs(codes, entries, codes[at + 1], codes, entries, codes[at] + entries[at], entries[at + 1])
                entries[at] += entries[at + 1]
                extent_free(entries, head, FREE, codes[at + 1], class_for(BLOCK))
                for part in (directory, sizes):
                    for i in range(part + first + 1, part + count - 1):
                        codes[i] = codes[i + 1]
                        entries[i] = entries[i + 1]
                count -= 1
                lists[number, BLOCKS] = count
                break
    if count == 1:
        lists[number, OFFSET], lists[number, ROOM], lists[number, BLOCKS] = codes[sizes], BLOCK, 0
        extent_free(entries, head, FREE, directory, class_for(room))


@kernel
def put(
    head: I64, lists: I64, codes: I64, entries: I64, number: Int, block: Int, place: Int, code: Int, entry: Int
) -> None:
    """Puts a pair at its place in a block. The pool has `room_needed` words above TOP."""
    offset, size = block_at(lists, codes, entries, number, block)
    if size == BLOCK:
        split(head, lists, codes, entries, number, block)
        if place > BLOCK // 2:
            block += 1
            place -= BLOCK // 2
        offset, size = block_at(lists, codes, entries, number, block)
    elif lists[number, BLOCKS] == 0 and size == lists[number, ROOM]:
        resize_run(head, lists, codes, entries, number, max(ROOM_MIN, 2 * size))
        offset = lists[number, OFFSET]
    # Unsigned, because the check for an index from the end would keep the loops from being vectorised.
    base = np.uint64(offset + place)
    for i in range(size - place, 0, -1):
        codes[base + np.uint64(i)] = codes[base + np.uint64(i - 1)]
    for i in range(size - place, 0, -1):
        entries[base + np.uint64(i)] = entries[base + np.uint64(i - 1)]
    codes[offset + place], entries[offset + place] = code, entry
    lists[number, SIZE] += 1
    if lists[number, BLOCKS]:
        entries[lists[number, OFFSET] + lists[number, ROOM] // 2 + block] += 1


@kernel
def take(head: I64, lists: I64, codes: I64, entries: I64, number: Int, block: Int, place: Int) -> None:
    """Removes the pair at a place of a block."""
    offset, size = block_at(lists, codes, entries, number, block)
    base = np.uint64(offset + place)
    for i in range(size - place - 1):
        codes[base + np.uint64(i)] = codes[base + np.uint64(i + 1)]
    for i in range(size - place - 1):
        entries[base + np.uint64(i)] = entries[base + np.uint64(i + 1)]
    lists[number, SIZE] -= 1
    if lists[number, BLOCKS]:
        entries[lists[number, OFFSET] + lists[number, ROOM] // 2 + block] -= 1
        if size - 1 < BLOCK_LOW:
            merge(head, lists, codes, entries, number, block)
    elif size == 1:
        resize_run(head, lists, codes, entries, number, 0)
    elif 4 * size <= lists[number, ROOM] and lists[number, ROOM] > ROOM_MIN:
        resize_run(head, lists, codes, entries, number, lists[number, ROOM] // 2)


@kernel
def room_needed(lists: I64, number: Int) -> Int:
    """Words above TOP that one change may take: a block, and a directory or a run of twice the size."""
    return 2 * BLOCK + 2 * lists[number, ROOM]


@kernel
def change(
    head: I64,
    lists: I64,
    codes: I64,
    entries: I64,
    step_list: I64,
    step_entry: I64,
    step_code: I64,
    is_present: BoolArray,
    first: Int,
    lo_from: I64,
    hi_to: I64,
    has_twin: BoolArray,
) -> Int:
    """Makes the changes from `first` on, and fills in the `Neighbours` of each; returns DONE or why it stopped."""
    for step in range(first, step_list.shape[0]):
        number, entry, code = step_list[step], step_entry[step], step_code[step]
        head[PROGRESS] = step
        if not has_room(head, room_needed(lists, number)):
            return NEEDS_ROOM
        block, offset, size, place = locate(lists, codes, entries, number, code, entry)
        is_there = place < size and codes[offset + place] == code and entries[offset + place] == entry
        if is_there == is_present[step]:
            return MISFIT
        before, after = beside(lists, codes, entries, number, block, place, place + is_there)
        has_twin[step] = (before != NOWHERE and codes[before] == code) or (after != NOWHERE and codes[after] == code)
        lo_from[step] = codes[before] + 1 if before != NOWHERE and codes[before] < code else CODE_MIN
        hi_to[step] = codes[after] - 1 if after != NOWHERE and codes[after] > code else CODE_MAX
        if is_present[step]:
            put(head, lists, codes, entries, number, block, place, code, entry)
        else:
            take(head, lists, codes, entries, number, block, place)
    return DONE


@kernel
def pack(lists: I64, codes: I64, entries: I64, new_codes: I64, new_entries: I64) -> Int:
    """Copies all extents in use into another pool, one behind the other; gives the words used there."""
    top = 0
    for number in range(lists.shape[0]):
        room = lists[number, ROOM]
        if room == 0:
            continue
        copy_pairs(codes, entries, lists[number, OFFSET], new_codes, new_entries, top, room)
        lists[number, OFFSET] = top
        blocks_at = top + room // 2
        top += room
        for at in range(blocks_at, blocks_at + lists[number, BLOCKS]):
            copy_pairs(codes, entries, new_codes[at], new_codes, new_entries, top, BLOCK)
            new_codes[at] = top
            top += BLOCK
    return top


# Reading


@kernel
def gather(lists: I64, codes: I64, entries: I64, which: I64) -> tuple[I64, I64, I64]:
    """(starts, entries, codes) of the asked lists."""
    starts = np.zeros(which.shape[0] + 1, np.int64)
    for i in range(which.shape[0]):
        starts[i + 1] = starts[i] + lists[which[i], SIZE]
    all_entries = np.empty(starts[-1], np.int64)
    all_codes = np.empty(starts[-1], np.int64)
    end = 0
    for number in which:
        for block in range(max(1, lists[number, BLOCKS])):
            offset, size = block_at(lists, codes, entries, number, block)
            copy_pairs(codes, entries, offset, all_codes, all_entries, end, size)
            end += size
    return starts, all_entries, all_codes


@kernel
def distinct(lists: I64, codes: I64, entries: I64, which: I64) -> tuple[I64, I64]:
    """(starts, different codes) of the asked lists."""
    starts = np.zeros(which.shape[0] + 1, np.int64)
    room = 0
    for number in which:
        room += lists[number, SIZE]
    found = np.empty(room, np.int64)
    end = 0
    for k in range(which.shape[0]):
        for block in range(max(1, lists[which[k], BLOCKS])):
            offset, size = block_at(lists, codes, entries, which[k], block)
            for i in range(offset, offset + size):
                if end == starts[k] or codes[i] > found[end - 1]:
                    found[end] = codes[i]
                    end += 1
        starts[k + 1] = end
    return starts, found[:end]


@kernel
def nearest_in_run(codes: I64, offset: Int, size: Int, marks: I64, found: I64, end: Int) -> Int:
    """Appends the codes of a run that are nearest to the marks; returns the new end."""
    first = end
    place = np.uint64(offset)
    stop = np.uint64(offset + size)
    one = np.uint64(1)
    for mark in marks:
        # How many codes are below the mark, without a branch that depends on them.
        left = stop - place
        while left > one:
            half = left >> one
            place += half * np.uint64(codes[place + half - one] < mark)
            left -= half
        place += np.uint64(codes[place] < mark)
        if place > np.uint64(offset) and (place == stop or codes[place] > mark):
            code = codes[place - one]
            found[end] = code
            end += end == first or code > found[end - 1]
        if place == stop:
            break
        code = codes[place]
        found[end] = code
        end += end == first or code > found[end - 1]
    return end


@kernel
def nearest(lists: I64, codes: I64, entries: I64, which: I64, marks: I64) -> tuple[I64, I64]:
    """(starts, codes): of each asked list, the codes next to the marks on either side."""
    starts = np.zeros(which.shape[0] + 1, np.int64)
    # One more, as a code is written before it is known to be new.
    room = 1
    for number in which:
        room += min(lists[number, SIZE], 2 * marks.shape[0])
    found = np.empty(room, np.int64)
    end = 0
    for i in range(which.shape[0]):
        number = which[i]
        if lists[number, BLOCKS]:
            for mark in marks:
                block, _, _, place = locate(lists, codes, entries, number, mark, CODE_MIN)
                before, after = beside(lists, codes, entries, number, block, place, place)
                is_hit = after != NOWHERE and codes[after] == mark
                if before != NOWHERE and not is_hit and (end == starts[i] or codes[before] > found[end - 1]):
                    found[end] = codes[before]
                    end += 1
                if after != NOWHERE and (end == starts[i] or codes[after] > found[end - 1]):
                    found[end] = codes[after]
                    end += 1
        elif lists[number, SIZE]:
            end = nearest_in_run(codes, lists[number, OFFSET], lists[number, SIZE], marks, found, end)
        starts[i + 1] = end
    return starts, found[:end]
