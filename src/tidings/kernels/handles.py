"""Arrays by their addresses: a call that is given 60 arrays takes 20 us to unpack them, one that is given their handles 1 us.

A table of handles has (address, size, width) of each array; an array of two axes has rows of `width` entries. Arrays must be
contiguous, and somebody must keep them alive and make the table anew when one of them is replaced or has moved.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from tidings.kernels.arrays import I64, Int
from tidings.kernels.jit import kernel

ADDRESS, SIZE, ROW = range(3)


def handles_of(arrays: Iterable[Any]) -> I64:
    """The table of handles of these arrays, [arrays, 3]."""
    entries = [
        (array.__array_interface__["data"][0], array.size, array.shape[1] if array.ndim == 2 else 1) for array in arrays
    ]
    return np.array(entries, np.int64)


def _cast_to(kind: Any) -> Any:
    """Makes a function that gives the pointer to values of a kind at an address."""

    @intrinsic
    def cast(_context: Any, _address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64), codegen

    return cast


words_at = _cast_to(types.int64)
halves_at = _cast_to(types.int32)
bytes_at = _cast_to(types.uint8)


@kernel
def array_at(handles: I64, place: Int) -> Any:
    """The array of words with the handle at a place of the table."""
    return carray(words_at(handles[place, ADDRESS]), (handles[place, SIZE],))


@kernel
def text_array_at(handles: I64, place: Int) -> Any:
    """The array of bytes."""
    return carray(bytes_at(handles[place, ADDRESS]), (handles[place, SIZE],))


@kernel
def half_array_at(handles: I64, place: Int) -> Any:
    """The array of 32-bit integers."""
    return carray(halves_at(handles[place, ADDRESS]), (handles[place, SIZE],))


@kernel
def table_at(handles: I64, place: Int) -> Any:
    """The array of words with two axes."""
    width = handles[place, ROW]
    return carray(words_at(handles[place, ADDRESS]), (handles[place, SIZE] // width, width))


@kernel
def half_table_at(handles: I64, place: Int) -> Any:
    """The array of 32-bit integers with two axes."""
    width = handles[place, ROW]
    return carray(halves_at(handles[place, ADDRESS]), (handles[place, SIZE] // width, width))
