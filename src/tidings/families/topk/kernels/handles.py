"""Arrays by address: a call that is given 60 arrays takes 20 us to unpack them, one with a table of their addresses 1 us.

The table has (address, size) of each array, in the order below, and is made anew when one of them is replaced.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from tidings.families.topk.kernels.layout import COLUMNS, ORDER_FIELDS, STORED, View
from tidings.kernels.jit import kernel
from tidings.kernels.rows import CODES, ENDS, EQUALS, I64, WIDTH, Int
from tidings.kernels.stabbing import Boxes

HEAD, ROW_OF, CURRENT, TIE, WORDS, BYTES, BLOCK_POOL, BLOCK_SIZE, ORDERS, STORED_COLUMNS, PLANS, LISTS = range(12)
"""Places of the arrays of a ranking; then rows of its table, boxes, `evaluate.Work`, lives and projections."""
RECORDS, TEXTS, PAGE_BASE, KINDS, KEYS, LAYOUT = range(12, 18)
FIRST_OF_BOXES = 18
FIRST_OF_WORK = FIRST_OF_BOXES + len(Boxes._fields)


def handles_of(arrays: Iterable[Any]) -> I64:
    """The table for these arrays, which are contiguous. They must be kept alive as long as it is used."""
    entries = [(array.__array_interface__["data"][0], array.size) for array in arrays]
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
def view_at(handles: I64) -> View:
    """As `layout.view_of`."""
    head, layout = words_at(handles[HEAD, 0]), words_at(handles[LAYOUT, 0])
    fields = STORED + handles[STORED_COLUMNS, 1]
    return View(
        head,
        halves_at(handles[ROW_OF, 0]),
        words_at(handles[CURRENT, 0]),
        words_at(handles[TIE, 0]),
        words_at(handles[WORDS, 0]),
        handles[WORDS, 1],
        bytes_at(handles[BYTES, 0]),
        words_at(handles[BLOCK_POOL, 0]),
        handles[BLOCK_SIZE, 1],
        fields,
        words_at(handles[BLOCK_SIZE, 0]),
        words_at(handles[ORDERS, 0]),
        ORDER_FIELDS + head[COLUMNS],
        words_at(handles[STORED_COLUMNS, 0]),
        words_at(handles[PLANS, 0]),
        words_at(handles[LISTS, 0]),
        words_at(handles[RECORDS, 0]),
        bytes_at(handles[TEXTS, 0]),
        words_at(handles[PAGE_BASE, 0]),
        halves_at(handles[KINDS, 0]),
        halves_at(handles[KEYS, 0]),
        layout[WIDTH],
        layout[CODES],
        layout[EQUALS],
        layout[ENDS],
    )


@kernel
def array_at(handles: I64, place: Int) -> Any:
    return carray(words_at(handles[place, 0]), (handles[place, 1],))


@kernel
def text_array_at(handles: I64, place: Int) -> Any:
    return carray(bytes_at(handles[place, 0]), (handles[place, 1],))


@kernel
def boxes_at(handles: I64) -> Boxes:
    first = FIRST_OF_BOXES
    return Boxes(
        array_at(handles, first),
        array_at(handles, first + 1),
        array_at(handles, first + 2),
        array_at(handles, first + 3),
        array_at(handles, first + 4),
        array_at(handles, first + 5),
        text_array_at(handles, first + 6),
        array_at(handles, first + 7),
    )
