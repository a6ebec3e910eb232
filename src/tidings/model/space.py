"""Parameter spaces: the named axes of the points of a form. Axes with the same meaning have the same name in all spaces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa


@dataclass(frozen=True)
class ParameterSpace:
    """axes: names of the coordinates of a point, in order. channel: its equality columns."""

    axes: tuple[str, ...]
    channel: tuple[tuple[str, pa.DataType], ...] = ()
    """(name, Arrow type) of every component."""

    def __post_init__(self) -> None:
        assert len(set(self.axes)) == len(self.axes), f"two axes have one name: {self.axes}"

    @property
    def dims(self) -> int:
        return len(self.axes)

    @cached_property
    def channel_types(self) -> tuple[pa.DataType, ...]:
        return tuple(type for _, type in self.channel)


def range_axes(table: str, columns: Iterable[str]) -> tuple[str, ...]:
    """Axes of the ends of ranges: the lower and the upper one of each column."""
    return tuple(f"{end} {table}.{column}" for column in columns for end in ("lo", "hi"))
