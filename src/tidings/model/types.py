"""Column types: how each is written in SQL, kept in Arrow, read from JSON and turned into an int64 code."""

from __future__ import annotations

import datetime as dt
from enum import Enum
from typing import Annotated, Any

import msgspec
import pyarrow as pa


class ColumnType(Enum):
    """A type a column may have; the value is its SQL name."""

    BIGINT = "BIGINT"
    INT = "INT"
    DOUBLE = "DOUBLE"
    TEXT = "TEXT"
    BOOLEAN = "BOOLEAN"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    BINARY = "BINARY"
    POINT = "POINT"
    BOX = "BOX"

    @property
    def arrow(self) -> pa.DataType:
        return _ARROW[self]

    @property
    def json(self) -> Any:
        """The msgspec type that accepts exactly this type's JSON form (strict: no conversions)."""
        return _JSON[self]

    @property
    def is_lossy(self) -> bool:
        """True where different values may share a code, so that ties must be verified on the values."""
        return self is ColumnType.TEXT

    @property
    def is_comparable(self) -> bool:
        """True where predicates on the column are allowed."""
        return self not in (ColumnType.BINARY, ColumnType.POINT, ColumnType.BOX)

    @property
    def is_geometric(self) -> bool:
        return self in (ColumnType.POINT, ColumnType.BOX)


_ARROW: dict[ColumnType, pa.DataType] = {
    ColumnType.BIGINT: pa.int64(),
    ColumnType.INT: pa.int32(),
    ColumnType.DOUBLE: pa.float64(),
    ColumnType.TEXT: pa.string(),
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.DATE: pa.date32(),
    ColumnType.TIMESTAMP: pa.timestamp("us"),
    ColumnType.BINARY: pa.binary(),
    ColumnType.POINT: pa.list_(pa.float64(), 2),
    ColumnType.BOX: pa.list_(pa.float64(), 4),
}

_JSON: dict[ColumnType, Any] = {
    ColumnType.BIGINT: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    ColumnType.INT: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)],
    ColumnType.DOUBLE: float,
    ColumnType.TEXT: str,
    ColumnType.BOOLEAN: bool,
    ColumnType.DATE: dt.date,
    ColumnType.TIMESTAMP: dt.datetime,
    ColumnType.BINARY: bytes,
    ColumnType.POINT: list[float],
    ColumnType.BOX: list[float],
}
