"""Values of rows as texts, on their way into a row store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.model.catalog import Table
from tidings.model.codes import code_of
from tidings.model.render import kept_text


def cells_of(table: Table, values: Sequence[Any]) -> tuple[list[bytes | None], list[int]]:
    """(texts, codes) of a row's values, as `RowStore.put` takes them."""
    texts: list[bytes | None] = []
    codes = []
    for column, value in zip(table.columns, values, strict=True):
        if value is None:
            texts.append(None)
            codes.append(0)
        else:
            texts.append(kept_text(column, value))
            codes.append(code_of(column.type, value) if column.type.is_comparable else 0)
    return texts, codes


def key_cells(table: Table, id: str) -> tuple[list[bytes | None], list[int]]:
    """As `cells_of`, of a row of constraints of which only the id is known."""
    return cells_of(table, (id, *([None] * (len(table.columns) - 1))))


def bytes_of(data: bytes | bytearray) -> npt.NDArray[np.uint8]:
    """The bytes as an array for kernels, which want it writable and not empty."""
    writable = data if isinstance(data, bytearray) else bytearray(data)
    return np.frombuffer(writable or bytearray(1), np.uint8)
