"""Successive versions in places: what each delivery replaces, and the distinct replacements among them."""

from __future__ import annotations

import numpy as np

from tidings.kernels.anchors_arrays import I64
from tidings.kernels.jit import kernel


@kernel
def succeed(held: I64, place: I64, new: I64) -> I64:
    """Puts new[i] into held[place[i]], one after the other; gives what each found there."""
    old = np.empty(len(place), np.int64)
    for i in range(len(place)):
        old[i] = held[place[i]]
        held[place[i]] = new[i]
    return old


@kernel
def number_kinds(batch: I64, old: I64, new: I64, versions: int) -> tuple[I64, I64]:
    """(kind of each entry, an entry of each kind); entries of one batch that go from the same to the same are a kind.

    Batches are ascending and have one `new` each, but for entries that keep what they have, which have no kind: -1.
    Versions are -1 .. versions - 1.
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
