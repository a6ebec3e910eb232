"""How entries come and go: records are appended, owners have chains of their entries, and the living can be packed anew."""

from __future__ import annotations

import numpy as np

from tidings.families.offers.kernels.box_index.layout import (
    AXIS_FIELDS,
    ENTRY_EQUAL,
    ENTRY_HEAD,
    EQUAL,
    GROUP_AXES,
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
)
from tidings.kernels.arrays import I64, U8, Int
from tidings.kernels.jit import kernel


@kernel
def add_boxes(
    entries: Entries,
    first: Int,
    group: Int,
    words_stop: Int,
    text_stop: Int,
    owner: I64,
    lo: I64,
    hi: I64,
    codes: I64,
    equal: I64,
    ends: I64,
    text: U8,
) -> None:
    """Writes boxes as entries from number `first` on; there is room."""
    axes, texts = entries.groups[group, GROUP_AXES], entries.groups[group, GROUP_TEXTS]
    at = words_stop
    words = entries.words
    for i in range(len(owner)):
        entry = first + i
        entries.owner[entry], entries.group[entry], entries.at[entry] = owner[i], group, at
        entries.alive[entry] = 1
        words[at + ENTRY_EQUAL] = equal[i]
        at += ENTRY_HEAD
        for axis in range(axes):
            words[at + LO], words[at + NOT_HI], words[at + EQUAL] = lo[i, axis], ~hi[i, axis], codes[i, axis]
            at += AXIS_FIELDS
        for field in range(TEXT_FIELDS * texts):
            end = ends[i, field]
            words[at] = end if end < 0 else end + text_stop
            at += 1
    for i in range(len(text)):
        entries.text[text_stop + i] = text[i]


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
