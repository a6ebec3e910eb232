"""Reads change records straight from their JSON text into versions of rows, for the text most records have.

A value whose text is already what a line of output would show is taken as it stands: nothing is rendered. Whatever is
written otherwise (escapes, `5` or `-0.0` for a double, exponents, other fields or another order of them, anything wrong) is
left to the caller, who reads it the slow way and says precisely what is the matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.kernels.events import NO_TX
from tidings.kernels.handles import half_array_at, half_table_at, table_at, text_array_at
from tidings.kernels.jit import kernel, uncounted
from tidings.kernels.rows.change import (
    DELETE,
    FIRST_OF_NAMES,
    INDEXED,
    NEW,
    OLD,
    OP,
    OUTCOME,
    PASSED,
    SEQ,
    START,
    STATUS,
    STOP,
    TEXT_END,
    TRAFFIC,
    TX_START,
    TX_STOP,
    UPSERT,
    VERSION,
    Keys,
    admit,
    apply_records,
    compose,
    keys_at,
    merge_events,
    number_commits,
    take_version,
)
from tidings.kernels.rows.read import (
    CODES,
    COLUMNS,
    ENDS,
    EQUALS,
    I32,
    I64,
    NONE,
    RECORD_TEXT,
    RECORD_VALID,
    U8,
    Int,
    Rows,
    hash_bytes,
    record_of,
    rows_at,
    same_bytes,
)

# Types of columns, as far as reading them differs.
BIGINT, INT, DOUBLE, TEXT_TYPE, BOOLEAN, DATE, TIMESTAMP, OTHER, COMPILED = range(9)
"""OTHER is not read here, nor is COMPILED: a compiled constraint, kept as words of eight bytes."""
# What became of a line.
READ, ODD = 0, 1
RECORD_BYTES_MAX = 16 * 2**20
"""Longer records are odd, and then refused."""
_TX_BYTES_MAX = 1_000
DAY_US = 86_400_000_000
_MIRROR = np.int64(2**63 - 1)
_SEQ, _TX, _TABLE, _OP, _ROW = (
    np.frombuffer(word, np.uint8).copy() for word in (b'"seq"', b'"tx"', b'"table"', b'"op"', b'"row"')
)
_OPS = np.frombuffer(b'"insert""update""upsert""delete"', np.uint8).copy()
"""In the order of INSERT, UPDATE, UPSERT and DELETE."""
_NULL, _TRUE, _FALSE = (np.frombuffer(word, np.uint8).copy() for word in (b"null", b"true", b"false"))
_TENS = np.array([10.0**i for i in range(23)])
_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


class Names(NamedTuple):
    """Names of tables and columns as they stand in records, quotes included, and the types of columns."""

    text: U8
    tables: I64
    """[tables, 2]: start and stop in `text`."""
    columns: I64
    """[tables * columns at most, 2]."""
    types: I32
    """[tables, columns at most]."""
    is_key: I32
    """[tables, columns at most]."""
    is_read: I32
    """[tables]: 0 for tables whose records are not rows."""


@kernel
def names_at(handles: I64) -> Names:
    """The names whose arrays have these handles, behind those of the rows and keys of a store."""
    first = FIRST_OF_NAMES
    return Names(
        text_array_at(handles, first),
        table_at(handles, first + 1),
        table_at(handles, first + 2),
        half_table_at(handles, first + 3),
        half_table_at(handles, first + 4),
        half_array_at(handles, first + 5),
    )


@uncounted
def _skip(data: U8, at: Int, end: Int) -> Int:
    while at < end and (data[at] == 32 or data[at] == 9):
        at += 1
    return at


@uncounted
def _word(data: U8, at: Int, end: Int, word: U8) -> Int:
    """The place behind the word if it stands here, else NONE."""
    if at == NONE or end - at < len(word):
        return np.int64(NONE)
    for i in range(len(word)):
        if data[at + i] != word[i]:
            return np.int64(NONE)
    return at + len(word)


@uncounted
def _byte(data: U8, at: Int, end: Int, byte: Int) -> Int:
    """The place behind the byte, and white space around it, if it stands here, else NONE."""
    if at == NONE:
        return np.int64(NONE)
    at = _skip(data, at, end)
    if at >= end or data[at] != byte:
        return np.int64(NONE)
    return _skip(data, at + 1, end)


@uncounted
def _field(data: U8, at: Int, end: Int, name: U8) -> Int:
    """The place of the value of a field of that name."""
    return _byte(data, _word(data, at, end, name), end, 58)


@uncounted
def _string(data: U8, at: Int, end: Int) -> Int:
    """The place behind a string of valid UTF-8 without escapes, else NONE."""
    if at >= end or data[at] != 34:
        return np.int64(NONE)
    at += 1
    while at < end:
        byte = data[at]
        if byte == 34:
            return at + 1
        if byte < 32 or byte == 92:
            return np.int64(NONE)
        if byte < 128:
            at += 1
            continue
        if byte < 0xC2 or byte > 0xF4:
            return np.int64(NONE)
        more = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
        if at + more >= end:
            return np.int64(NONE)
        second = data[at + 1]
        if (
            (byte == 0xE0 and second < 0xA0)
            or (byte == 0xED and second > 0x9F)
            or (byte == 0xF0 and second < 0x90)
            or (byte == 0xF4 and second > 0x8F)
        ):
            return np.int64(NONE)
        for i in range(1, more + 1):
            if data[at + i] & 0xC0 != 0x80:
                return np.int64(NONE)
        at += more + 1
    return np.int64(NONE)


@uncounted
def _integer(data: U8, at: Int, end: Int) -> tuple[Int, Int]:
    """(place behind an integer of at most 18 digits, its value), or (NONE, 0)."""
    is_negative = at < end and data[at] == 45
    first = at + 1 if is_negative else at
    at = first
    value = np.int64(0)
    while at < end and 48 <= data[at] <= 57:
        value = value * 10 + (np.int64(data[at]) - 48)
        at += 1
        if at - first > 18:
            return np.int64(NONE), np.int64(0)
    if at == first or (data[first] == 48 and (at - first > 1 or is_negative)):
        return np.int64(NONE), np.int64(0)
    return at, -value if is_negative else value


@uncounted
def _double(data: U8, at: Int, end: Int) -> tuple[Int, Int]:
    """(place behind a number, its code), or (NONE, 0) unless it is the shortest text of that double.

    Up to 15 digits and a power of ten up to 22 are exact as doubles, so one division rounds correctly, and no shorter text
    means the same number.
    """
    none = np.int64(NONE), np.int64(0)
    is_negative = at < end and data[at] == 45
    if is_negative:
        at += 1
    whole = at
    mantissa, digits = np.int64(0), 0
    while at < end and 48 <= data[at] <= 57:
        mantissa = mantissa * 10 + (np.int64(data[at]) - 48)
        if mantissa:
            digits += 1
        at += 1
        if digits > 15:
            return none
    if at == whole or (data[whole] == 48 and at - whole > 1) or at >= end or data[at] != 46:
        return none
    at += 1
    point = at
    zeros = 0
    while at < end and 48 <= data[at] <= 57:
        mantissa = mantissa * 10 + (np.int64(data[at]) - 48)
        if mantissa:
            digits += 1
        else:
            zeros += 1
        at += 1
        if digits > 15 or zeros > 4:
            return none
    places = at - point
    if places == 0 or (data[at - 1] == 48 and places > 1) or (at < end and (data[at] == 101 or data[at] == 69)):
        return none
    if mantissa == 0:
        return none if is_negative else (at, np.int64(0))
    if zeros > 3:
        return none
    value = np.float64(mantissa) / _TENS[places]
    bits = np.float64(-value if is_negative else value).view(np.int64)
    return at, bits if bits >= 0 else bits ^ _MIRROR


@uncounted
def _transaction(data: U8, at: Int, end: Int) -> tuple[Int, Int, Int]:
    """(place behind the id of a transaction, its start and stop without quotes), or NONE if it is odd."""
    none = np.int64(NONE)
    if at < end and data[at] == 34:
        stop = _string(data, at, end)
        # As many bytes as characters are allowed are not too many.
        return (stop, at + 1, stop - 1) if stop != NONE and stop - at < _TX_BYTES_MAX else (none, none, none)
    stop, _ = _integer(data, at, end)
    return stop, np.int64(at), stop


@uncounted
def _digits(data: U8, at: Int, count: Int) -> Int:
    """The number of so many digits, or NONE."""
    value = np.int64(0)
    for i in range(count):
        if data[at + i] < 48 or data[at + i] > 57:
            return np.int64(NONE)
        value = value * 10 + (np.int64(data[at + i]) - 48)
    return value


@uncounted
def _days(year: Int, month: Int, day: Int) -> Int:
    """Days since 1970-01-01."""
    y = year - 1 if month <= 2 else year
    era = y // 400
    of_era = y - era * 400
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@uncounted
def _moment(data: U8, at: Int, end: Int, has_time: bool) -> tuple[Int, Int]:
    """(place behind a date or a timestamp, its code), or (NONE, 0)."""
    none = np.int64(NONE), np.int64(0)
    if end - at < 12 or data[at] != 34 or data[at + 5] != 45 or data[at + 8] != 45:
        return none
    year, month, day = _digits(data, at + 1, 4), _digits(data, at + 6, 2), _digits(data, at + 9, 2)
    if year < 1 or month < 1 or month > 12 or day < 1:
        return none
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _DAYS[month] + (1 if month == 2 and is_leap else 0):
        return none
    code = _days(year, month, day) * DAY_US
    at += 11
    if has_time:
        if end - at < 10 or data[at] != 84 or data[at + 3] != 58 or data[at + 6] != 58:
            return none
        hour, minute, second = _digits(data, at + 1, 2), _digits(data, at + 4, 2), _digits(data, at + 7, 2)
        if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
            return none
        code += ((hour * 60 + minute) * 60 + second) * 1_000_000
        at += 9
        if data[at] == 46:
            if end - at < 8:
                return none
            micros = _digits(data, at + 1, 6)
            if micros <= 0:
                return none
            code += micros
            at += 7
    if at >= end or data[at] != 34:
        return none
    return at + 1, code


@uncounted
def text_code(data: U8, start: Int, stop: Int) -> Int:
    """Code of a text without escapes: its first eight bytes as a number."""
    word = np.uint64(0)
    for i in range(8):
        byte = np.uint64(data[start + i]) if start + i < stop else np.uint64(0)
        word = (word << np.uint64(8)) | byte
    return np.int64(word ^ np.uint64(2**63))


@uncounted
def read_value(data: U8, at: Int, end: Int, type: Int) -> tuple[Int, Int]:
    """(place behind a value of the type, its code), or (NONE, 0)."""
    none = np.int64(NONE), np.int64(0)
    if type == DOUBLE:
        return _double(data, at, end)
    if type == TEXT_TYPE:
        stop = _string(data, at, end)
        return (stop, text_code(data, at + 1, stop - 1)) if stop != NONE else none
    if type in (BIGINT, INT):
        stop, value = _integer(data, at, end)
        if type == INT and (value > 2147483647 or value < -2147483648):
            return none
        return stop, value
    if type == BOOLEAN:
        stop = _word(data, at, end, _TRUE)
        if stop != NONE:
            return stop, np.int64(1)
        return _word(data, at, end, _FALSE), np.int64(0)
    if type in (DATE, TIMESTAMP):
        return _moment(data, at, end, type == TIMESTAMP)
    return none


@uncounted
def write_version(rows: Rows, keys: Keys, version: Int, table: Int, data: U8, cells: I64) -> None:
    """Writes a record whose values stand in `data`: cells [columns, 4] of start, stop, code, valid."""
    record, layout = record_of(rows, version), rows.layout
    columns = layout[table, COLUMNS]
    end = start = keys.counts[TEXT_END]
    words = rows.words
    words[record + RECORD_TEXT] = start
    for i in range(record + RECORD_VALID, record + layout[table, CODES]):
        words[i] = 0
    for column in range(columns):
        first, last = cells[column, 0], cells[column, 1]
        words[record + layout[table, CODES] + column] = cells[column, 2]
        if cells[column, 3] == 0:
            for i in range(4):
                rows.text[end + i] = _NULL[i]
            end += 4
            words[record + layout[table, EQUALS] + column] = 0
        else:
            for i in range(last - first):
                rows.text[end + i] = data[first + i]
            end += last - first
            words[record + RECORD_VALID + (column >> 6)] |= np.int64(1) << np.int64(column & 63)
            equal = cells[column, 2]
            if rows.kinds[table, column] != 0:
                equal = hash_bytes(data, first, last)
            words[record + layout[table, EQUALS] + column] = equal
        words[record + layout[table, ENDS] + column] = end - start
    keys.counts[TEXT_END] = end


@kernel
def write_versions(rows: Rows, keys: Keys, tables: I64, data: U8, cells: I64, versions: I64, first: Int) -> Int:
    """Writes records of these tables, cells [records, columns, 4], from number `first` on; the first that found no page."""
    for i in range(first, len(tables)):
        taken = take_version(rows, keys, tables[i])
        if taken == NONE:
            return i
        write_version(rows, keys, taken, tables[i], data, cells[i])
        versions[i] = taken
    return len(tables)


@uncounted
def _is_name(data: U8, at: Int, stop: Int, names: Names, number: Int) -> bool:
    return bool(same_bytes(data, at, stop, names.text, names.columns[number, 0], names.columns[number, 1]))


@uncounted
def _scan_row(data: U8, at: Int, end: Int, names: Names, table: Int, columns: Int, is_delete: bool, cells: I64) -> Int:
    """The place behind a row, whose values are put into `cells`; NONE if it is odd in any way."""
    for column in range(columns):
        cells[column, 0], cells[column, 2], cells[column, 3] = NONE, 0, 0
    at = _byte(data, at, end, 123)
    if at == NONE:
        return at
    expected, seen, first = 0, 0, table * names.types.shape[1]
    while True:
        # Mostly columns stand in their order.
        column, name_end = expected, at
        if expected < columns:
            name_end += names.columns[first + expected, 1] - names.columns[first + expected, 0]
        if name_end == at or name_end > end or not _is_name(data, at, name_end, names, first + expected):
            column, name_end = NONE, _string(data, at, end)
            if name_end == NONE:
                return name_end
            for candidate in range(columns):
                if _is_name(data, at, name_end, names, first + candidate):
                    column = candidate
                    break
        if column == NONE or cells[column, 0] != NONE:
            return np.int64(NONE)
        at = _byte(data, name_end, end, 58)
        if at == NONE or at >= end:
            return np.int64(NONE)
        cells[column, 0] = at
        if data[at] == 110:
            stop = _word(data, at, end, _NULL)
            if names.is_key[table, column] != 0:
                return np.int64(NONE)
        else:
            stop, cells[column, 2] = read_value(data, at, end, names.types[table, column])
            cells[column, 3] = 1
        if stop == NONE:
            return np.int64(NONE)
        cells[column, 1] = stop
        seen += 1
        expected = column + 1
        at = _skip(data, stop, end)
        if at >= end:
            return np.int64(NONE)
        if data[at] == 125:
            at += 1
            break
        at = _byte(data, at, end, 44)
        if at == NONE:
            return at
    if seen < columns:
        if not is_delete:
            return np.int64(NONE)
        for column in range(columns):
            if names.is_key[table, column] != 0 and cells[column, 0] == NONE:
                return np.int64(NONE)
    return at


@uncounted
def _op(data: U8, at: Int, end: Int, is_stream: Int) -> tuple[Int, Int]:
    """(place behind an op, its code), or (NONE, 0). Records of streams may have Debezium's ops: c, u and d."""
    none = np.int64(NONE), np.int64(0)
    if at == NONE or end - at < 8:
        return none
    if is_stream and data[at] == 34 and data[at + 2] == 34:
        if data[at + 1] == 99 or data[at + 1] == 117:
            return at + 3, np.int64(UPSERT)
        return (at + 3, np.int64(DELETE)) if data[at + 1] == 100 else none
    for candidate in range(4):
        is_same = True
        for i in range(8):
            if data[at + i] != _OPS[8 * candidate + i]:
                is_same = False
                break
        if is_same:
            return at + 8, np.int64(candidate)
    return none


