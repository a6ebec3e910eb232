"""What a planner is given: nodes, the ways to compute each of them, and who can feed how many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.kernels.arrays import F64, I32, I64, Bools

UNLIMITED = 1 << 62
"""A capacity that no plan uses up."""
NO_SITE = -1
"""The site of a node that shares its site with no other."""
HOP = 1.0
"""The distance between two places of which one is not known."""

Columns = I64
"""A plan: of each node, the column that feeds it."""


@dataclass(frozen=True, eq=False)
class Instance:
    """Nodes are numbered from 0, in no particular order. A node is a view, or several equal ones that share their feeding.

    Each node is fed by exactly one of its columns, the ways to compute it. The columns of node v are
    first_column[v] : first_column[v + 1]. The first of them is always the publisher's and has no sources; all others have at
    least one, and the publisher may send a part to them as well. The sources of column j are sources[first_source[j] :
    first_source[j + 1]], distinct nodes. Sources form no cycle, whichever columns are chosen: the
    union of all edges from a source to a node is acyclic.
    """

    first_column: I64
    """int64[nodes + 1]."""
    cost: F64
    """float64[columns], not negative: what it takes to feed a node by a column."""
    first_source: I64
    """int64[columns + 1]."""
    sources: I32
    """int32[nonzeros]: nodes."""
    pool: I32
    """int32[nodes]: whose capacity a node uses when it feeds another. Views of one site share a pool."""
    capacity: I64
    """int64[pools]: how many nodes a pool may feed. A column with two sources of one pool uses two units of it."""
    sent: I32
    """int32[nodes]: bytes per document that a node sends to each node that it feeds elsewhere."""
    bandwidth: I64
    """int64[pools]: bytes per document that a pool may send."""
    site: I32
    """int32[nodes]: to feed a node of the same site uses no capacity. NO_SITE: the node is alone."""
    publisher_capacity: int
    """How many nodes the publisher may feed, wholly or in part."""
    is_published: Bools
    """bool[columns]: whether the publisher is an input; so it is of each node's first column."""
    delay: F64
    """float64[columns]: the latency of a column apart from distances, its computation."""
    position: F64
    """float64[nodes, 2]; NaN: nowhere in particular."""
    publisher_position: tuple[float, float]
    """NaN: nowhere in particular."""
    weight: I64
    """int64[nodes]: how many views the node stands for; counts in total latency."""

    @property
    def nodes(self) -> int:
        return len(self.first_column) - 1

    @property
    def pools(self) -> int:
        return len(self.capacity)

    def columns_of(self, node: int) -> range:
        return range(int(self.first_column[node]), int(self.first_column[node + 1]))

    def sources_of(self, column: int) -> list[int]:
        found: list[int] = self.sources[self.first_source[column] : self.first_source[column + 1]].tolist()
        return found

    def use(self, columns: Columns) -> float:
        """What a plan costs."""
        return float(self.cost[columns].sum())

    def same_site(self, one: int, other: int) -> bool:
        return bool(self.site[one] != NO_SITE and self.site[one] == self.site[other])

    def pools_used(self, node: int, column: int) -> list[int]:
        """The pool of each unit of capacity that a column of the node uses; the publisher's is the number of pools."""
        used = [int(self.pool[source]) for source in self.sources_of(column) if not self.same_site(source, node)]
        return [*used, self.pools] if self.is_published[column] else used

    def bytes_sent(self, node: int, column: int) -> list[tuple[int, int]]:
        """The pool of each source elsewhere of a column of the node, and the bytes that it sends."""
        sources = [source for source in self.sources_of(column) if not self.same_site(source, node)]
        return [(int(self.pool[source]), int(self.sent[source])) for source in sources]

    def distance(self, source: int, node: int) -> float:
        if self.same_site(source, node):
            return 0.0
        return _euclidean(self.position[source], self.position[node])

    def publisher_distance(self, node: int) -> float:
        return _euclidean(np.array(self.publisher_position), self.position[node])


def _euclidean(one: F64, other: F64) -> float:
    length = float(np.hypot(*(one - other)))
    return HOP if np.isnan(length) else length
