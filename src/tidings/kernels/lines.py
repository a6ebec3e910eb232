"""Notification lines out of who is told what: each text is made once, and copied behind the id of everyone who is told it.

A line is `{"subscription": <id>` and a tail: `, "seq": 7, "snapshot": false, "changes": [..]}`, with `"tx"` behind the seq of a
transaction. Tails are rendered from the
texts of rows' values; lines are put in order of (seq, id), a change before a snapshot, and written in one go.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.events import KIND, NO_TX, SEQ, TX_START, TX_STOP, projections_at
from tidings.kernels.intrinsics import copy_bytes, pointer, prefetch
from tidings.kernels.jit import kernel, uncounted
from tidings.kernels.lives import ID_START, ID_STOP, LABEL, LIFE_FIELDS, Lives
from tidings.kernels.rows.read import (
    ENDS,
    I64,
    NONE,
    RECORD_TEXT,
    U8,
    Int,
    Rows,
    compare_texts,
    record_of,
    rows_at,
    table_of,
)


def _ascii(text: str) -> U8:
    return np.frombuffer(text.encode(), np.uint8).copy()


_HEAD = _ascii('{"subscription": ')
_SEQ, _TX = _ascii(', "seq": '), _ascii(', "tx": "')
_CHANGE, _SNAPSHOT = _ascii(', "snapshot": false, "changes": ['), _ascii(', "snapshot": true, "changes": [')
_INSERT, _DELETE = _ascii('{"op": "insert", "row": '), _ascii('{"op": "delete", "row": ')
_OLD, _ROW = _ascii('{"op": "update", "old": '), _ascii(', "row": ')
_COMMA, _END = _ascii(", "), _ascii("]}\n")
CHANGE_FRAME = 128
"""Bytes of a tail besides its changes, and of a change besides its rows, at most."""

_AHEAD = 16
"""Records and ids are asked for so many lines before they are needed: with a million subscriptions they are in no cache."""

_RUN = 16
"""So many are sorted by insertion before they are merged."""


@uncounted
def _put(out: U8, at: Int, text: U8) -> Int:
    copy_bytes(out, at, text, 0, len(text))
    return at + len(text)


@uncounted
def _put_span(out: U8, at: Int, text: U8, start: Int, stop: Int) -> Int:
    copy_bytes(out, at, text, start, stop - start)
    return at + stop - start


@uncounted
def _put_number(out: U8, at: Int, number: Int) -> Int:
    digits = 1
    rest = number // 10
    while rest:
        digits += 1
        rest //= 10
    for i in range(digits - 1, -1, -1):
        out[at + i] = 48 + number % 10
        number //= 10
    return at + digits


@uncounted
def item_version(sources: I64, item: Int, side: Int) -> Int:
    return sources[item, side] if sources.shape[1] else item


@uncounted
def row_size(rows: Rows, starts: I64, header: I64, sources: I64, projection: Int, item: Int) -> Int:
    """Bytes of a row at most: all values of its records, and the headers."""
    first, last = starts[projection], starts[projection + 1]
    size = header[last] - header[first] + 2
    width = sources.shape[1]
    for side in range(max(width, 1)):
        version = item_version(sources, item, side)
        table = table_of(rows, version)
        size += rows.words[record_of(rows, version) + rows.layout[table, ENDS] + rows.layout[table, 0] - 1]
    return size


@uncounted
def put_row(
    out: U8,
    at: Int,
    rows: Rows,
    starts: I64,
    sides: I64,
    columns: I64,
    header: I64,
    headers: U8,
    sources: I64,
    projection: Int,
    item: Int,
) -> Int:
    for entry in range(starts[projection], starts[projection + 1]):
        for i in range(header[entry], header[entry + 1]):
            out[at] = headers[i]
            at += 1
        version = item_version(sources, item, sides[entry])
        record, table = record_of(rows, version), table_of(rows, version)
        ends = record + rows.layout[table, ENDS] + columns[entry]
        start = rows.words[record + RECORD_TEXT]
        begin = start + (rows.words[ends - 1] if columns[entry] else 0)
        for i in range(begin, start + rows.words[ends]):
            out[at] = rows.text[i]
            at += 1
    out[at] = 125
    return at + 1


@uncounted
def is_less(data: U8, a: I64, b: I64) -> bool:
    size = min(a[1] - a[0], b[1] - b[0])
    for i in range(size):
        if data[a[0] + i] != data[b[0] + i]:
            return data[a[0] + i] < data[b[0] + i]
    return a[1] - a[0] < b[1] - b[0]


@kernel
def _sort_texts(data: U8, bounds: I64) -> None:
    """Heap sort of texts by their bytes, which for UTF-8 is the order of code points."""
    count = len(bounds)
    for phase in range(count // 2 - 1 + count):
        is_building = phase < count // 2
        if is_building:
            root, size = count // 2 - 1 - phase, count
        else:
            size = count - 1 - (phase - count // 2)
            root = 0
            for i in range(2):
                bounds[0, i], bounds[size, i] = bounds[size, i], bounds[0, i]
        while True:
            child = 2 * root + 1
            if child >= size:
                break
            if child + 1 < size and is_less(data, bounds[child], bounds[child + 1]):
                child += 1
            if not is_less(data, bounds[root], bounds[child]):
                break
            for i in range(2):
                bounds[root, i], bounds[child, i] = bounds[child, i], bounds[root, i]
            root = child


@uncounted
def put_head(out: U8, at: Int, seq: Int, tx_text: U8, tx_start: Int, tx_stop: Int) -> Int:
    """The beginning of a tail of changes, up to the first one."""
    at = _put(out, at, _SEQ)
    at = _put_number(out, at, seq)
    if tx_start != NO_TX:
        at = _put(out, at, _TX)
        at = _put_span(out, at, tx_text, tx_start, tx_stop)
        out[at] = 34
        at += 1
    return _put(out, at, _CHANGE)


@uncounted
def put_end(out: U8, at: Int) -> Int:
    """The end of a tail."""
    return _put(out, at, _END)


@uncounted
def put_separator(out: U8, at: Int, is_first: bool) -> Int:
    return at if is_first else _put(out, at, _COMMA)


@uncounted
def put_change(out: U8, at: Int, text: U8, row: I64, is_delete: bool) -> Int:
    """A delete or an insert. row: start and stop in `text`."""
    at = _put(out, at, _DELETE if is_delete else _INSERT)
    at = _put_span(out, at, text, row[0], row[1])
    out[at] = 125
    return at + 1


@uncounted
def put_update(out: U8, at: Int, text: U8, old: I64, new: I64) -> Int:
    """An update. old, new: start and stop in `text`."""
    at = _put(out, at, _OLD)
    at = _put_span(out, at, text, old[0], old[1])
    at = _put(out, at, _ROW)
    at = _put_span(out, at, text, new[0], new[1])
    out[at] = 125
    return at + 1


@kernel
def render_tails(
    handles: I64,
    shown_handles: I64,
    tails: I64,
    changes: I64,
    sources: I64,
    words: I64,
    tx_text: U8,
    first: Int,
    out: U8,
    at: Int,
    ends: I64,
) -> Int:
    """Renders tails from `first` on to out[at:]; ends[i] is where tail i ends. Gives the first that found no room.

    handles: of the rows; shown_handles: of `Projections`. words: of the events; ids of their transactions stand in `tx_text`.
    """
    rows, shown = rows_at(handles), projections_at(shown_handles)
    starts, sides, columns, header, headers = shown.starts, shown.side, shown.column, shown.header, shown.headers
    event_kind, event_seq, tx_start, tx_stop = words[KIND], words[SEQ], words[TX_START], words[TX_STOP]
    for tail in range(first, len(tails)):
        event, projection, begin, end = tails[tail, 0], tails[tail, 1], tails[tail, 2], tails[tail, 3]
        is_snapshot = event_kind[event] != 0
        size = CHANGE_FRAME + (tx_stop[event] - tx_start[event] if tx_start[event] != NO_TX else 0)
        for change in range(begin, end):
            size += CHANGE_FRAME
            for side in range(2):
                if changes[change, side] != NONE:
                    size += row_size(rows, starts, header, sources, projection, changes[change, side])
        if is_snapshot:
            size *= 2
        if at + size > len(out):
            return tail
        if is_snapshot:
            at = _put(out, at, _SEQ)
            at = _put_number(out, at, event_seq[event])
            at = _put(out, at, _SNAPSHOT)
            # Rows are rendered behind the tail's place, sorted, and copied into it.
            bounds = np.empty((end - begin, 2), np.int64)
            free = at + size // 2
            for change in range(begin, end):
                bounds[change - begin, 0] = free
                free = put_row(
                    out,
                    free,
                    rows,
                    starts,
                    sides,
                    columns,
                    header,
                    headers,
                    sources,
                    projection,
                    changes[change, 1],
                )
                bounds[change - begin, 1] = free
            if len(bounds) > 1:
                _sort_texts(out, bounds)
            for i in range(len(bounds)):
                if i:
                    at = _put(out, at, _COMMA)
                at = _put(out, at, _INSERT)
                for j in range(bounds[i, 0], bounds[i, 1]):
                    out[at] = out[j]
                    at += 1
                out[at] = 125
                at += 1
        else:
            at = put_head(out, at, event_seq[event], tx_text, tx_start[event], tx_stop[event])
            for change in range(begin, end):
                if change > begin:
                    at = _put(out, at, _COMMA)
                old, new = changes[change, 0], changes[change, 1]
                if old != NONE:
                    at = _put(out, at, _DELETE if new == NONE else _OLD)
                    at = put_row(out, at, rows, starts, sides, columns, header, headers, sources, projection, old)
                if new != NONE:
                    at = _put(out, at, _INSERT if old == NONE else _ROW)
                    at = put_row(out, at, rows, starts, sides, columns, header, headers, sources, projection, new)
                out[at] = 125
                at += 1
        at = _put(out, at, _END)
        ends[tail] = at
    return len(tails)


@uncounted
def _sort_group(order: I64, key: I64, start: Int, stop: Int, spare: I64) -> None:
    """Merge sort of order[start:stop] by their keys; `spare` is as long as `order`, and its content does not matter."""
    for first in range(start, stop, _RUN):
        for i in range(first + 1, min(first + _RUN, stop)):
            own = order[i]
            j = i - 1
            while j >= first and key[order[j]] > key[own]:
                order[j + 1] = order[j]
                j -= 1
            order[j + 1] = own
    width = _RUN
    while width < stop - start:
        for first in range(start, stop - width, 2 * width):
            middle, end = first + width, min(first + 2 * width, stop)
            for i in range(first, middle):
                spare[i] = order[i]
            i, j, at = first, middle, first
            while i < middle:
                if j < end and key[order[j]] < key[spare[i]]:
                    order[at] = order[j]
                    j += 1
                else:
                    order[at] = spare[i]
                    i += 1
                at += 1
        width *= 2


@kernel
def _put_in_order(event: I64, slot: I64, event_kind: I64, event_seq: I64, lives: Lives) -> I64:
    """The order of notifications: by seq, then by the label of the subscription's id, a change before a snapshot."""
    if len(event) == 1:
        return np.zeros(1, np.int64)
    group = np.empty(len(event_seq) + 1, np.int64)
    count = 0
    for i in range(len(event_seq)):
        if i and event_seq[i] != event_seq[i - 1]:
            count += 1
        group[i] = count
    starts = np.zeros(count + 2, np.int64)
    key = np.empty(len(event), np.int64)
    records = pointer(lives)
    for i in range(len(event)):
        if i + _AHEAD < len(event):
            prefetch(records, slot[i + _AHEAD] * LIFE_FIELDS)
        starts[group[event[i]] + 1] += 1
        key[i] = 2 * lives[slot[i], LABEL] + (1 if event_kind[event[i]] != 0 else 0)
    for i in range(count + 1):
        starts[i + 1] += starts[i]
    order = np.empty(len(event), np.int64)
    fill = starts[: count + 1].copy()
    for i in range(len(event)):
        at = group[event[i]]
        order[fill[at]] = i
        fill[at] += 1
    spare = np.empty(len(event), np.int64)
    for at in range(count + 1):
        if starts[at + 1] - starts[at] > 1:
            _sort_group(order, key, starts[at], starts[at + 1], spare)
    return order


