"""A network of nodes like the Internet's: few have many links, most have one or two."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.arrays import I64
from tidings.kernels.jit import kernel

_LINKS = 2
_SECOND = 0.65
"""Share of nodes that come with two links; the others have one."""


@kernel
def attach(nodes: int, seed: int) -> Any:
    """Ends of links, two a link, of a graph by preferential attachment (Barabasi and Albert 1999): a newcomer links to the
    end of a random link, so that those with many links get more."""
    np.random.seed(seed)
    ends = np.empty(2 * nodes * _LINKS + 6, np.int64)
    size = 0
    for a in range(min(nodes, _LINKS + 1)):
        for b in range(a):
            ends[size], ends[size + 1] = a, b
            size += 2
    for node in range(_LINKS + 1, nodes):
        known = size
        for _ in range(_LINKS if np.random.random() < _SECOND else 1):
            ends[size], ends[size + 1] = node, ends[np.random.randint(0, known)]
            size += 2
    return ends[:size]


@kernel
def distances(starts: Any, beside: Any, sources: Any, found: Any) -> None:
    """found [sources, nodes]: links on the shortest way from each source."""
    nodes = len(starts) - 1
    queue = np.empty(nodes, np.int64)
    for i in range(len(sources)):
        row = found[i]
        row[:] = -1
        row[sources[i]] = 0
        queue[0] = sources[i]
        at, size = 0, 1
        while at < size:
            node = queue[at]
            at += 1
            for k in range(starts[node], starts[node + 1]):
                other = beside[k]
                if row[other] < 0:
                    row[other] = row[node] + 1
                    queue[size] = other
                    size += 1


def ip_hops(nodes: int, brokers: int, seed: int) -> I64:
    """[brokers + 1, brokers + 1]: links between the nodes of brokers, and of the server, which comes last."""
    ends = attach(nodes, seed)
    sources = np.concatenate([ends[::2], ends[1::2]])
    targets = np.concatenate([ends[1::2], ends[::2]])
    order = np.argsort(sources, kind="stable")
    starts = np.searchsorted(sources[order], np.arange(nodes + 1)).astype(np.int64)
    chosen = np.random.default_rng(seed).permutation(nodes)[: brokers + 1].astype(np.int64)
    # A network of as few nodes as brokers has the server at the node of one of them.
    chosen = np.append(chosen, chosen[:1])[: brokers + 1]
    found = np.empty((brokers + 1, nodes), np.int16)
    distances(starts, targets[order], chosen, found)
    hops: I64 = found[:, chosen].astype(np.int64)
    return hops
