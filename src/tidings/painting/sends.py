"""What one change sends to a plane of ranges: rows, and the tiles that each goes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from tidings.model.catalog import Column, Table
from tidings.model.channel import ChannelKey, channel_component
from tidings.model.codes import CODE_MAX, CODE_MIN, code_of
from tidings.painting.staircase import Ranking, Tile, entering, gained, staircase
from tidings.sql.shape import Order, Shape

Row = dict[str, Any]
Key = tuple[Any, ...]


class Send(NamedTuple):
    key: Key
    """Primary key of the row."""
    tiles: list[Tile]


class Change(Protocol):
    """A change of a row."""

    @property
    def images(self) -> Sequence[Row]:
        """The row as it is and as it was, if it is and was there."""

    @property
    def before(self) -> Sequence[Row]:
        """All rows of the table before the change."""

    @property
    def after(self) -> Sequence[Row]: ...


def select_sends(shape: Shape, table: Table, channel: ChannelKey, change: Change) -> list[Send]:
    """A changed row goes to all ranges that hold its old value or its new one."""
    column = _ranged(shape, table)
    ends = {
        code_of(column.type, row[column.name]): key_of(table, row)
        for row in change.images
        if _is_in(shape, table, channel, row)
    }
    tiles = [Tile((CODE_MIN, x), (x, CODE_MAX)) for x in ends]
    return [Send(next(iter(ends.values())), tiles)] if tiles else []


def top_k_sends(shape: Shape, table: Table, channel: ChannelKey, change: Change) -> list[Send]:
    """The changed row goes where it was or is among the first k, and then others go where they take its place."""
    order = shape.order
    assert order is not None
    if not any(_is_in(shape, table, channel, row) for row in change.images):
        return []
    before, after = (_ranking(shape, order, table, channel, rows) for rows in (change.before, change.after))
    moved = key_of(table, change.images[0])
    own = _either(*(_stairs(ranking, moved, order.limit) for ranking in (before, after)))
    others = [Send(key, tiles) for key, tiles in entering(before, after, moved, order.limit)]
    return [Send(moved, own), *others] if own else others


def _stairs(ranking: Ranking, moved: Key, k: int) -> tuple[int, list[Tile]]:
    """Where a row is, and its staircase; empty if it is not there."""
    for place, (key, x) in enumerate(ranking):
        if key == moved:
            return x, staircase(x, [y for _, y in ranking[:place]], k)
    return 0, []


def _either(before: tuple[int, list[Tile]], after: tuple[int, list[Tile]]) -> list[Tile]:
    """The tiles of two staircases; without the overlap if they have one corner."""
    (was, old), (x, new) = before, after
    if not (old and new) or was != x:
        return [*new, *old]
    lost = gained(x, new, old)
    return [*new, *lost] if gained(x, old, new) else old


def _ranking(shape: Shape, order: Order, table: Table, channel: ChannelKey, rows: Sequence[Row]) -> Ranking:
    """(key, code in the range column) of the rows of a channel, best first."""
    column, rank = _ranged(shape, table), order.column.column
    own = [row for row in rows if row[rank] is not None and _is_in(shape, table, channel, row)]
    own.sort(key=lambda row: key_of(table, row))
    # Sorting is stable, also in reverse: ties stay in the order of the key.
    own.sort(key=lambda row: row[rank], reverse=order.descending)
    return [(key_of(table, row), code_of(column.type, row[column.name])) for row in own]


def _ranged(shape: Shape, table: Table) -> Column:
    return table.column(shape.ranges[0].column)


def _is_in(shape: Shape, table: Table, channel: ChannelKey, row: Row) -> bool:
    """Whether a row is on a channel, and has a value in the range column."""
    names = [ref.column for ref in (*shape.equalities, *shape.ranges)]
    if any(row[name] is None for name in names):
        return False
    own = (channel_component(table.column(ref.column).type, row[ref.column]) for ref in shape.equalities)
    return tuple(own) == channel


def key_of(table: Table, row: Row) -> Key:
    """Primary key of a row."""
    return tuple(row[name] for name in table.key)