@kernel
def scan_lines(rows: Rows, keys: Keys, names: Names, data: U8, first: Int, numbers: I64, is_stream: Int) -> Int:
    """Reads the lines from `first` on; gives the one it stopped at because there was no room for another page.

    numbers: [RECORD_FIELDS, lines]. Texts have room. is_stream: records need no seq, and have 0 then.
    """
    status, seq, op, version = numbers[STATUS], numbers[SEQ], numbers[OP], numbers[VERSION]
    tx_start, tx_stop, start, stops = numbers[TX_START], numbers[TX_STOP], numbers[START], numbers[STOP]
    cells = np.empty((rows.kinds.shape[1], 4), np.int64)
    for line in range(first, len(status)):
        at, end = _skip(data, start[line], stops[line]), stops[line]
        status[line], version[line], tx_start[line] = ODD, NONE, NO_TX
        if end - at > RECORD_BYTES_MAX:
            continue
        at = _byte(data, at, end, 123)
        place, number = _field(data, at, end, _SEQ), np.int64(0)
        if place != NONE:
            at, number = _integer(data, place, end)
            if at == NONE or number <= 0:
                continue
            at = _byte(data, at, end, 44)
        elif not is_stream:
            continue
        place = _field(data, at, end, _TX)
        if place != NONE:
            at, tx_start[line], tx_stop[line] = _transaction(data, place, end)
            if at == NONE:
                continue
            at = _byte(data, at, end, 44)
        at = _field(data, at, end, _TABLE)
        if at == NONE:
            continue
        stop = _string(data, at, end)
        if stop == NONE:
            continue
        table = NONE
        for candidate in range(len(names.tables)):
            if same_bytes(data, at, stop, names.text, names.tables[candidate, 0], names.tables[candidate, 1]):
                table = candidate
        if table == NONE or names.is_read[table] == 0:
            continue
        at = _field(data, _byte(data, stop, end, 44), end, _OP)
        stop, found = _op(data, at, end, is_stream)
        at = _field(data, _byte(data, stop, end, 44), end, _ROW)
        if at == NONE:
            continue
        at = _scan_row(data, at, end, names, table, rows.layout[table, COLUMNS], found == DELETE, cells)
        at = _byte(data, at, end, 125)
        if at != end:
            continue
        taken = take_version(rows, keys, table)
        if taken == NONE:
            return line
        write_version(rows, keys, taken, table, data, cells)
        status[line], seq[line], version[line] = READ, number, taken
        op[line] = found
    return len(status)


