"""Deliveries to views: the version that each replaces, and the distinct replacements among them."""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import I64
from tidings.kernels.jit import kernel


@kernel
def replace_held(held: I64, place: I64, new: I64) -> I64:
    """Sets held[place[i]] to new[i], one after the other; returns what each found there."""
    old = np.empty(len(place), np.int64)
    for i in range(len(place)):
        old[i] = held[place[i]]
        held[place[i]] = new[i]
    return old


@kernel
def number_replacements(batch: I64, old: I64, new: I64, versions: int) -> tuple[I64, I64]:
    """Returns the kind of each delivery and one delivery of each kind: those of a batch with equal old and new are a kind.

    Batches are ascending and have one `new` each. Deliveries with old equal to new have no kind: -1. Versions are
    -1 .. versions - 1.
    """
    kind = np.empty(len(batch), np.int64)
    examples = np.empty(len(batch), np.int64)
    seen_in = np.full(versions + 1, -1, np.int64)
    seen_as = np.empty(versions + 1, np.int64)
    count = 0
    for i in range(len(batch)):
        if old[i] == new[i]:
            kind[i] = -1
            continue
        at = old[i] + 1
        if seen_in[at] != batch[i]:
            seen_in[at] = batch[i]
            seen_as[at] = count
            examples[count] = i
            count += 1
        kind[i] = seen_as[at]
    return kind, examples[:count].copy()
