"""Arrays that grow: in place when Python owns them, into a longer copy inside compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.jit import kernel


def cover(array: NDArray[Any], size: int) -> None:
    """Makes an array at least so long, in place, with zeros; large ones are not copied where pages can be remapped."""
    if size > len(array):
        array.resize((max(size, len(array) + max(64, len(array) // 4)), *array.shape[1:]), refcheck=False)


@kernel
def grown(values: Any, size: Any) -> Any:
    """The same values in a longer array, at least of this length."""
    longer = np.empty((max(size, 2 * len(values)), *values.shape[1:]), values.dtype)
    longer[: len(values)] = values
    return longer