# Where `run_lines` stopped.
NO_ROOM, HAS_ODD, IS_DUE = -1, -2, -3


@kernel
def run_lines(
    handles: I64,
    data: U8,
    first: Int,
    numbers: I64,
    due: Int,
    out: I64,
    partition: I64,
    latest: I64,
    unit: I64,
    by_commit: bool,
) -> tuple[Int, Int, bool]:
    """Takes a whole micro-batch that has no odd lines and no subscription events: (number of events, lines read, has_tx).

    Stops before anything is decided if there is an odd line, and before anything is applied if events of subscriptions
    are due; the first number then says which. handles: of the store. numbers: [RECORD_FIELDS, lines]; out: as in
    `merge_events`; partition, latest: as in `admit`; unit: as in `number_commits`. by_commit: whether transactions count;
    has_tx: whether there are some then.
    """
    rows, keys = rows_at(handles), keys_at(handles)
    status, seq, outcome = numbers[STATUS], numbers[SEQ], numbers[OUTCOME]
    counts, lines = keys.counts, len(status)
    # A null is written with four bytes.
    text_end = counts[TEXT_END] + 4 * rows.kinds.shape[1] * lines + (numbers[STOP, lines - 1] if lines else 0)
    if first == 0 and (text_end > len(rows.text) or 2 * (counts[INDEXED] + lines) > len(keys.places)):
        return np.int64(NO_ROOM), np.int64(0), False
    done = scan_lines(rows, keys, names_at(handles), data, first, numbers, np.int64(len(partition) > 0))
    if done < len(status):
        return np.int64(NO_ROOM), np.int64(done), False
    has_tx = False
    for line in range(done):
        if not by_commit:
            numbers[TX_START, line] = NO_TX
        elif numbers[TX_START, line] != NO_TX:
            has_tx = True
        if status[line] != READ:
            return np.int64(HAS_ODD), np.int64(done), has_tx
    admit(keys, seq, outcome, partition, latest)
    if has_tx:
        number_commits(numbers, data, unit)
    if counts[PASSED] >= due:
        return np.int64(IS_DUE), np.int64(done), has_tx
    apply_records(rows, keys, numbers[OP], numbers[VERSION], outcome, numbers[OLD], numbers[NEW])
    if has_tx:
        compose(rows, numbers)
    nothing, traffic = seq[:0], table_at(handles, TRAFFIC)
    count = merge_events(rows, numbers, has_tx, nothing, nothing, nothing, numbers[:0], traffic, out)
    return np.int64(count), np.int64(done), has_tx
