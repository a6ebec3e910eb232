"""Packs: which rows each place is sent, and how they travel.

A *place* is where some of the subscriptions are evaluated, over no other rows than those that it has been sent. For each row
the sender keeps two sets of places, as bits:

- *may*: those that may hold the row. They get every change of it.
- *sure*: those that surely hold it. They need not be sent it when it enters one of their answers.

A row that enters an answer without having changed is sent as a *backfill*, before the changes of the same seq, as it was
before them. With it, the place's answers are right before these changes, and so are told the difference.

A pack is a run of items, which are in the order in which the place applies them:

    flags and table | seq - base | [bytes of the transaction's id, the id] | values: of a delete those of the key

as varints; of a value its text, behind twice the length of that, plus 1 if eight bytes of code follow, because the text does
not say it. Words, of which compiled constraints are made, are one byte each where they are small or the end of all codes.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.events import CHANGE, NO_TX, PART, SILENT
from tidings.kernels.jit import kernel, uncounted
from tidings.kernels.rows.change import (
    ACCEPTED,
    COMMIT,
    DELETE,
    MOMENT,
    OP,
    OUTCOME,
    SEQ,
    STATUS,
    TX_START,
    TX_STOP,
    UPSERT,
    VERSION,
    keys_at,
    take_version,
)
from tidings.kernels.rows.read import (
    COLUMNS,
    I32,
    I64,
    NONE,
    U8,
    Int,
    Rows,
    code_at,
    is_valid,
    record_of,
    rows_at,
    table_of,
    text_at,
)
from tidings.kernels.rows.scan import COMPILED, READ, names_at, read_value, write_version

# Fields of an item: its event, the version of the row, flags.
EVENT, ITEM_VERSION, FLAGS, ITEM_FIELDS = range(4)
# Flags of an item.
IS_DELETE, IS_PART, HAS_TX, IS_BACKFILL = 1, 2, 4, 8
_FLAG_BITS, _FLAGS = 4, 15
# Words as bytes: those below are themselves; then those that are frequent; four bytes follow, or eight.
_SMALL_MAX = 250
_LEAST, _GREATEST, _MINUS_ONE, _HALF, _WHOLE = 251, 252, 253, 254, 255
_CODE_MIN, _CODE_MAX = np.int64(-(2**63)), np.int64(2**63 - 1)


@kernel
def list_entered(
    who: I64, size: Int, tails: I64, changes: I64, sources: I64, place: I64, words: Int
) -> tuple[I64, I64, I64]:
    """The rows that enter answers of one family: (event of each, version, places [entered, words] as bits).

    place: [slots]. The rest as in `Told`.
    """
    masks = np.zeros((len(tails), words), np.int64)
    for i in range(size):
        at = place[who[1, i]]
        masks[who[2, i], at >> 6] |= np.int64(1) << (at & 63)
    sides = sources.shape[1]
    count = 0
    for t in range(len(tails)):
        count += max(sides, 1) * (tails[t, 3] - tails[t, 2])
    events, versions, places = np.empty(count, np.int64), np.empty(count, np.int64), np.empty((count, words), np.int64)
    found = 0
    for t in range(len(tails)):
        for c in range(tails[t, 2], tails[t, 3]):
            # An update is of a row that was there before.
            item = changes[c, 1]
            if changes[c, 0] != NONE or item == NONE:
                continue
            for side in range(max(sides, 1)):
                version = sources[item, side] if sides else item
                if side and version == sources[item, 0]:
                    continue
                events[found], versions[found] = tails[t, 0], version
                for word in range(words):
                    places[found, word] = masks[t, word]
                found += 1
    return events[:found], versions[:found], places[:found]


@uncounted
def _add_item(items: I64, count: Int, event: Int, version: Int, flags: Int) -> None:
    items[count, EVENT], items[count, ITEM_VERSION], items[count, FLAGS] = event, version, flags


@uncounted
def _backfill(items: I64, masks: I64, count: Int, event: Int, version: Int, mask: I64, may: I64, sure: I64) -> Int:
    """Sends a row to those of the places that do not surely hold it; how many items there are then."""
    is_any = False
    for word in range(len(mask)):
        more = mask[word] & ~sure[version, word]
        masks[count, word] = more
        is_any |= more != 0
        sure[version, word] |= more
        may[version, word] |= more
    if not is_any:
        return count
    _add_item(items, count, event, version, np.int64(IS_BACKFILL))
    return count + 1


@kernel
def list_items(
    kind: I64,
    seq: I64,
    old: I64,
    new: I64,
    is_part: I64,
    since: I64,
    entered_event: I64,
    entered_version: I64,
    entered_places: I64,
    may: I64,
    sure: I64,
) -> tuple[I64, I64]:
    """What is sent in a micro-batch: (items [items, ITEM_FIELDS], places of each as bits).

    kind .. is_part: [events], as in `Events`. since: of versions, as in `Rows`. entered: rows that enter answers, in order of
    events. may, sure: [versions, words], kept up to date.
    """
    words = may.shape[1]
    events, entries = len(kind), len(entered_event)
    room = events + entries
    items, masks = np.empty((room, ITEM_FIELDS), np.int64), np.empty((room, words), np.int64)
    own = np.zeros((events, words), np.int64)
    count, at, first = np.int64(0), 0, 0
    while first < events:
        stop = first
        while stop < events and seq[stop] == seq[first]:
            stop += 1
        # Rows that enter answers at this seq because of changes. One that has changed at it is sent as changed.
        while at < entries and entered_event[at] < stop and kind[entered_event[at]] == CHANGE:
            version = entered_version[at]
            brought = since[version]
            if first <= brought < stop:
                for word in range(words):
                    own[brought, word] |= entered_places[at, word]
            else:
                count = _backfill(items, masks, count, entered_event[at], version, entered_places[at], may, sure)
            at += 1
        for event in range(first, stop):
            if kind[event] != CHANGE:
                continue
            before, after = old[event], new[event]
            is_any = False
            for word in range(words):
                to = own[event, word]
                if before != NONE:
                    to |= may[before, word]
                if after != NONE:
                    may[after, word] = sure[after, word] = to
                masks[count, word] = to
                is_any |= to != 0
            if is_any:
                flags = np.int64(IS_DELETE if after == NONE else 0)
                if len(is_part) and is_part[event] != 0:
                    flags |= IS_PART
                _add_item(items, count, event, before if after == NONE else after, flags)
                count += 1
        while at < entries and entered_event[at] < stop:
            count = _backfill(
                items, masks, count, entered_event[at], entered_version[at], entered_places[at], may, sure
            )
            at += 1
        first = stop
    return items[:count], masks[:count]


@uncounted
def _put_varint(out: U8, at: Int, value: Int) -> Int:
    while value >= 128:
        out[at] = value & 127 | 128
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


@uncounted
def _varint(data: U8, at: Int) -> tuple[Int, Int]:
    """(place behind a varint, its value)."""
    value, shift = np.int64(0), 0
    while data[at] >= 128:
        value |= np.int64(data[at] & 127) << shift
        shift += 7
        at += 1
    return at + 1, value | np.int64(data[at]) << shift


@uncounted
def _put_bytes(out: U8, at: Int, data: U8, start: Int, stop: Int) -> Int:
    for i in range(start, stop):
        out[at] = data[i]
        at += 1
    return at


@uncounted
def _put_little(out: U8, at: Int, value: Int, count: Int) -> Int:
    """Puts so many bytes of a number, the least first."""
    for i in range(count):
        out[at] = value >> (8 * i) & 255
        at += 1
    return at


@uncounted
def _little(data: U8, at: Int, count: Int) -> Int:
    value = np.int64(0)
    for i in range(count):
        value |= np.int64(data[at + i]) << (8 * i)
    return value


@uncounted
def _put_words(out: U8, at: Int, data: U8, start: Int, stop: Int) -> Int:
    for place in range(start, stop, 8):
        word = _little(data, place, 8)
        if 0 <= word <= _SMALL_MAX:
            out[at] = word
        elif word == _CODE_MIN:
            out[at] = _LEAST
        elif word == _CODE_MAX:
            out[at] = _GREATEST
        elif word == -1:
            out[at] = _MINUS_ONE
        elif 0 <= word < 1 << 32:
            out[at] = _HALF
            at = _put_little(out, at + 1, word, 4) - 1
        else:
            out[at] = _WHOLE
            at = _put_little(out, at + 1, word, 8) - 1
        at += 1
    return at


@uncounted
def _read_words(data: U8, at: Int, free: Int, size: Int) -> Int:
    """Writes words that stand at `at` to `free`; the place behind them."""
    for place in range(free, free + size, 8):
        head = np.int64(data[at])
        at += 1
        word = head
        if head == _LEAST:
            word = _CODE_MIN
        elif head == _GREATEST:
            word = _CODE_MAX
        elif head == _MINUS_ONE:
            word = np.int64(-1)
        elif head == _HALF:
            word = _little(data, at, 4)
            at += 4
        elif head == _WHOLE:
            word = _little(data, at, 8)
            at += 8
        _put_little(data, place, word, 8)
    return at


@uncounted
def _put_value(out: U8, at: Int, rows: Rows, record: Int, table: Int, column: Int, type: Int) -> Int:
    if not is_valid(rows, record, column):
        out[at] = 0
        return at + 1
    start, stop = text_at(rows, record, table, column)
    if type == COMPILED:
        at = _put_varint(out, at, 2 * (stop - start))
        return _put_words(out, at, rows.text, start, stop)
    _, read = read_value(rows.text, start, stop, type)
    code = code_at(rows, record, table, column)
    at = _put_varint(out, at, 2 * (stop - start) + (read != code))
    at = _put_bytes(out, at, rows.text, start, stop)
    return at if read == code else _put_little(out, at, code, 8)


@uncounted
def _put_item(
    out: U8,
    at: Int,
    rows: Rows,
    types: I32,
    version: Int,
    flags: Int,
    seq: Int,
    tx_text: U8,
    tx_start: Int,
    tx_stop: Int,
) -> Int:
    table, record = table_of(rows, version), record_of(rows, version)
    if tx_start != NO_TX:
        flags |= HAS_TX
    at = _put_varint(out, at, np.int64(table) << _FLAG_BITS | flags)
    at = _put_varint(out, at, seq)
    if tx_start != NO_TX:
        at = _put_varint(out, at, tx_stop - tx_start)
        at = _put_bytes(out, at, tx_text, tx_start, tx_stop)
    if flags & IS_DELETE:
        for i in range(rows.keys.shape[1]):
            column = rows.keys[table, i]
            if column == NONE:
                break
            at = _put_value(out, at, rows, record, table, column, types[table, column])
        return at
    for column in range(rows.layout[table, COLUMNS]):
        at = _put_value(out, at, rows, record, table, column, types[table, column])
    return at


@kernel
def encode_packs(
    handles: I64,
    types: I32,
    items: I64,
    masks: I64,
    seq: I64,
    base: Int,
    tx: I64,
    tx_text: U8,
    counts: I64,
    ends: I64,
) -> U8:
    """The packs of all places, one behind the other: that of place p ends at ends[p]. Each item is encoded once.

    handles: of the rows. seq: [events]; tx: [2, events] or [2, 0], where ids of transactions stand in `tx_text`.
    counts: [places, 2], to which items and backfills of each are added.
    """
    rows = rows_at(handles)
    room = np.int64(0)
    for i in range(len(items)):
        version = items[i, ITEM_VERSION]
        table = table_of(rows, version)
        columns = rows.layout[table, COLUMNS]
        _, stop = text_at(rows, record_of(rows, version), table, columns - 1)
        start, _ = text_at(rows, record_of(rows, version), table, np.int64(0))
        room += stop - start + (stop - start >> 3) + 18 * columns + 40
        if tx.shape[1] and tx[0, items[i, EVENT]] != NO_TX:
            room += tx[1, items[i, EVENT]] - tx[0, items[i, EVENT]]
    encoded, spans = np.empty(room, np.uint8), np.zeros(len(items) + 1, np.int64)
    at = np.int64(0)
    places = len(ends)
    sizes = np.zeros(places, np.int64)
    for i in range(len(items)):
        event, flags = items[i, EVENT], items[i, FLAGS]
        start = stop = np.int64(NO_TX)
        if tx.shape[1] and flags & IS_BACKFILL == 0:
            start, stop = tx[0, event], tx[1, event]
        at = _put_item(encoded, at, rows, types, items[i, ITEM_VERSION], flags, seq[event] - base, tx_text, start, stop)
        spans[i + 1] = at
        size = at - spans[i]
        for word in range(masks.shape[1]):
            mask = masks[i, word]
            place = 64 * word
            while mask != 0:
                if mask & 1:
                    sizes[place] += size
                    counts[place, 0] += 1
                    counts[place, 1] += flags & IS_BACKFILL != 0
                mask = mask >> 1 & 0x7FFFFFFFFFFFFFFF
                place += 1
    total = np.int64(0)
    for place in range(places):
        ends[place] = total
        total += sizes[place]
    out = np.empty(total, np.uint8)
    for i in range(len(items)):
        for word in range(masks.shape[1]):
            mask = masks[i, word]
            place = 64 * word
            while mask != 0:
                if mask & 1:
                    ends[place] = _put_bytes(out, ends[place], encoded, spans[i], spans[i + 1])
                mask = mask >> 1 & 0x7FFFFFFFFFFFFFFF
                place += 1
    return out


@uncounted
def _read_cell(data: U8, at: Int, type: Int, cells: I64, column: Int, free: Int) -> tuple[Int, Int]:
    """(place behind a value, which is put into `cells`; the first place of `data` that is free for words)."""
    at, head = _varint(data, at)
    size = head >> 1
    stop = at + size
    cells[column, 0], cells[column, 1], cells[column, 2], cells[column, 3] = at, stop, 0, head != 0
    if head == 0:
        return at, free
    if type == COMPILED:
        cells[column, 0], cells[column, 1] = free, free + size
        return _read_words(data, at, free, size), free + size
    if head & 1 == 0:
        _, cells[column, 2] = read_value(data, at, stop, type)
        return stop, free
    cells[column, 2] = _little(data, stop, 8)
    return stop + 8, free


@kernel
def decode_pack(
    handles: I64, data: U8, size: Int, base: Int, at: Int, first: Int, numbers: I64, is_part: I64
) -> tuple[Int, Int]:
    """Reads the items of a pack from number `first` on, which stands at `at`: versions are made, and records for them.

    (the item it stopped at because there was no room for another page, its place), or how many there are. handles: of the
    store. size: of the pack; behind it `data` has room for words, eight bytes for each of its bytes. numbers:
    [RECORD_FIELDS, items]; is_part: [items], as in `Events`. Texts have room.
    """
    rows, keys, types = rows_at(handles), keys_at(handles), names_at(handles).types
    free = np.int64(size)
    cells = np.empty((rows.kinds.shape[1], 4), np.int64)
    for i in range(first, numbers.shape[1]):
        begin = at
        at, head = _varint(data, at)
        flags, table = head & _FLAGS, head >> _FLAG_BITS
        at, seq = _varint(data, at)
        seq += base
        numbers[TX_START, i] = NO_TX
        if flags & HAS_TX:
            at, length = _varint(data, at)
            numbers[TX_START, i], numbers[TX_STOP, i] = at, at + length
            at += length
        taken = take_version(rows, keys, table)
        if taken == NONE:
            return np.int64(i), begin
        columns = rows.layout[table, COLUMNS]
        if flags & IS_DELETE:
            for column in range(columns):
                cells[column, 0] = cells[column, 1] = cells[column, 2] = cells[column, 3] = 0
            for k in range(rows.keys.shape[1]):
                column = rows.keys[table, k]
                if column == NONE:
                    break
                at, free = _read_cell(data, at, types[table, column], cells, column, free)
        else:
            for column in range(columns):
                at, free = _read_cell(data, at, types[table, column], cells, column, free)
        write_version(rows, keys, taken, table, data, cells)
        is_part[i] = SILENT if flags & IS_BACKFILL else PART if flags & IS_PART else 0
        numbers[STATUS, i], numbers[OUTCOME, i], numbers[COMMIT, i] = READ, ACCEPTED, i
        numbers[SEQ, i] = numbers[MOMENT, i] = seq
        numbers[OP, i], numbers[VERSION, i] = DELETE if flags & IS_DELETE else UPSERT, taken
    return np.int64(numbers.shape[1]), at
