"""Arrays as the kernels are compiled for: contiguous and writable, or a kernel would be compiled once more for each kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


def as_argument(values: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """The values themselves if they are such an array, else a copy that is (Arrow's buffers are read-only)."""
    return np.require(values, dtype, ["C_CONTIGUOUS", "WRITEABLE"])


def as_ints(values: ArrayLike) -> NDArray[np.int64]:
    """A flat array of integers."""
    return as_argument(values, np.int64).reshape(-1)


def as_floats(values: ArrayLike) -> NDArray[np.float64]:
    """A flat array of doubles."""
    return as_argument(values, np.float64).reshape(-1)


def check_lengths(*columns: NDArray[Any]) -> None:
    """ValueError unless all columns have as many values."""
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"{', '.join(str(len(column)) for column in columns)} values, must be as many")
