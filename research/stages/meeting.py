"""Which messages meet which zones: their regions against the cells that zones own, in one compiled pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.arrays import I64
from tidings.kernels.jit import kernel

Marks = NDArray[np.bool_]


@kernel
def mark_meetings(
    lo: I64,
    hi: I64,
    starts: I64,
    hashes: I64,
    cells: I64,
    first: I64,
    axis: I64,
    least: I64,
    largest: I64,
    met: Marks,
) -> None:
    """Sets met[z, i] where region i meets a cell of zone z.

    lo, hi: [boxes, axes]; region i has boxes starts[i]:starts[i + 1] and the channel hash hashes[i]. cells: [cells, 3],
    least and largest channel hash, and zone. Cell c is bounded along axis[k] by least[k] and largest[k] for k in
    first[c]:first[c + 1]; one that is bounded nowhere meets all regions with a hash of its own.
    """
    for i in range(len(hashes)):
        for c in range(len(cells)):
            zone = cells[c, 2]
            if met[zone, i] or hashes[i] < cells[c, 0] or hashes[i] > cells[c, 1]:
                continue
            is_met = first[c] == first[c + 1]
            box = starts[i]
            while not is_met and box < starts[i + 1]:
                is_met = True
                for k in range(first[c], first[c + 1]):
                    if lo[box, axis[k]] > largest[k] or hi[box, axis[k]] < least[k]:
                        is_met = False
                        break
                box += 1
            met[zone, i] = is_met
