"""What the sparse variant keeps beyond the arrays of a range top-k index."""

from __future__ import annotations

import numpy as np

from research.strategies.topk.kernels.range_topk.layout import HEAD_FIELDS, Arrays, K

# Behind the fields of `head`: how many boxes were asked for points.
SNAPS = HEAD_FIELDS

# Fields of the columns of a staircase, k + 2 words each, behind the two sides in `work`.
COLUMN_LO_MIN, COLUMN_LO_MAX, COLUMN_HI_MIN, COLUMN_HI_MAX, IS_JOINED, COLUMN_FIELDS = range(6)


def widened(arrays: Arrays) -> Arrays:
    """The arrays of a new index with room for both."""
    columns = np.zeros(COLUMN_FIELDS * (int(arrays.head[K]) + 2), np.int64)
    return arrays._replace(head=np.append(arrays.head, 0), work=np.append(arrays.work, columns))
