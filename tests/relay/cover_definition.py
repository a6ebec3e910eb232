"""Minimal covers by definition: what rewritings are compared with."""

from itertools import combinations

import numpy as np


def minimal_covers(masks, full):
    found = []
    for size in range(1, 5):
        for chosen in combinations(sorted(masks), size):
            covered = [masks[number] for number in chosen]
            parts = [np.bitwise_or.reduce([0, *covered[:i], *covered[i + 1 :]]) for i in range(size)]
            if np.bitwise_or.reduce(covered) == full and full not in parts:
                found.append(chosen)
    return found


def in_order(rewritings):
    """Sources come by their costs."""
    return [tuple(sorted(one)) for one in rewritings]
