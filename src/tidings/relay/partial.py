"""Partial rewritings: views that others know a part of, and what the publisher has to send for the rest.

When few views are there, few know all that another one asks for, and the publisher would have to feed the others by itself. A
partial rewriting covers all that views know of such a view; what is left to the publisher is the same for all of them, a query
like any other, which it matches instead of the view (`rest.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tidings.kernels.arrays import F64, I64
from tidings.relay.costs import DELAY_ID, INPUT_ID, published_cost
from tidings.relay.pattern import Pattern
from tidings.relay.rest import missing_share, rest_of
from tidings.relay.rewriting.rewritings import Rewritings, completed
from tidings.relay.row_views.query import RowQuery
from tidings.relay.sizes import ViewSizes

Queries = Sequence[Pattern | RowQuery]


@dataclass(frozen=True, eq=False)
class Rests:
    """Per query, of those that others know in part.

    share: of the publisher's work for the query that is left; 0 where there are no partial rewritings. sizes: of the messages
    with the rest.
    """

    share: F64
    sizes: ViewSizes

    @property
    def cost(self) -> F64:
        """To send the rest, and to join it with what the views say."""
        return self.share * published_cost(self.sizes) + self.sizes.bytes + INPUT_ID * self.sizes.ids

    @property
    def delay(self) -> F64:
        return DELAY_ID * self.sizes.ids


def add_partial(
    queries: Queries, rewritings: Rewritings, find: Callable[[I64], Rewritings], measure: Callable[[Queries], ViewSizes]
) -> tuple[Rewritings, Rests]:
    """Partial rewritings for the queries that have no other ones, and their rests.

    find: partial rewritings of some queries. measure: sizes of messages, patterns before queries over rows.
    """
    without = np.flatnonzero(np.diff(rewritings.first) == 0)
    partial = find(without)
    known = np.flatnonzero(np.diff(partial.first) > 0).tolist()
    found = {int(without[place]): _rest(queries, int(without[place]), partial.of(place)[0]) for place in known}
    numbers = np.array(list(found), np.int64)
    share, ids, bytes = np.zeros((3, len(queries)))
    share[numbers] = [missing_share(queries[number], rest) for number, rest in found.items()]
    measured = measure(list(found.values()))
    ids[numbers], bytes[numbers] = measured.ids, measured.bytes
    return completed(rewritings, without, partial), Rests(share, ViewSizes(ids, bytes, measured.document_bytes))


def _rest(queries: Queries, number: int, sources: Sequence[int]) -> Pattern | RowQuery:
    rest = rest_of(queries[number], [queries[source] for source in sources])
    assert rest is not None, "who can be computed from others has rewritings"
    return rest
