"""Arrays of compiled structures: names of their types, and how they grow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.jit import kernel

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Int = Any
"""An integer: int64 in compiled code, where numpy's scalars and Python's mix freely."""
Float = Any

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
ZERO, ONE = np.int64(0), np.int64(1)
"""For arguments: numba compiles a function once more for every literal that it is called with."""


def grow(array: NDArray[Any], size: int, fill: Any = 0) -> None:
    """Makes an array at least `size` rows long, in place; new rows hold `fill`.

    An array grows by an eighth at least, which bounds both the copying and the memory that lies idle. Large arrays are not
    copied where the platform can remap pages. Views of the array are invalid afterwards: the caller replaces them.
    """
    held = len(array)
    if size > held:
        array.resize((max(size, held + max(64, held // 8)), *array.shape[1:]), refcheck=False)
        if fill != 0:
            array[held:] = fill


@kernel
def grown(values: Any, size: Any) -> Any:
    """The same values in a longer array, at least of this length; for compiled code."""
    longer = np.empty((max(size, 2 * len(values)), *values.shape[1:]), values.dtype)
    longer[: len(values)] = values
    return longer


def covering(values: Any, places: Any, blank: int = 0) -> Any:
    """The values in an array that has all these places along its first axis; `blank` where there was none."""
    top = int(np.max(places, initial=-1)) + 1
    if top <= len(values):
        return values
    longer = np.full((max(top, 3 * len(values) // 2), *values.shape[1:]), blank, values.dtype)
    longer[: len(values)] = values
    return longer


def runs_of(values: NDArray[Any]) -> tuple[I64, I64]:
    """Where each run of equal values begins, and where it ends."""
    ends = (
        np.append(np.flatnonzero(values[1:] != values[:-1]) + 1, len(values)) if len(values) else np.zeros(0, np.int64)
    )
    return np.append(0, ends)[:-1].astype(np.int64), ends.astype(np.int64)
