"""A content-addressable network of the papers' size, and what messages cost on it.

1,000 brokers lie at random nodes of a network of 20,000. As long as nothing fails and nothing is cached, what brokers send is
known from the zones that a region meets; a test compares this with the brokers' own doing.
"""

from __future__ import annotations

import numpy as np

from research.experiments.network.kernels import COLUMNS, count_can
from tidings.kernels.arrays import I64
from tidings.model.codes import codes_of_doubles, doubles_of_codes
from tidings.network.overlays import Can
from tidings.network.zones import partition
from tidings.simulator.topology import ip_hops

BROKERS, NODES = 1_000, 20_000
_UNITS = 1_000_000
"""Values are told apart to so many parts."""
_ENDS = codes_of_doubles(np.array([-1e9, 1e9])).tolist()
"""All values lie between these."""


def linear(codes: I64) -> I64:
    """Codes of doubles as integers that are as far apart as the doubles, as zones are cut by distances."""
    found: I64 = np.round(doubles_of_codes(np.clip(codes, *_ENDS)) * _UNITS).astype(np.int64)
    return found


class Network:
    """Zones for some points, and the brokers that own them."""

    def __init__(self, points: I64, seed: int, brokers: int = BROKERS) -> None:
        self.points = points
        self.zones, self.cell_of = partition(points, brokers)
        self.ip_hops = ip_hops(max(NODES, brokers), brokers, seed)
        self.can = Can(self.zones, brokers, self.ip_hops[-1, :-1])

    def cost(self, lo: I64, hi: I64, starts: I64, size: I64, notes: I64 | None = None) -> I64:
        """[messages, COLUMNS] of `kernels`: messages, bytes, bytes from the server, bytes on links below, payloads carried."""
        count = len(starts) - 1
        found = np.zeros((count, COLUMNS), np.int64)
        payloads = np.zeros(count, np.int64) if notes is None else notes
        lo, hi, starts, size = (np.ascontiguousarray(values, np.int64) for values in (lo, hi, starts, size))
        cells = self.zones.lo, self.zones.hi
        count_can(lo, hi, starts, size, payloads, *cells, *self.can.beside, self.ip_hops, found)
        return found

    def unicast_hops(self, points: I64) -> I64:
        """Links below between the server and the brokers of points."""
        hops: I64 = self.ip_hops[-1, self.cell_of[points]]
        return hops
