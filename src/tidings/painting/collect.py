"""Replays changes up to one of them, and keeps what it sends and where the subscriptions are at that moment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.families.registry import family_of, gathered, needs_shared_rows, project_all, spec_of
from tidings.files import open_input, read_lines
from tidings.model.catalog import Catalog, Column
from tidings.model.channel import ChannelKey, channel_columns, channel_keys, group_channels
from tidings.model.codes import Int64Array, code_of
from tidings.model.errors import UsageError
from tidings.model.message import MessageBatch
from tidings.model.points import Event, PointBatch
from tidings.model.region import Regions
from tidings.model.render import render_rows
from tidings.model.types import ColumnType
from tidings.painting.scene import Scene, Sent
from tidings.pipeline.door import Door
from tidings.pipeline.edge.regions import RegionSender
from tidings.terminal import progress

_BATCH = 10_000
_LABEL_MAX = 48
_PAINTED = (
    "a picture shows queries with one range of values, as WHERE a BETWEEN x AND y, with or without equalities and "
    "ORDER BY .. LIMIT"
)

Plane = tuple[str, ChannelKey]
"""A form, and one of its channels."""


@dataclass
class _Watch:
    """Keeps the points that come and go up to a seq, and the messages of that seq."""

    seq: int
    catalog: Catalog
    points: list[PointBatch]
    heard: dict[str, set[str]]
    """Form of points -> forms of the messages that these hear."""
    unsent: set[str]
    """Subscriptions that no message is sent to."""
    messages: list[MessageBatch] = field(default_factory=list)
    is_over: bool = False

    def see(self, batch: MessageBatch) -> None:
        now = batch.take(np.flatnonzero(batch.seq == self.seq))
        for own in project_all(now, self.catalog):
            self.messages.extend([own] if spec_of(own.form, self.catalog).space.dims == 2 else self._planes(own))

    def _planes(self, messages: MessageBatch) -> Iterator[MessageBatch]:
        """Messages to all of a table's forms as they look in the plane of each channel of those that have one."""
        axes = {axis: i for i, axis in enumerate(spec_of(messages.form, self.catalog).space.axes)}
        for batch in self.points:
            space = spec_of(batch.form, self.catalog).space
            if messages.form not in self.heard[batch.form] or space.dims != 2:
                continue
            _, keys = group_channels(batch.channel, len(batch))
            for key in keys:
                regions = messages.regions
                inside = np.ones(len(regions.lo), np.bool_)
                for (name, type), component in zip(space.channel, key, strict=True):
                    code: Any = code_of(ColumnType.TEXT, component) if pa.types.is_string(type) else component
                    for axis in (axes[f"lo {name}"], axes[f"hi {name}"]):
                        inside &= (regions.lo[:, axis] <= code) & (code <= regions.hi[:, axis])
                at = [axes[axis] for axis in space.axes]
                owner = np.repeat(np.arange(len(messages)), np.diff(regions.starts))[inside]
                starts = np.searchsorted(owner, np.arange(len(messages) + 1)).astype(np.int64)
                cut = Regions(regions.lo[inside][:, at], regions.hi[inside][:, at], regions.tags[inside], starts)
                channel = channel_columns(space.channel_types, [key] * len(messages))
                plane = MessageBatch(batch.form, messages.seq, tuple(channel), cut, messages.payload)
                yield plane.take(np.flatnonzero(np.diff(starts)))

    def sent(self) -> dict[Plane, list[tuple[MessageBatch, int]]]:
        """Messages by plane, in the order of sending, each as (batch, place)."""
        found: dict[Plane, list[tuple[MessageBatch, int]]] = {}
        for batch in self.messages:
            for place, channel in enumerate(channel_keys(batch.channel, len(batch))):
                found.setdefault((batch.form, channel), []).append((batch, place))
        return found

    def placed(self, form: str) -> dict[str, tuple[list[ChannelKey], tuple[int, ...]]]:
        """Channels and coordinates of the subscriptions of a form that exist at the seq."""
        alive: dict[str, tuple[list[ChannelKey], tuple[int, ...]]] = {}
        for batch in self.points:
            if batch.form != form:
                continue
            keys, coords = channel_keys(batch.channel, len(batch)), batch.coords.tolist()
            for id, event, key, at, is_home in zip(
                batch.id.to_pylist(), batch.event.tolist(), keys, coords, batch.home.tolist(), strict=True
            ):
                if event == Event.DROP:
                    alive.pop(id, None)
                elif is_home:
                    alive[id] = ([key], tuple(at))
                else:
                    alive[id][0].append(key)
        return alive


