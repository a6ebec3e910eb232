"""Arrays that grow: as longer copies, with spare room so that appending takes constant time on average."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.jit import kernel


@kernel
def grown(values: Any, size: Any) -> Any:
    """The same values in a longer array, at least of this length."""
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