@kernel
def order_told(
    who: I64, count: Int, tails: Int, words: I64, lives: Lives, id_text: U8
) -> tuple[U8, I64, I64, I64, NDArray[np.bool_]]:
    """Notifications in order: (texts of the ids one after the other, where each ends, its tail), and of each tail
    (seq, whether it is of a snapshot).

    who, count: as in `Told`. tails: how many there are. words: of the events.
    """
    event_kind, event_seq = words[KIND], words[SEQ]
    event, slot, tail = who[0, :count], who[1, :count], who[2, :count]
    order = _put_in_order(event, slot, event_kind, event_seq, lives)
    seq, is_snapshot, size = np.zeros(tails, np.int64), np.zeros(tails, np.bool_), 0
    records, ids = pointer(lives), pointer(id_text)
    for i in range(len(order)):
        if i + _AHEAD < len(order):
            prefetch(records, slot[i + _AHEAD] * LIFE_FIELDS)
        size += lives[slot[i], ID_STOP] - lives[slot[i], ID_START]
        seq[tail[i]], is_snapshot[tail[i]] = event_seq[event[i]], event_kind[event[i]] != 0
    texts, ends, ordered = np.empty(size, np.uint8), np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    at = 0
    for i in range(len(order)):
        if i + _AHEAD < len(order):
            prefetch(ids, lives[slot[order[i + _AHEAD]], ID_START])
        own = order[i]
        at = _put_span(texts, at, id_text, lives[slot[own], ID_START], lives[slot[own], ID_STOP])
        ends[i], ordered[i] = at, tail[own]
    return texts, ends, ordered, seq, is_snapshot


