"""The record of a subscription, as compiled loops see it: when it hears, what it shows, who it is.

All that is looked up for everyone who is told stands in one line of the processor's cache: with a million subscriptions,
reading memory is what a notification costs.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.rows.read import I64, NONE

Lives = I64
"""[slots, LIFE_FIELDS]. Subscription s hears change e iff lives[s, SINCE] < e < lives[s, UNTIL]."""

# Fields of a life: the event of this micro-batch that created the subscription, NONE if it was there before; the event of this
# micro-batch that drops it, FOREVER if none does; numbers of its family and of its projection; a number that sorts as its id
# does; where its id stands, quotes included; 1 if it is told the net effect of a micro-batch, else 0.
SINCE, UNTIL, FAMILY, PROJECTION, LABEL, ID_START, ID_STOP, IS_NET = range(8)
LIFE_FIELDS = 8
"""Words of a record: those of a line of the cache."""
FOREVER = 2**63 - 1


def new_lives(slots: int) -> Lives:
    """Records of subscriptions, each of which begins where a line of the cache does."""
    size = slots * LIFE_FIELDS
    words = np.full(size + LIFE_FIELDS, NONE, np.int64)
    first = -(words.ctypes.data // words.itemsize) % LIFE_FIELDS
    return words[first : first + size].reshape(slots, LIFE_FIELDS)
