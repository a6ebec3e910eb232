"""Replays changes up to one of them, and keeps what it sends and where the subscriptions are at that moment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tidings.families.optional import Regional, RegionSpace
from tidings.families.registry import family_of, is_regional
from tidings.families.spec import Form
from tidings.files import open_input, read_lines
from tidings.kernels.events import CHANGE, Told
from tidings.kernels.rows import I64, NONE
from tidings.model.catalog import Catalog, Column, Table
from tidings.model.channel import ChannelKey, channel_keys
from tidings.model.errors import UsageError
from tidings.model.points import Event, PointBatch
from tidings.painting.scene import Scene, Sent
from tidings.painting.sends import Key, Row, key_of, select_sends, top_k_sends
from tidings.painting.staircase import Tile
from tidings.pipeline.door import Door
from tidings.pipeline.replica.batch import Batch
from tidings.pipeline.replica.replica import Replica
from tidings.pipeline.replica.row_store import RowStore
from tidings.pipeline.table_changes import rows_of, versions_at
from tidings.sql.shape import Shape
from tidings.terminal import progress

_BATCH = 10_000
_LABEL_MAX = 48
_PAINTED = (
    "a picture shows queries with one range of values, as WHERE a BETWEEN x AND y, with or without equalities and "
    "ORDER BY .. LIMIT"
)
_QUOTE = '"'
Ends = tuple[int, int]
Labelled = tuple[str, list[Tile]]
"""What a row says, and the tiles that it is sent to."""


class Plane(NamedTuple):
    """The ranges of one column: of one channel of a form. Of offers, all that compare one axis alone have one form here."""

    form: str
    table: Table
    column: Column
    channel: ChannelKey = ()


class _Planes:
    """The subscriptions in each plane, of those that these events have created and not dropped."""

    def __init__(self, catalog: Catalog, points: Sequence[PointBatch]) -> None:
        self._catalog = catalog
        self.ends: dict[Plane, dict[str, Ends]] = {}
        self._of: dict[str, list[Plane]] = {}
        """Id -> the planes that it has a point in."""
        for batch in points:
            for event, run in batch.in_order().runs():
                ids = run.id.to_pylist()
                if event is Event.DROP:
                    for id in ids:
                        for plane in self._of.pop(id, ()):
                            del self.ends[plane][id]
                    continue
                self._of |= {id: [] for id in ids}
                for plane, at, (lo, hi) in self._dots(run):
                    self.ends.setdefault(plane, {})[ids[at]] = lo, hi
                    self._of[ids[at]].append(plane)

    def _dots(self, points: PointBatch) -> Iterator[tuple[Plane, int, list[int]]]:
        """(plane, index of the point, its ends) of each point that lies in a plane."""
        family, form = family_of(points.form)
        shape, table = form.shape, self._catalog.table(form.shape.tables[0])
        if table.has_constraints:
            assert isinstance(family, Regional)
            key = Form(family.name, Shape((table.name,))).key
            for space, of, coords in family.in_space(points, self._catalog) if is_regional(points.form) else ():
                if len(space.axes) == 1:
                    plane = Plane(key, table, table.axes[space.axes[0]])
                    yield from ((plane, at, ends) for at, ends in zip(of.tolist(), coords.tolist(), strict=True))
        elif len(shape.ranges) == len(shape.tables) == 1 and (shape.order is not None or is_regional(points.form)):
            column = table.column(shape.ranges[0].column)
            for at, channel in enumerate(channel_keys(points.channel, len(points))):
                if None not in channel:
                    yield Plane(points.form, table, column, channel), at, points.coords[at].tolist()

    def find(self, id: str, seq: int) -> tuple[Plane, Ends]:
        if id not in self._of:
            raise UsageError(f"there is no subscription {id!r} before seq {seq}")
        if not self._of[id]:
            raise UsageError(f"subscription {id!r} is not a point of a plane: {_PAINTED}")
        plane = self._of[id][0]
        return plane, self.ends[plane][id]


class _RowChange:
    """A `Change`, read from the versions of rows."""

    def __init__(self, store: RowStore, table: Table, event: int, versions: list[int]) -> None:
        """versions: of the row as it is and as it was, if it is and was there."""
        self._store, self.table, self._event, self.versions = store, table, event, versions
        self._version_of: dict[Key, int] = {}
        self.images = self._rows(np.array(versions, np.int64))

    @cached_property
    def before(self) -> list[Row]:
        return self._rows(versions_at(self._store, self.table, self._event - 1))

    @cached_property
    def after(self) -> list[Row]:
        return self._rows(versions_at(self._store, self.table, self._event))

    def version(self, key: Key) -> int:
        return self._version_of[key]

    def _rows(self, versions: I64) -> list[Row]:
        rows: list[Row] = rows_of(self._store, self.table, versions).to_pylist()
        for row, version in zip(rows, versions.tolist(), strict=True):
            self._version_of.setdefault(key_of(self.table, row), version)
        return rows


class _Watch:
    """Observes rows, and keeps what the change with a seq sends to each plane."""

    def __init__(self, replica: Replica, planes: _Planes, seq: int) -> None:
        self._store, self._planes, self._seq = replica.store, planes, seq
        self._tables = {plane.table.name: plane.table for plane in planes.ends}.values()
        self.is_there = False
        self.sent: dict[Plane, list[Labelled]] = {}
        """In the order of sending; planes that are sent nothing are left out."""

    def evaluates(self, form_key: str) -> bool:
        return False

    def moved(self, points: PointBatch, slots: I64) -> None:
        raise AssertionError("nobody subscribes to the rows that are watched")

    def told(self, batch: Batch, told: Sequence[tuple[str, Told]]) -> None:
        events = batch.events
        assert events is not None
        for event in np.flatnonzero((events.kind == CHANGE) & (events.seq == self._seq)).tolist():
            self.is_there = True
            for table in self._tables:
                if self._store.number(table.name) == events.table[event]:
                    images = [int(each) for each in (events.new[event], events.old[event]) if each != NONE]
                    self._see(_RowChange(self._store, table, event, images))

    def _see(self, change: _RowChange) -> None:
        for plane in self._planes.ends:
            if plane.table == change.table:
                sends = self._of_constraints if plane.table.has_constraints else self._of_values
                for each in sends(plane, change):
                    self.sent.setdefault(plane, []).append(each)

    def _of_constraints(self, plane: Plane, change: _RowChange) -> Iterator[Labelled]:
        """A publication goes to all ranges that meet its own, before or after."""
        family = family_of(plane.form)[0]
        assert isinstance(family, Regional)
        space = RegionSpace(family.name, plane.table, (plane.table.axis_numbers[plane.column.name],))
        found = family.regions(space, self._store, np.array(change.versions, np.int64))
        tiles = [Tile(tuple(lo), tuple(hi)) for lo, hi in zip(found.lo.tolist(), found.hi.tolist(), strict=True)]
        if tiles:
            yield self._label(plane.table, change.versions[0]), tiles

    def _of_values(self, plane: Plane, change: _RowChange) -> Iterator[Labelled]:
        table, shape = plane.table, family_of(plane.form)[1].shape
        for key, tiles in (select_sends if shape.order is None else top_k_sends)(shape, table, plane.channel, change):
            yield self._label(table, change.version(key)), tiles

    def _label(self, table: Table, version: int) -> str:
        """What a row says, without bytes that nobody can read."""
        texts = zip(table.columns, self._store.texts_of(version), strict=True)
        shown = [(column.name, text.decode()) for column, text in texts if not column.is_internal]
        label = ", ".join(f"{name} {text.strip(_QUOTE)}" for name, text in shown if text != "null")
        return label if len(label) <= _LABEL_MAX else label[: _LABEL_MAX - 2] + " .."


def collect(catalog: Catalog, subscriptions: Path, changes: Path, seq: int, id: str | None) -> Scene:
    """What the change with this seq sends: in the plane of the subscription named, or where it sends most."""
    door = Door(catalog)
    with open_input(subscriptions) as source, progress() as display:
        task = display.add_task("subscriptions", total=None)
        door.read(read_lines(source), lambda n: display.update(task, completed=n))
    planes = _Planes(catalog, [batch.take(batch.after < seq) for batch in door.take()])
    asked = None if id is None else planes.find(id, seq)
    if not any(planes.ends.values()):
        raise UsageError(f"none of the subscriptions can be painted: {_PAINTED}")
    watch = _run(catalog, planes, changes, seq)
    if not watch.is_there:
        raise UsageError(f"there is no change with seq {seq} in {changes}")
    if asked is not None:
        plane, marked = asked
    elif watch.sent:
        sizes = {plane: sum(len(tiles) for _, tiles in sent) for plane, sent in watch.sent.items()}
        plane, marked = max(sizes, key=lambda plane: (sizes[plane], len(planes.ends[plane]))), None
    else:
        raise UsageError(
            f"the change with seq {seq} reaches no subscription that can be painted: {_PAINTED}. Name a subscription (--id) "
            "to see its plane all the same"
        )
    dots = np.array([*planes.ends[plane].values()], np.int64).reshape(-1, 2)
    where = " ".join(map(str, plane.channel))
    title = f"Change {seq}: {family_of(plane.form)[1].shape.describe()}" + (f" ({where})" if where else "")
    messages = [_sent(label, tiles, dots) for label, tiles in watch.sent.get(plane, [])]
    return Scene(title, plane.column, messages, dots, marked)


def _run(catalog: Catalog, planes: _Planes, changes: Path, seq: int) -> _Watch:
    """Feeds batches until one has gone beyond the seq."""
    number = re.compile(rb'"seq"\s*:\s*%d\b' % seq)
    replica = Replica(catalog, by_commit=False)
    watch = _Watch(replica, planes, seq)
    replica.observe(watch)
    with open_input(changes) as source, progress() as display:
        task = display.add_task("bytes of changes", total=changes.stat().st_size or None)
        lines = read_lines(source)
        while replica.passed < seq and (chunk := list(islice(lines, _BATCH))):
            replica.apply(chunk, 0)
            # A record that was refused, or changes nothing, is there too.
            watch.is_there |= any(map(number.search, chunk))
            display.update(task, completed=source.tell() if source.seekable() else None)
    return watch


def _sent(label: str, tiles: Sequence[Tile], points: I64) -> Sent:
    lo, hi = (np.array(ends, np.int64) for ends in zip(*tiles, strict=True))
    inside = np.zeros(len(points), np.bool_)
    for low, high in zip(lo, hi, strict=True):
        inside |= ((points >= low) & (points <= high)).all(axis=1)
    return Sent(label, lo, hi, int(inside.sum()))
