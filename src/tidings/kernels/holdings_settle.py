"""What points hold after a change: how many entries, and the greatest key; and which entry takes the place of another.

Of all that a point holds, only the number and the greatest key are known. That is enough: a point gains or loses one entry
at a time, and its greatest key is then the next one of its box, below or above.
"""

from __future__ import annotations

from tidings.kernels.holdings_arrays import BLOCK, I64, INT64_MAX, INT64_MIN, NOBODY, SET, Int, Tree, Y, is_less
from tidings.kernels.holdings_meet import GAINS, HIT_HEIR, HIT_KIND, HIT_LEAF, HIT_PLACE, LOSES
from tidings.kernels.holdings_search import DOWNWARDS, Search, next_above, next_key
from tidings.kernels.jit import kernel


@kernel
def lose(s: Search, of: Int, box: Int, k: Int, y: Int, tie: Int, held: Int, guess: Int) -> tuple[Int, Int, Int, Int]:
    """Greatest key and number of what is held without one of them, and the entry that takes its place, or NOBODY."""
    heir = NOBODY
    if held == k:
        y, tie, heir = next_above(s, of, box, y, tie, INT64_MAX, INT64_MAX, NOBODY, guess)
    return y, tie, held - (heir == NOBODY), heir


@kernel
def gain(
    s: Search, of: Int, box: Int, k: Int, y: Int, tie: Int, held: Int, new_y: Int, new_tie: Int, entry: Int, guess: Int
) -> tuple[Int, Int, Int, Int]:
    """Greatest key and number of what is held with an entry more; and the entry that has this key, or NOBODY."""
    last = NOBODY
    if held == k:
        # The last one before is not held any more.
        y, tie = (y, tie - 1) if tie > INT64_MIN else (y - 1, INT64_MAX)
    else:
        held += 1
    if held == k:
        y, tie, last = next_key(s, of, box, DOWNWARDS, ~y, ~tie, ~new_y, ~new_tie, entry, guess)
        y, tie = ~y, ~tie
    return y, tie, held, last


@kernel
def settle(t: Tree, s: Search, k: Int, old: I64, new: I64, entry: Int, hits: I64, n: Int, boxes: I64) -> None:
    """Bring up to date what the points that were hit hold, and write who takes the place of the changed entry.

    The entries are searched as they are after the change. The coordinates of the points are written to `boxes`.
    """
    y, key, guess, width = t.head[Y], len(old) - 3, NOBODY, boxes.shape[1]
    for h in range(n):
        block, i, kind = t.links[hits[h, HIT_LEAF], BLOCK], hits[h, HIT_PLACE], hits[h, HIT_KIND]
        for c in range(width):
            boxes[h, c] = t.pool[block, 1 + c, i]
        last_y, last_tie, held = t.pool[block, y, i], t.pool[block, y + 1, i], t.pool[block, y + 2, i]
        heir, box = NOBODY, h * width
        if kind == LOSES:
            last_y, last_tie, held, heir = lose(s, new[SET], box, k, last_y, last_tie, held, guess)
        elif kind == GAINS:
            last_y, last_tie, held, guess = gain(
                s, new[SET], box, k, last_y, last_tie, held, new[key], new[key + 1], entry, guess
            )
        elif held == k and is_less(last_y, last_tie, new[key], new[key + 1]):
            last_y, last_tie, heir = next_above(
                s, new[SET], box, last_y, last_tie, new[key], new[key + 1], entry, guess
            )
        elif held == k and last_y == old[key] and last_tie == old[key + 1]:
            last_y, last_tie, guess = next_key(
                s, new[SET], box, DOWNWARDS, ~last_y, ~last_tie, ~new[key], ~new[key + 1], entry, guess
            )
            last_y, last_tie = ~last_y, ~last_tie
        if heir != NOBODY:
            guess = heir
        hits[h, HIT_HEIR] = NOBODY if heir == entry else heir
        t.pool[block, y, i], t.pool[block, y + 1, i], t.pool[block, y + 2, i] = last_y, last_tie, held
