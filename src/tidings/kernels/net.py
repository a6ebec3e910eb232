"""Net effect: what several notifications of one subscription come to.

The changes of a commit are told one by one, and may pass through rows that are there neither before nor after it. Their net
effect is the difference of two multisets of rows, as the subscription shows them:

    rows before - rows after  ->  deleted
    rows after - rows before  ->  inserted
    both under one key        ->  updated, if the old row is among those deleted and the new one among those inserted

Updates stand first, then deletes, then inserts, each in the order of their texts: the same whatever order rows changed in.
`tidings.model.notification.net_changes` says the same in a few lines of Python.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.events import IS_PART, KIND, NO_TX, SEQ, TX_START, TX_STOP, is_netted, projections_at
from tidings.kernels.jit import kernel, uncounted
from tidings.kernels.lines import (
    CHANGE_FRAME,
    is_less,
    item_version,
    put_change,
    put_end,
    put_head,
    put_row,
    put_separator,
    put_update,
    row_size,
)
from tidings.kernels.lives import IS_NET, Lives
from tidings.kernels.rows.change import key_hash, same_key
from tidings.kernels.rows.read import I64, NONE, U8, Int, Rows, mix, record_of, rows_at, table_of

_MICRO_BATCH = 2**62
"""Instead of a commit, for subscriptions that are told the net effect of a micro-batch."""


@kernel
def net_units(words: I64, who: I64, size: Int, lives: Lives) -> tuple[I64, Int]:
    """([told]: a number of what each notification is netted with, NONE if it stays as it is; how many are netted).

    words: of the events. who, size: as in `Told`.
    """
    event_kind, event_seq, is_part = words[KIND], words[SEQ], words[IS_PART]
    event, slot = who[0], who[1]
    found = np.full(size, NONE, np.int64)
    count = 0
    for i in range(size):
        if event_kind[event[i]] == 0 and is_netted(is_part, lives, event[i], slot[i]):
            found[i] = _MICRO_BATCH if lives[slot[i], IS_NET] != 0 else event_seq[event[i]]
            count += 1
    return found, np.int64(count)


@kernel
def net_groups(order: I64, unit: I64, slot: I64, tail: I64) -> tuple[I64, I64, I64, I64]:
    """Finds who is told the same: (slot of each netted notification, its group, starts of groups, tails of groups).

    order: notifications that are netted, by unit and slot. A group is a list of tails: groups[starts[g]:starts[g + 1]].
    """
    count = len(order)
    size = 4
    while size < 2 * count:
        size *= 2
    places = np.full(size, NONE, np.int64)
    slots, group_of = np.empty(count, np.int64), np.empty(count, np.int64)
    starts, tails = np.zeros(count + 1, np.int64), np.empty(count, np.int64)
    runs = groups = first = 0
    while first < count:
        last = first + 1
        hashed = mix(np.int64(0), tail[order[first]])
        while last < count and unit[order[last]] == unit[order[first]] and slot[order[last]] == slot[order[first]]:
            hashed = mix(hashed, tail[order[last]])
            last += 1
        at = hashed & (size - 1)
        while places[at] != NONE:
            begin, is_same = starts[places[at]], starts[places[at] + 1] - starts[places[at]] == last - first
            for i in range(last - first):
                if not is_same:
                    break
                is_same = tails[begin + i] == tail[order[first + i]]
            if is_same:
                break
            at = (at + 1) & (size - 1)
        if places[at] == NONE:
            places[at] = groups
            for i in range(last - first):
                tails[starts[groups] + i] = tail[order[first + i]]
            starts[groups + 1] = starts[groups] + last - first
            groups += 1
        slots[runs], group_of[runs] = slot[order[first]], places[at]
        runs += 1
        first = last
    return slots[:runs], group_of[:runs], starts[: groups + 1], tails[: starts[groups]]


@uncounted
def _item_hash(rows: Rows, sources: I64, item: Int) -> Int:
    hashed = np.int64(0)
    for side in range(max(sources.shape[1], 1)):
        version = item_version(sources, item, side)
        hashed = mix(hashed, key_hash(rows, record_of(rows, version), table_of(rows, version)))
    return hashed


@uncounted
def _same_item(rows: Rows, sources: I64, a: Int, b: Int) -> bool:
    """Whether two items are rows under one key: of every table the same one."""
    for side in range(max(sources.shape[1], 1)):
        x, y = item_version(sources, a, side), item_version(sources, b, side)
        if x == y:
            continue
        table = table_of(rows, x)
        if table != table_of(rows, y) or not same_key(rows, record_of(rows, x), record_of(rows, y), table):
            return False
    return True


@uncounted
def _sort_spans(order: I64, text: U8, spans: I64, spare: I64) -> None:
    """Merge sort of `order`, numbers of spans, by the texts there. spare: as long as `order`."""
    width = 1
    while width < len(order):
        for first in range(0, len(order) - width, 2 * width):
            middle, end = first + width, min(first + 2 * width, len(order))
            for i in range(first, middle):
                spare[i] = order[i]
            i, j, at = first, middle, first
            while i < middle:
                if j < end and is_less(text, spans[order[j]], spans[spare[i]]):
                    order[at] = order[j]
                    j += 1
                else:
                    order[at] = spare[i]
                    i += 1
                at += 1
        width *= 2


@kernel
def net_tails(
    handles: I64,
    shown_handles: I64,
    tails: I64,
    changes: I64,
    sources: I64,
    words: I64,
    tx_text: U8,
    group_starts: I64,
    group_tails: I64,
    first: Int,
    out: U8,
    at: Int,
    ends: I64,
) -> Int:
    """Renders the net effect of groups of tails, from `first` on, to out[at:]; ends[i] is where that of group i ends.

    One without effect has no text. Gives the first group that found no room. group_starts, group_tails: as from `net_groups`;
    others as in `render_tails`.
    """
    rows, projections = rows_at(handles), projections_at(shown_handles)
    starts, sides, columns = projections.starts, projections.side, projections.column
    header, headers = projections.header, projections.headers
    event_seq, tx_start, tx_stop = words[SEQ], words[TX_START], words[TX_STOP]
    for group in range(first, len(group_starts) - 1):
        begin, end = group_starts[group], group_starts[group + 1]
        projection = tails[group_tails[begin], 1]
        count = 0
        for i in range(begin, end):
            count += 2 * (tails[group_tails[i], 3] - tails[group_tails[i], 2])
        # The row under each key before the first change and after the last one.
        items, size = np.full((2 * count, 2), NONE, np.int64), 4
        some = np.empty(count, np.int64)
        while size < 2 * count:
            size *= 2
        places = np.full(size, NONE, np.int64)
        keys = extra = 0
        for i in range(begin, end):
            tail = group_tails[i]
            for change in range(tails[tail, 2], tails[tail, 3]):
                for side in range(2):
                    item = changes[change, side]
                    if item == NONE:
                        continue
                    place = _item_hash(rows, sources, item) & (size - 1)
                    while places[place] != NONE and not _same_item(rows, sources, some[places[place]], item):
                        place = (place + 1) & (size - 1)
                    key = places[place]
                    if key == NONE:
                        key = places[place] = keys
                        some[key] = item
                        keys += 1
                        if side == 0:
                            items[key, 0] = item
                    elif items[key, 1] != (item if side == 0 else NONE):
                        # In between a row that looks like this one was told in its place: what does not cancel out stays.
                        items[count + extra, 1] = items[key, 1]
                        items[count + extra, 0] = item if side == 0 else NONE
                        extra += 1
                    items[key, 1] = item if side == 1 else NONE
        for key in range(extra):
            items[keys + key] = items[count + key]
        paired, keys = keys, keys + extra
        bytes_max = 0
        for key in range(keys):
            if items[key, 0] == items[key, 1]:
                items[key, 0] = items[key, 1] = NONE
            for side in range(2):
                if items[key, side] != NONE:
                    bytes_max += row_size(rows, starts, header, sources, projection, items[key, side])
        last_event = tails[group_tails[end - 1], 0]
        tx_bytes = tx_stop[last_event] - tx_start[last_event] if tx_start[last_event] != NO_TX else 0
        if at + bytes_max + CHANGE_FRAME * (2 * keys + 1) + tx_bytes > len(out):
            return group
        text, spans = np.empty(bytes_max, np.uint8), np.empty((2 * keys, 2), np.int64)
        order, used, free = np.empty(2 * keys, np.int64), 0, 0
        for key in range(keys):
            for side in range(2):
                if items[key, side] != NONE:
                    stop = put_row(
                        text, free, rows, starts, sides, columns, header, headers, sources, projection, items[key, side]
                    )
                    spans[2 * key + side, 0], spans[2 * key + side, 1] = free, stop
                    free = stop
                    order[used] = 2 * key + side
                    used += 1
        order = order[:used]
        _sort_spans(order, text, spans, np.empty(used, np.int64))
        # Rows that look alike have one rank. left[rank]: how many more of them there were before than are after.
        rank, shown = np.full(2 * keys, NONE, np.int64), np.empty(used, np.int64)
        left, ranks = np.zeros(used, np.int64), 0
        for i in range(used):
            if i == 0 or is_less(text, spans[order[i - 1]], spans[order[i]]):
                shown[ranks] = order[i]
                ranks += 1
            rank[order[i]] = ranks - 1
            left[ranks - 1] += 1 if order[i] % 2 == 0 else -1
        is_empty = True
        for i in range(ranks):
            if left[i] != 0:
                is_empty = False
        if is_empty:
            ends[group] = at
            continue
        pairs, updated = np.empty(keys, np.int64), 0
        for key in range(paired):
            if rank[2 * key] != NONE and rank[2 * key + 1] != NONE:
                pairs[updated] = rank[2 * key] * used + rank[2 * key + 1]
                updated += 1
        is_one = event_seq[tails[group_tails[begin], 0]] == event_seq[last_event]
        start = tx_start[last_event] if is_one else NO_TX
        at = put_head(out, at, event_seq[last_event], tx_text, start, tx_stop[last_event])
        is_first = True
        for pair in np.sort(pairs[:updated]):
            old, new = pair // used, pair % used
            if left[old] > 0 and left[new] < 0:
                left[old] -= 1
                left[new] += 1
                at = put_separator(out, at, is_first)
                at = put_update(out, at, text, spans[shown[old]], spans[shown[new]])
                is_first = False
        for side in range(2):
            for i in range(ranks):
                while left[i] > 0 if side == 0 else left[i] < 0:
                    left[i] += -1 if side == 0 else 1
                    at = put_separator(out, at, is_first)
                    at = put_change(out, at, text, spans[shown[i]], side == 0)
                    is_first = False
        at = put_end(out, at)
        ends[group] = at
    return len(group_starts) - 1