@kernel
def write_lines(id_text: U8, id_ends: I64, tail: I64, tail_text: U8, tail_ends: I64) -> U8:
    """Lines, each with its end, as bytes. Texts of ids follow each other, and so do those of tails."""
    size = len(tail) * len(_HEAD) + (id_ends[-1] if len(tail) else 0)
    for i in range(len(tail)):
        size += tail_ends[tail[i]] - (tail_ends[tail[i] - 1] if tail[i] else 0)
    out = np.empty(size, np.uint8)
    at, start = 0, 0
    for i in range(len(tail)):
        own = tail[i]
        at = _put(out, at, _HEAD)
        at = _put_span(out, at, id_text, start, id_ends[i])
        at = _put_span(out, at, tail_text, tail_ends[own - 1] if own else 0, tail_ends[own])
        start = id_ends[i]
    return out


@kernel
def write_told(
    who: I64, count: Int, words: I64, lives: Lives, id_text: U8, tail_text: U8, tail_ends: I64, out: U8
) -> Int:
    """As `order_told` and `write_lines`, at once, to `out`. Gives the bytes it takes; without room nothing is done.

    who, count: as in `Told`. words: of the events.
    """
    event, slot, tail = who[0, :count], who[1, :count], who[2, :count]
    size = len(tail) * len(_HEAD)
    for i in range(len(tail)):
        size += tail_ends[tail[i]] - (tail_ends[tail[i] - 1] if tail[i] else 0)
        size += lives[slot[i], ID_STOP] - lives[slot[i], ID_START]
    if size > len(out):
        return size
    order = _put_in_order(event, slot, words[KIND], words[SEQ], lives)
    at = 0
    ids = pointer(id_text)
    for i in range(len(order)):
        if i + _AHEAD < len(order):
            prefetch(ids, lives[slot[order[i + _AHEAD]], ID_START])
        own = order[i]
        told = tail[own]
        at = _put(out, at, _HEAD)
        at = _put_span(out, at, id_text, lives[slot[own], ID_START], lives[slot[own], ID_STOP])
        at = _put_span(out, at, tail_text, tail_ends[told - 1] if told else 0, tail_ends[told])
    return size


