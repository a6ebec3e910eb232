"""A view set in which few views can feed all others, as in the published deployment, whose publisher fed 72 of 10,000.

How that set was made is not published. Random views of the same number have hardly anything in common: half of them cannot be
fed by others. Here views are picked from a larger random set: one after the other, those that most rewritings use are given to
the publisher, and every view joins that has a rewriting over those that are there, until there are enough.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from tidings.relay.pattern import Pattern
from tidings.relay.planner import source_costs
from tidings.relay.rewriting import PatternTable, Rewritings, find_rewritings
from tidings.relay.sizes import guess_views
from tidings.relay.workloads.views import distinct_views
from tidings.workloads.draws import zipf

_POPULARITY = 0.8
"""As in `repeated_views`: exponent of the shares of distinct views among duplicates."""


def grown_views(seed: int, views: int, distinct: int, pool: int, values: int) -> list[Pattern]:
    """So many views, so many of them distinct, picked from a pool of so many. Popular ones come often."""
    patterns = list(islice(distinct_views(seed, values), pool))
    table = PatternTable(patterns)
    rewritings = find_rewritings(table, source_costs(guess_views(patterns)))
    picked = pick(rewritings, distinct)
    rng = np.random.default_rng([seed, 5])
    more = rng.choice(rng.permutation(picked), views - distinct, p=zipf(distinct, _POPULARITY, 0.0))
    return [patterns[number] for number in rng.permutation(np.concatenate([picked, more])).tolist()]


def pick(rewritings: Rewritings, wanted: int) -> list[int]:
    """Patterns in the order in which they join. Each has a rewriting over earlier ones, or is given to the publisher."""
    count = len(rewritings.first) - 1
    owner = np.repeat(np.arange(count), np.diff(rewritings.first))
    missing = np.diff(rewritings.first_source)
    order = np.argsort(rewritings.sources, kind="stable")
    rewriting_of = np.repeat(np.arange(len(missing)), missing)[order]
    first_use = np.concatenate([[0], np.cumsum(np.bincount(rewritings.sources, minlength=count))])
    is_in = np.zeros(count, np.bool_)
    joined: list[int] = []
    for root in np.argsort(-np.diff(first_use), kind="stable").tolist():
        waiting = [] if is_in[root] else [root]
        is_in[root] = True
        while waiting:
            pattern = waiting.pop()
            joined.append(pattern)
            if len(joined) == wanted:
                return joined
            for rewriting in rewriting_of[first_use[pattern] : first_use[pattern + 1]].tolist():
                missing[rewriting] -= 1
                target = int(owner[rewriting])
                if missing[rewriting] == 0 and not is_in[target]:
                    is_in[target] = True
                    waiting.append(target)
    return joined