def collect(
    catalog: Catalog, subscriptions: Path, changes: Path, seq: int, id: str | None, strategies: Mapping[str, str]
) -> Scene:
    """What the change with this seq sends: in the plane of the subscription named, or where it sends most."""
    door = Door(catalog)
    with open_input(subscriptions) as source, progress() as display:
        task = display.add_task("subscriptions", total=None)
        door.read(read_lines(source), lambda n: display.update(task, completed=n))
    taken = door.take()
    events = [batch for batch in taken if not needs_shared_rows(batch.form)]
    unsent = {each for batch in taken if needs_shared_rows(batch.form) for each in batch.id.to_pylist()}
    points: list[PointBatch] = []
    heard: dict[str, set[str]] = {}
    for batch in events:
        found = gathered([batch], catalog)
        # Points of a form without axes are drawn where messages find them.
        own = [batch] if spec_of(batch.form, catalog).space.dims else found
        points += own
        for each in own:
            heard.setdefault(each.form, set()).update({each.form} if own is found else {other.form for other in found})
    watch = _Watch(seq, catalog, [batch.take(batch.after < seq) for batch in points], heard, unsent)
    asked = None if id is None else _plane_of(catalog, watch, id)
    if not any(_column(catalog, batch.form) is not None and len(batch) for batch in watch.points):
        raise UsageError(f"none of the subscriptions can be painted: {_PAINTED}")
    sender = RegionSender(catalog, 1, lambda _: 0, strategies, by_commit=False)
    sender.on_messages = watch.see
    is_there = _run(sender, events, changes, seq)
    if not is_there:
        raise UsageError(f"there is no change with seq {seq} in {changes}")
    sent = {plane: found for plane, found in watch.sent().items() if _column(catalog, plane[0]) is not None}
    if asked is not None:
        plane, marked = asked
    elif sent:
        sizes = {plane: (sum(_tiles(*one) for one in sent[plane]), len(watch.placed(plane[0]))) for plane in sent}
        plane, marked = max(sizes, key=sizes.__getitem__), None
    else:
        raise UsageError(
            f"the change with seq {seq} reaches no subscription that can be painted: {_PAINTED}. Name a subscription (--id) "
            "to see its plane all the same"
        )
    form, channel = plane
    column = _column(catalog, form)
    assert column is not None
    placed = watch.placed(form)
    dots = np.array([at for keys, at in placed.values() if channel in keys], np.int64).reshape(-1, 2)
    messages = [_sent(batch, place, dots) for batch, place in sent.get(plane, [])]
    family = family_of(form)[1]
    where = " ".join(str(component) for component in channel)
    title = f"Change {seq}: {family.shape.describe()}" + (f" ({where})" if where else "")
    return Scene(title, column, messages, dots, marked)


def _run(sender: RegionSender, points: list[PointBatch], changes: Path, seq: int) -> bool:
    """Feeds batches until one has gone beyond the seq. Returns whether a line has it."""
    number = re.compile(rb'"seq"\s*:\s*%d\b' % seq)
    is_there = False
    with open_input(changes) as source, progress() as display:
        task = display.add_task("bytes of changes", total=changes.stat().st_size or None)
        lines = read_lines(source)
        while sender.replica.passed < seq and (chunk := list(islice(lines, _BATCH))):
            sender.feed(chunk, 0, points)
            points = []
            is_there = is_there or any(map(number.search, chunk))
            display.update(task, completed=source.tell() if source.seekable() else None)
    return is_there


def _plane_of(catalog: Catalog, watch: _Watch, id: str) -> tuple[Plane, tuple[int, int]]:
    for form in dict.fromkeys(batch.form for batch in watch.points):
        found = watch.placed(form).get(id)
        if found is None:
            continue
        keys, at = found
        if _column(catalog, form) is None or keys[0] is None:
            raise UsageError(f"subscription {id!r} is not a point of a plane: {_PAINTED}")
        return (form, keys[0]), (at[0], at[1])
    if id in watch.unsent:
        raise UsageError(f"no message is sent to subscription {id!r}: its query is evaluated over shared rows only")
    raise UsageError(f"there is no subscription {id!r} before seq {watch.seq}")


def _column(catalog: Catalog, form_key: str) -> Column | None:
    """The column whose ranges make the plane of a form; None if it has none."""
    form = family_of(form_key)[1]
    ranges = form.shape.ranges
    if len(ranges) != 1 or form.shape.movement is not None or spec_of(form_key, catalog).space.dims != 2:
        return None
    return catalog.table(form.shape.tables[0]).axis(ranges[0].column)


def _tiles(batch: MessageBatch, place: int) -> int:
    return int(batch.regions.starts[place + 1] - batch.regions.starts[place])


def _sent(batch: MessageBatch, place: int, points: Int64Array) -> Sent:
    boxes = slice(int(batch.regions.starts[place]), int(batch.regions.starts[place + 1]))
    lo, hi = batch.regions.lo[boxes], batch.regions.hi[boxes]
    inside = np.zeros(len(points), np.bool_)
    for low, high in zip(lo, hi, strict=True):
        inside |= ((points >= low) & (points <= high)).all(axis=1)
    label = ", ".join(f"{name} {value}" for name, value in _shown(batch.payload.slice(place, 1)).items())
    return Sent(label if len(label) <= _LABEL_MAX else label[: _LABEL_MAX - 2] + " ..", lo, hi, int(inside.sum()))


def _shown(payload: pa.RecordBatch) -> dict[str, Any]:
    """What a message says, without bytes that nobody can read, and without what was before where there is something now."""
    names = [name for name, type in zip(payload.schema.names, payload.schema.types, strict=True) if type != pa.binary()]
    values = json.loads(render_rows(names, [payload.column(name) for name in names], 1)[0])
    past = {f"old {name}" for name, value in values.items() if value is not None}
    return {name: value for name, value in values.items() if value is not None and name not in past}