@kernel
def index_lines(data: U8) -> I64:
    """[lines, 5]: start and stop of each line, start and stop of its id (quotes included), and its seq."""
    count = 0
    for i in range(len(data)):
        if data[i] == 10:
            count += 1
    found = np.empty((count, 5), np.int64)
    start = 0
    line = 0
    for i in range(len(data)):
        if data[i] != 10:
            continue
        begin = start + len(_HEAD)
        end = begin + 1
        while data[end] != 34:
            end += 2 if data[end] == 92 else 1
        at = end + 1 + len(_SEQ)
        seq = np.int64(0)
        while 48 <= data[at] <= 57:
            seq = 10 * seq + (np.int64(data[at]) - 48)
            at += 1
        found[line, 0], found[line, 1], found[line, 2], found[line, 3], found[line, 4] = (
            start,
            i + 1,
            begin,
            end + 1,
            seq,
        )
        line += 1
        start = i + 1
    return found


@kernel
def merge_lines(a: U8, a_index: I64, b: U8, b_index: I64) -> U8:
    """The lines of two texts, each in order, in one that is; no id is in both."""
    out = np.empty(len(a) + len(b), np.uint8)
    at, i, j = 0, 0, 0
    while i < len(a_index) or j < len(b_index):
        takes_a = j == len(b_index)
        if i < len(a_index) and not takes_a:
            takes_a = a_index[i, 4] < b_index[j, 4]
            if a_index[i, 4] == b_index[j, 4]:
                takes_a = compare_texts(a, a_index[i, 2], a_index[i, 3], b, b_index[j, 2], b_index[j, 3]) < 0
        if takes_a:
            for k in range(a_index[i, 0], a_index[i, 1]):
                out[at] = a[k]
                at += 1
            i += 1
        else:
            for k in range(b_index[j, 0], b_index[j, 1]):
                out[at] = b[k]
                at += 1
            j += 1
    return out
