"""What messages cost on a content-addressable network of brokers, counted without simulating it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.jit import kernel
from tidings.network.kernels import meets, spread

MESSAGES, BYTES, SERVER_BYTES, IP_BYTES, NOTES, SERVER_NOTES, COLUMNS = 0, 1, 2, 3, 4, 5, 6


@kernel
def count_can(
    lo: Any,
    hi: Any,
    starts: Any,
    size: Any,
    notes: Any,
    cell_lo: Any,
    cell_hi: Any,
    beside_starts: Any,
    beside: Any,
    ip_hops: Any,
    found: Any,
) -> None:
    """found [messages, COLUMNS]: what message m, with the boxes starts[m] .. and so many bytes and payloads, comes to.

    Cell i belongs to broker i; ip_hops [brokers + 1, brokers + 1] has the server last.
    """
    brokers = len(cell_lo)
    met = np.zeros(brokers, np.bool_)
    order, parent = np.empty(brokers, np.int64), np.empty(brokers, np.int64)
    distance = ip_hops[brokers, :brokers].copy()
    for message in range(len(starts) - 1):
        for cell in range(brokers):
            met[cell] = meets(lo, hi, starts[message], starts[message + 1], cell_lo[cell], cell_hi[cell])
        reached = spread(met, beside_starts, beside, distance, order, parent)
        roots, path = 0, 0
        for at in range(reached):
            if parent[at] < 0:
                roots += 1
                path += distance[order[at]]
            else:
                path += ip_hops[parent[at], order[at]]
        found[message, MESSAGES] += reached
        found[message, BYTES] += reached * size[message]
        found[message, SERVER_BYTES] += roots * size[message]
        found[message, IP_BYTES] += path * size[message]
        found[message, NOTES] += reached * notes[message]
        found[message, SERVER_NOTES] += roots * notes[message]
