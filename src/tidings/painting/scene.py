"""What a picture shows: a plane of ranges with its points, and what one change sends where."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.model.catalog import Column
from tidings.model.codes import Int64Array


@dataclass(frozen=True)
class Sent:
    """One message of the change."""

    label: str
    """The row it carries, in few words."""
    lo: Int64Array
    """[tiles, 2]: least lower and least upper end of each tile."""
    hi: Int64Array
    reached: int
    """Number of points in the tiles."""


@dataclass(frozen=True)
class Scene:
    title: str
    column: Column
    """The column whose ranges the plane has: lower ends to the right, upper ends upwards."""
    sent: list[Sent]
    """In the order in which they are sent."""
    points: Int64Array
    """[points, 2]"""
    marked: tuple[int, int] | None = None
    """The point of one subscription in particular."""
