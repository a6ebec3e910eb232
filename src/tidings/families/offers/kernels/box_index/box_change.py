"""How entries come and go: records are appended, owners have chains of their entries, and the living can be packed anew."""

from __future__ import annotations

import numpy as np

from tidings.families.offers.constraint import AXIS, AXIS_WORDS, BOX_AXES, BOX_EQUAL, BOX_WORDS
from tidings.families.offers.constraint import HI as PACKED_HI
from tidings.families.offers.constraint import LO as PACKED_LO
from tidings.families.offers.constraint import LO_START as PACKED_ENDS
from tidings.families.offers.kernels.box_index.box_layout import (
    AXIS_FIELDS,
    ENTRY_EQUAL,
    ENTRY_HEAD,
    EQUAL,
    GROUP_AXES,
    GROUP_COUNT,
    GROUP_ROOM,
    GROUP_START,
    GROUP_TEXTS,
    HI_START,
    HI_STOP,
    LO,
    LO_START,
    LO_STOP,
    NONE,
    NOT_HI,
    TEXT_FIELDS,
    Entries,
    entries_at,
)
from tidings.families.offers.kernels.packed import AT, OF, TEXT
from tidings.kernels.arrays import I32, I64, U8, Int
from tidings.kernels.jit import kernel
from tidings.kernels.rows.read import hash_bytes


@kernel
def measure_boxes(words: I64, boxes: I64, group: I64, places: I32, is_text: U8) -> tuple[Int, Int]:
    """(words, bytes of texts) that entries of these boxes need; (NONE, NONE) if a box has other axes than its group."""
    needed = size = np.int64(0)
    for i in range(len(boxes)):
        head = boxes[i, AT]
        axes = words[head + BOX_AXES]
        needed += ENTRY_HEAD + AXIS_FIELDS * axes
        for place in range(axes):
            entry = head + BOX_WORDS + AXIS_WORDS * place
            axis = words[entry + AXIS]
            if places[group[i], axis] != place:
                return np.int64(NONE), np.int64(NONE)
            if is_text[axis]:
                needed += TEXT_FIELDS
                for end in range(2):
                    at = entry + PACKED_ENDS + 2 * end
                    size += words[at + 1] - words[at]
    return needed, size


@kernel
def add_boxes(
    handles: I64,
    first: Int,
    words_stop: Int,
    text_stop: Int,
    owner: I64,
    group: I64,
    words: I64,
    boxes: I64,
    text: U8,
    is_text: U8,
) -> None:
    """Writes boxes as entries from number `first` on, and into the lists of their groups; there is room.

    owner: of each constraint, group: of each box.
    """
    entries = entries_at(handles)
    out = entries.words
    at, text_at = words_stop, text_stop
    for i in range(len(boxes)):
        entry, head = first + i, boxes[i, AT]
        axes = words[head + BOX_AXES]
        equal = words[head + BOX_EQUAL]
        entries.owner[entry], entries.group[entry], entries.at[entry] = owner[boxes[i, OF]], group[i], at
        entries.alive[entry] = 1
        own = entries.groups[group[i]]
        entries.lists[own[GROUP_START] + own[GROUP_COUNT]] = entry
        own[GROUP_COUNT] += 1
        out[at + ENTRY_EQUAL] = equal
        at += ENTRY_HEAD
        ends = at + AXIS_FIELDS * axes
        for place in range(axes):
            source = head + BOX_WORDS + AXIS_WORDS * place
            lo = words[source + PACKED_LO]
            out[at + LO], out[at + NOT_HI], out[at + EQUAL] = lo, ~words[source + PACKED_HI], lo
            if is_text[words[source + AXIS]]:
                for end in range(2):
                    begin, stop = words[source + PACKED_ENDS + 2 * end], words[source + PACKED_ENDS + 2 * end + 1]
                    out[ends + 2 * end], out[ends + 2 * end + 1] = NONE, NONE
                    if begin >= 0:
                        out[ends + 2 * end] = text_at
                        for j in range(begin, stop):
                            entries.text[text_at] = text[boxes[i, TEXT] + j]
                            text_at += 1
                        out[ends + 2 * end + 1] = text_at
                if (equal >> place) & 1:
                    out[at + EQUAL] = hash_bytes(entries.text, out[ends + LO_START], out[ends + LO_STOP])
                ends += TEXT_FIELDS
            at += AXIS_FIELDS
        at = ends


