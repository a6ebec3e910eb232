"""Boxes as the batches that a BoxIndex takes."""

import numpy as np

from tidings.families.offers.constraint import pack
from tidings.families.offers.kernels.packed import read_batch


def batch_of(constraints):
    """A batch of constraints, each a list of boxes."""
    packed = [pack(boxes) for boxes in constraints]
    starts = np.cumsum([0, *map(len, packed)])[:-1]
    return read_batch(np.frombuffer(bytearray(b"".join(packed)) or bytearray(1), np.uint8), starts)
