"""How rows come, change and go: versions are taken from pages, found by primary key, replaced, and freed.

The index of keys is one open-addressed hash table over the current rows of all tables; a lookup compares equality codes of
the key and, for TEXT, the texts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.kernels import events
from tidings.kernels.events import NO_TX
from tidings.kernels.handles import array_at, table_at
from tidings.kernels.jit import kernel, uncounted
from tidings.kernels.lives import SINCE, UNTIL, Lives
from tidings.kernels.rows.read import (
    ENDS,
    EXACT,
    FIRST_PAGE,
    FREE,
    I64,
    IS_KEPT,
    LIVE,
    NONE,
    PAGE,
    PAGE_BITS,
    RECORD_TEXT,
    U8,
    WIDTH,
    Int,
    Rows,
    equal_at,
    mix,
    place_of,
    record_of,
    rows_at,
    same_bytes,
    same_text,
    table_of,
    text_at,
)

FOREVER = np.int64(2**63 - 1)
SEQ_MAX = np.int64(2**63 - 2)
EMPTY, GONE = -1, -2
"""Places of the key index that never held a version, and that held one."""

# Counts of a store.
PAGES, WORDS, TEXT_END, TEXT_DEAD, INDEXED, PASSED, COUNTS = range(7)
# Operations, as in `tidings.model.change.Op`.
INSERT, UPDATE, UPSERT, DELETE = range(4)
# What became of a record. FOLDED: accepted, and part of what a later record of its transaction says of the same row.
ACCEPTED, OUT_OF_ORDER, EXISTS, UNKNOWN, FOLDED = range(5)
# Fields of a micro-batch's records, by line or, after odd ones were sorted out, by record: what reading gave (see `scan`), what
# became of the record, versions of its row before and after; where the id of its transaction stands, the number of its
# commit, and the seq of the last record of that; where the line stands.
STATUS, SEQ, OP, VERSION, OUTCOME, OLD, NEW, TX_START, TX_STOP, COMMIT, MOMENT, START, STOP, RECORD_FIELDS = range(14)
DEAD_TEXT_MIN = 1 << 20
UNREADABLE_TX = -2
"""Instead of TX_START, as NO_TX is (the record is a commit by itself): the line is no record, and neither begins nor ends a
transaction."""


class Keys(NamedTuple):
    """The index of current rows by primary key, and the counts of the store."""

    places: I64
    """[a power of two]: a version, EMPTY or GONE."""
    counts: I64
    """[COUNTS]."""


FIRST_OF_KEYS = len(Rows._fields)
TRAFFIC = FIRST_OF_KEYS + len(Keys._fields)
"""Place of the handle of the counts of accepted changes, and of bytes of their values, [tables, 2]."""
FIRST_OF_NAMES = TRAFFIC + 1


@kernel
def keys_at(handles: I64) -> Keys:
    """The index whose arrays have these handles, behind those of the rows."""
    return Keys(array_at(handles, FIRST_OF_KEYS), array_at(handles, FIRST_OF_KEYS + 1))


@uncounted
def take_version(rows: Rows, keys: Keys, table: Int) -> Int:
    """A version of the table whose record is to be written; NONE if there is no room for another page."""
    layout = rows.layout
    version = layout[table, FREE]
    if version != NONE:
        layout[table, FREE] = rows.words[place_of(rows, version)]
    else:
        page, width = keys.counts[PAGES], layout[table, WIDTH]
        if page == len(rows.page_base) or keys.counts[WORDS] + PAGE * width > len(rows.words):
            return np.int64(NONE)
        rows.page_base[page], rows.page_table[page] = keys.counts[WORDS], table
        rows.page_next[page] = layout[table, FIRST_PAGE]
        layout[table, FIRST_PAGE] = page
        keys.counts[PAGES] += 1
        keys.counts[WORDS] += PAGE * width
        version = np.int64(page) << PAGE_BITS
        for i in range(PAGE - 1, 0, -1):
            rows.words[place_of(rows, version + i)] = layout[table, FREE]
            layout[table, FREE] = version + i
    rows.alive[version] = 1
    rows.pins[version] = 0
    rows.since[version], rows.until[version] = FOREVER, np.int64(NONE)
    return version


@uncounted
def free_version(rows: Rows, keys: Keys, version: Int) -> None:
    table = table_of(rows, version)
    record = record_of(rows, version)
    last = rows.words[record + rows.layout[table, ENDS] + rows.layout[table, 0] - 1]
    keys.counts[TEXT_DEAD] += last
    rows.alive[version] = 0
    rows.since[version], rows.until[version] = FOREVER, np.int64(NONE)
    rows.words[record] = rows.layout[table, FREE]
    rows.layout[table, FREE] = version


@uncounted
def key_hash(rows: Rows, record: Int, table: Int) -> Int:
    hashed = np.int64(table)
    for i in range(rows.keys.shape[1]):
        column = rows.keys[table, i]
        if column == NONE:
            break
        hashed = mix(hashed, equal_at(rows, record, table, column))
    return hashed


@uncounted
def same_key(rows: Rows, a: Int, b: Int, table: Int) -> bool:
    for i in range(rows.keys.shape[1]):
        column = rows.keys[table, i]
        if column == NONE:
            break
        if equal_at(rows, a, table, column) != equal_at(rows, b, table, column):
            return False
        if rows.kinds[table, column] != EXACT:
            start, stop = text_at(rows, b, table, column)
            if not same_text(rows, a, table, column, rows.text, start, stop):
                return False
    return True


@uncounted
def _find(rows: Rows, keys: Keys, version: Int) -> tuple[Int, Int]:
    """(place of the current row with the version's key or NONE, place where it may be entered)."""
    table, record = table_of(rows, version), record_of(rows, version)
    mask = len(keys.places) - 1
    at = key_hash(rows, record, table) & mask
    free = np.int64(NONE)
    while True:
        found = keys.places[at]
        if found == EMPTY:
            return np.int64(NONE), (at if free == NONE else free)
        if found == GONE:
            if free == NONE:
                free = at
        elif table_of(rows, found) == table and same_key(rows, record_of(rows, found), record, table):
            return at, at
        at = (at + 1) & mask


@uncounted
def current_with_key(rows: Rows, keys: Keys, version: Int) -> Int:
    """The current row with the key of a version; NONE if there is none."""
    at, _ = _find(rows, keys, version)
    return np.int64(NONE) if at == NONE else keys.places[at]


@uncounted
def look_up(rows: Rows, keys: Keys, probe: Int) -> Int:
    """The current row with the key of a version that was made to look for it, and that is freed; NONE if there is none."""
    found = current_with_key(rows, keys, probe)
    free_version(rows, keys, probe)
    return found


@uncounted
def enter(rows: Rows, keys: Keys, version: Int) -> None:
    """Makes a version current whose key nobody has: for loading state."""
    _, at = _find(rows, keys, version)
    if keys.places[at] == EMPTY:
        keys.counts[INDEXED] += 1
    keys.places[at] = version
    rows.layout[table_of(rows, version), LIVE] += 1
    rows.since[version], rows.until[version] = np.int64(NONE), FOREVER


@uncounted
def reindex(rows: Rows, old: I64, keys: Keys) -> None:
    """Enters all versions of an index into another, which is empty."""
    keys.counts[INDEXED] = 0
    for version in old:
        if version >= 0:
            _, at = _find(rows, keys, version)
            keys.places[at] = version
            keys.counts[INDEXED] += 1


@uncounted
def admit(keys: Keys, seq: I64, outcome: I64, partition: I64, latest: I64) -> None:
    """Decides which records are in order, and numbers them; records that are not in order keep their own seq.

    Of a file, without partitions, the records' own seqs count: each must be above every one before. seq 0 becomes the next
    number while there is one. Of a stream, where partition[i] is that of record i, all records are numbered one after the
    other; a record's own seq, if it is not 0, must be above `latest` of its partition, [partitions].
    """
    passed = keys.counts[PASSED]
    for i in range(len(seq)):
        if len(partition):
            own, before = seq[i], latest[partition[i]]
            outcome[i] = ACCEPTED if own == 0 or before < own <= SEQ_MAX else OUT_OF_ORDER
            if outcome[i] == ACCEPTED:
                latest[partition[i]] = max(before, own)
                passed += 1
                seq[i] = passed
            continue
        if seq[i] == 0:
            seq[i] = passed + 1 if passed < SEQ_MAX else FOREVER
        if passed < seq[i] <= SEQ_MAX:
            passed = seq[i]
            outcome[i] = ACCEPTED
        else:
            outcome[i] = OUT_OF_ORDER
    keys.counts[PASSED] = passed


@uncounted
def apply_records(rows: Rows, keys: Keys, op: I64, version: I64, outcome: I64, old: I64, new: I64) -> None:
    """Applies those records that are in order: the row's version before and after each.

    version[i] is made of record i; of a delete's only the key counts. Room for one more key each is there. Rows of tables that
    keep none are never current.
    """
    for i in range(len(op)):
        own = version[i]
        old[i] = new[i] = NONE
        if outcome[i] != ACCEPTED:
            continue
        table = table_of(rows, own)
        if not rows.layout[table, IS_KEPT]:
            if op[i] == UPDATE or op[i] == DELETE:
                outcome[i] = UNKNOWN
            else:
                new[i] = own
            continue
        at, free = _find(rows, keys, own)
        if at == NONE:
            if op[i] == UPDATE or op[i] == DELETE:
                outcome[i] = UNKNOWN
                continue
            if keys.places[free] == EMPTY:
                keys.counts[INDEXED] += 1
            keys.places[free] = own
            rows.layout[table, LIVE] += 1
            new[i] = own
        elif op[i] == INSERT:
            outcome[i] = EXISTS
        else:
            old[i] = keys.places[at]
            if op[i] == DELETE:
                keys.places[at] = GONE
                rows.layout[table, LIVE] -= 1
            else:
                keys.places[at] = own
                new[i] = own


@uncounted
def number_commits(numbers: I64, tx_text: U8, unit: I64) -> None:
    """Numbers the commits: consecutive lines with the same transaction are one. Other lines are one each.

    tx_text: where the ids of transactions stand. unit: [lines], of a stream; transactions do not reach from one to another.
    """
    start, stop, commit = numbers[TX_START], numbers[TX_STOP], numbers[COMMIT]
    last, count = NONE, 0
    for i in range(len(start)):
        if start[i] == UNREADABLE_TX:
            commit[i] = count
            continue
        is_same = last != NONE and start[i] != NO_TX and start[last] != NO_TX
        if is_same and len(unit):
            is_same = unit[i] == unit[last]
        if not is_same or not same_bytes(tx_text, start[i], stop[i], tx_text, start[last], stop[last]):
            count += 1
        commit[i] = count
        last = i


@kernel
def compose(rows: Rows, numbers: I64) -> None:
    """Composes the changes of each row within a commit, so that at most one is left: from before the commit to after it.

    Sets MOMENT. Insert and delete leave nothing; delete and insert are an update.
    """
    commit, seq, outcome, moment = numbers[COMMIT], numbers[SEQ], numbers[OUTCOME], numbers[MOMENT]
    version, old, new = numbers[VERSION], numbers[OLD], numbers[NEW]
    longest, first = 0, 0
    for i in range(1, len(commit) + 1):
        if i == len(commit) or commit[i] != commit[first]:
            last = NONE
            for j in range(first, i):
                if outcome[j] != OUT_OF_ORDER:
                    last = seq[j]
            for j in range(first, i):
                moment[j] = last
            longest, first = max(longest, i - first), i
    if longest < 2:
        return
    size = 4
    while size < 2 * longest:
        size *= 2
    places, used = np.full(size, NONE, np.int64), np.empty(longest, np.int64)
    first = 0
    for i in range(1, len(commit) + 1):
        if i < len(commit) and commit[i] == commit[first]:
            continue
        entered = 0
        for j in range(first, i if i - first > 1 and numbers[TX_START, first] != NO_TX else first):
            if outcome[j] != ACCEPTED:
                continue
            own = version[j]
            table, record = table_of(rows, own), record_of(rows, own)
            at = key_hash(rows, record, table) & (size - 1)
            while places[at] != NONE:
                other = version[places[at]]
                if table_of(rows, other) == table and same_key(rows, record_of(rows, other), record, table):
                    break
                at = (at + 1) & (size - 1)
            before = places[at]
            if before == NONE:
                used[entered] = at
                entered += 1
            else:
                # The row is now as it was before the earlier change; the version in between is nobody's.
                old[j] = old[before]
                old[before] = new[before] = NONE
                outcome[before] = FOLDED
                if old[j] == NONE and new[j] == NONE:
                    outcome[j] = FOLDED
            places[at] = j
        for k in range(entered):
            places[used[k]] = NONE
        first = i


@uncounted
def merge_events(
    rows: Rows, numbers: I64, has_tx: bool, after: I64, kind: I64, slot: I64, lives: Lives, traffic: I64, out: I64
) -> Int:
    """Writes accepted changes and the subscriptions' events to out [EVENT_WORDS, events] in order; gives how many there are.

    Versions and subscriptions learn their events. traffic [tables, 2] counts changes and bytes of their values.
    """
    outcome, old, new, version = numbers[OUTCOME], numbers[OLD], numbers[NEW], numbers[VERSION]
    seq = numbers[MOMENT] if has_tx else numbers[SEQ]
    count, done = 0, 0
    for i in range(len(seq) + 1):
        is_end = i == len(seq)
        if not is_end and outcome[i] != ACCEPTED:
            continue
        while done < len(after) and (is_end or after[done] < seq[i]):
            for word in range(events.EVENT_WORDS):
                out[word, count] = NONE
            out[events.KIND, count], out[events.SEQ, count], out[events.SLOT, count] = (
                kind[done],
                after[done],
                slot[done],
            )
            out[events.IS_PART, count] = 0
            lives[slot[done], SINCE if kind[done] == events.CREATE else UNTIL] = count
            done += 1
            count += 1
        if is_end:
            break
        table = table_of(rows, version[i])
        traffic[table, 0] += 1
        traffic[table, 1] += rows.words[
            record_of(rows, version[i]) + rows.layout[table, ENDS] + rows.layout[table, 0] - 1
        ]
        out[events.KIND, count], out[events.SEQ, count], out[events.TABLE, count] = events.CHANGE, seq[i], table
        out[events.OLD, count], out[events.NEW, count], out[events.SLOT, count] = old[i], new[i], NONE
        out[events.IS_PART, count] = 0
        out[events.TX_START, count] = numbers[TX_START, i] if has_tx else NO_TX
        out[events.TX_STOP, count] = numbers[TX_STOP, i]
        if old[i] != NONE:
            rows.until[old[i]] = count
        if new[i] != NONE:
            rows.since[new[i]], rows.until[new[i]] = count, FOREVER if rows.layout[table, IS_KEPT] else count
        count += 1
    return count


@kernel
def apply_batch(handles: I64, numbers: I64) -> None:
    """`apply_records`, of a store with these handles."""
    rows, keys = rows_at(handles), keys_at(handles)
    apply_records(rows, keys, numbers[OP], numbers[VERSION], numbers[OUTCOME], numbers[OLD], numbers[NEW])


@kernel
def merge_batch(
    handles: I64, numbers: I64, has_tx: bool, after: I64, kind: I64, slot: I64, lives: Lives, out: I64
) -> Int:
    """`compose` and `merge_events`, of a store with these handles."""
    rows = rows_at(handles)
    if has_tx:
        compose(rows, numbers)
    return merge_events(rows, numbers, has_tx, after, kind, slot, lives, table_at(handles, TRAFFIC), out)


@kernel
def settle(handles: I64, numbers: I64) -> Int:
    """The end of a micro-batch: frees what is not current and not pinned.

    Gives how many versions were retained for their pins, which STATUS has then; NONE if none were, but much text is dead.
    numbers: [RECORD_FIELDS, records].
    """
    rows, keys = rows_at(handles), keys_at(handles)
    count = 0
    for i in range(numbers.shape[1]):
        own, before = numbers[VERSION, i], numbers[OLD, i]
        is_kept = rows.layout[table_of(rows, own), IS_KEPT] != 0
        if numbers[NEW, i] == NONE or not is_kept:
            free_version(rows, keys, own)
        else:
            rows.since[own] = NONE
        if before != NONE:
            rows.until[before], rows.since[before] = NONE, NONE
            if rows.pins[before] > 0:
                numbers[STATUS, count] = before
                count += 1
            else:
                free_version(rows, keys, before)
    return count if count or not has_dead_text(keys) else np.int64(NONE)


@kernel
def has_dead_text(keys: Keys) -> bool:
    """Whether so much text is of rows that are gone that the rest should move."""
    dead, end = keys.counts[TEXT_DEAD], keys.counts[TEXT_END]
    return dead > DEAD_TEXT_MIN and 2 * dead > end


@uncounted
def free_unpinned(rows: Rows, keys: Keys, versions: I64) -> Int:
    """Frees those of the retained versions that nobody has pinned any more; the others are moved to the front."""
    count = 0
    for version in versions:
        if rows.pins[version] > 0:
            versions[count] = version
            count += 1
        else:
            free_version(rows, keys, version)
    return count


@kernel
def compact_texts(rows: Rows, keys: Keys, fresh: U8) -> None:
    """Moves the texts of all versions to a new array."""
    end = 0
    for page in range(keys.counts[PAGES]):
        table = rows.page_table[page]
        last = rows.layout[table, ENDS] + rows.layout[table, 0] - 1
        for i in range(PAGE):
            version = (np.int64(page) << PAGE_BITS) + i
            if rows.alive[version] == 0:
                continue
            record = record_of(rows, version)
            start, size = rows.words[record + RECORD_TEXT], rows.words[record + last]
            fresh[end : end + size] = rows.text[start : start + size]
            rows.words[record + RECORD_TEXT] = end
            end += size
    keys.counts[TEXT_END], keys.counts[TEXT_DEAD] = end, 0


@uncounted
def current_versions(rows: Rows, table: Int, out: I64) -> Int:
    """Writes the versions of the table's current rows; gives how many there are."""
    count = 0
    page = np.int64(rows.layout[table, FIRST_PAGE])
    while page != NONE:
        for i in range(PAGE):
            version = (page << PAGE_BITS) + i
            if rows.alive[version] != 0 and rows.until[version] == FOREVER and rows.since[version] == NONE:
                out[count] = version
                count += 1
        page = np.int64(rows.page_next[page])
    return count
