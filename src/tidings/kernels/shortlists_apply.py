"""Deliveries change lists, batch by batch; who shows something else after a batch has a difference, of one of few kinds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.jit import kernel
from tidings.kernels.shortlists_arrays import I32, I64, MARK, NONE, Int, grown, look_ahead
from tidings.kernels.shortlists_change import change_lists
from tidings.kernels.shortlists_difference import (
    BATCH,
    END,
    FIRST,
    HASH,
    KIND_FIELDS,
    difference,
    find_kind,
    hash_pairs,
    wider,
)
from tidings.kernels.shortlists_show import show

Flags = NDArray[np.bool_]


@kernel
def apply(
    head: I64,
    lists: I32,
    memory: I32,
    items: I64,
    balance: I32,
    k: Int,
    number: I64,
    send: I64,
    is_gone: Flags,
    send_batch: I64,
    send_item: I64,
    send_tie: I64,
) -> tuple[I32, I64, I64, I32]:
    """Makes deliveries in order, each of a send to a list; those of one batch follow each other.

    Gives (memory, [told, 2], [kinds, KIND_FIELDS], [pairs, 2]): home and kind of each difference that is not empty, and
    the kinds, each of one batch.
    """
    told, told_count = np.empty((len(send), 2), np.int64), 0
    touched, first_shown = np.empty(len(send), np.int64), np.empty(len(send) + 1, np.int64)
    shown, now_shown = np.empty(1024, np.int32), np.empty(2 * k, np.int32)
    kinds, kind_count = np.empty((256, KIND_FIELDS), np.int64), 0
    pairs, pair_count = np.empty((256, 2), np.int32), 0
    table = np.full(64, NONE, np.int32)
    start = stop = 0
    while start < len(send):
        batch, first_kind = send_batch[send[start]], kind_count
        while stop < len(send) and send_batch[send[stop]] == batch:
            stop += 1
        memory, shown, groups = change_lists(
            head,
            lists,
            memory,
            items,
            k,
            number,
            send,
            is_gone,
            send_item,
            send_tie,
            start,
            stop,
            touched,
            first_shown,
            shown,
        )
        start, ahead = stop, 0
        for i in range(groups):
            if i == ahead:
                ahead = look_ahead(head, lists, memory, touched, i, groups)
            home, old_start, old_stop = touched[i], first_shown[i], first_shown[i + 1]
            lists[home, MARK] = 0
            now_count = show(lists, memory, items, home, k, now_shown, 0)
            if pair_count + 2 * k > len(pairs):
                pairs = grown(pairs, pair_count + 2 * k)
            end = difference(items, balance, shown, old_start, old_stop, now_shown, now_count, pairs, pair_count)
            if end == pair_count:
                continue
            hashed = hash_pairs(pairs, pair_count, end)
            at = find_kind(table, kinds, pairs, first_kind, pair_count, end, hashed)
            kind = table[at]
            if kind < first_kind:
                if kind_count == len(kinds):
                    kinds = grown(kinds, 0)
                kind = table[at] = kind_count
                kinds[kind, BATCH], kinds[kind, HASH] = batch, hashed
                kinds[kind, FIRST], kinds[kind, END] = pair_count, end
                pair_count, kind_count = end, kind_count + 1
                if 2 * (kind_count - first_kind) > len(table):
                    table = wider(table, kinds, first_kind, kind_count)
            told[told_count, 0], told[told_count, 1] = home, kind
            told_count += 1
    return memory, told[:told_count].copy(), kinds[:kind_count].copy(), pairs[:pair_count].copy()