@kernel
def make_lists(groups: I64, numbers: I64, counts: I64, lists: I64, stop: Int) -> Int:
    """Moves the lists of groups that lack room for `counts` more entries to the end; where that is then, or how long `lists`
    has to be, negated, if there is no room for that.
    """
    needed = np.int64(0)
    for i in range(len(numbers)):
        own = groups[numbers[i]]
        if own[GROUP_COUNT] + counts[i] > own[GROUP_ROOM]:
            needed += max(np.int64(4), 2 * own[GROUP_COUNT] + counts[i])
    if stop + needed > len(lists):
        return -(stop + needed)
    for i in range(len(numbers)):
        own = groups[numbers[i]]
        if own[GROUP_COUNT] + counts[i] > own[GROUP_ROOM]:
            room = max(np.int64(4), 2 * own[GROUP_COUNT] + counts[i])
            for j in range(own[GROUP_COUNT]):
                lists[stop + j] = lists[own[GROUP_START] + j]
            own[GROUP_START], own[GROUP_ROOM] = stop, room
            stop += room
    return stop


@kernel
def chain_entries(first: I64, following: I64, owner: I64, start: Int, stop: Int) -> None:
    """Puts entries into the chains of their owners."""
    for entry in range(start, stop):
        following[entry] = first[owner[entry]]
        first[owner[entry]] = entry


@kernel
def mark_dead(first: I64, following: I64, alive: U8, owners: I64) -> Int:
    """Marks all entries of these owners as dead; how many there were."""
    n = np.int64(0)
    for owner in owners:
        entry = first[owner]
        while entry != NONE:
            alive[entry] = 0
            n += 1
            entry = following[entry]
        first[owner] = NONE
    return n


@kernel
def pack_entries(entries: Entries, living: I64, at: I64, words: I64, text: U8) -> tuple[Int, Int]:
    """Copies the records and texts of living entries to `words` and `text`; where both end. at: where each record is there."""
    words_stop = text_stop = np.int64(0)
    for i in range(len(living)):
        group = entries.group[living[i]]
        axes, texts = entries.groups[group, GROUP_AXES], entries.groups[group, GROUP_TEXTS]
        source = entries.at[living[i]]
        at[i] = words_stop
        for word in range(ENTRY_HEAD + AXIS_FIELDS * axes):
            words[words_stop] = entries.words[source + word]
            words_stop += 1
        source += ENTRY_HEAD + AXIS_FIELDS * axes
        for _ in range(texts):
            for start, stop in ((LO_START, LO_STOP), (HI_START, HI_STOP)):
                begin, end = entries.words[source + start], entries.words[source + stop]
                words[words_stop + start], words[words_stop + stop] = begin, end
                if begin >= 0:
                    for place in range(begin, end):
                        text[text_stop + place - begin] = entries.text[place]
                    words[words_stop + start] = text_stop
                    text_stop += end - begin
                    words[words_stop + stop] = text_stop
            words_stop += TEXT_FIELDS
            source += TEXT_FIELDS
    return words_stop, text_stop


@kernel
def list_entries(group: I64, groups: I64, lists: I64) -> None:
    """Writes the entries into the lists of their groups, which are empty and have room."""
    for entry in range(len(group)):
        own = groups[group[entry]]
        lists[own[GROUP_START] + own[GROUP_COUNT]] = entry
        own[GROUP_COUNT] += 1
