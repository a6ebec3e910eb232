"""A small family for tests: `SELECT .. WHERE column = x` partitioned by that column's values, with rows of its own.

It is as plain as a family can be that is spread by value: its server remembers rows, answers snapshots from them, and
sends every change to the channel of the old row and of the new one.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidings.families.optional import Remembering, RememberingViews
from tidings.families.protocols import Created, Explanation, Family, Memory, Notifications, Server
from tidings.families.select.reference import SelectReference
from tidings.families.select.subscription import place, space_of, spec_of
from tidings.families.spec import ByValues
from tidings.model.channel import ChannelKey, channel_column, channel_columns, channel_type, group_channels
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.notification import change_tail, delete_change, insert_change
from tidings.model.points import Placement
from tidings.model.region import Regions
from tidings.model.render import render_rows

CATALOG = """
CREATE TABLE mirrored (id INT PRIMARY KEY, kind TEXT, n INT);
CREATE TABLE items (id INT PRIMARY KEY, kind TEXT, n INT);
"""
QUERIES = [
    "SELECT * FROM mirrored WHERE kind = {}",
    "SELECT n FROM mirrored WHERE kind = {}",
    "SELECT * FROM items WHERE kind = {}",
]
OLD, NEW = 1, 2


class MirrorServer(Server, Remembering):
    memory = Memory.CHANGES

    def __init__(self, space):
        self.space = space
        self.types = [channel_type(column.type) for column in space.equalities]
        self.rows = None
        """Taken from the shard when the first subscription comes, then kept by hand: state to be restored from logs."""

    def change(self, changes):
        sides = []
        for at, seq in enumerate(changes.seq.tolist()):
            for side, present, rows in ((OLD, changes.had, changes.before), (NEW, changes.has, changes.after)):
                if not present[at]:
                    continue
                row = rows.slice(at, 1)
                (key,) = row.column("id").to_pylist()
                if side == OLD:
                    del self.rows[key]
                else:
                    self.rows[key] = row
                if self._channel(row) is not None:
                    sides.append((seq, side, row))
        if not sides:
            return []
        count = len(sides)
        none = np.empty((count, 0), np.int64)
        regions = Regions(none, none, np.array([side for _, side, _ in sides], np.uint8), np.arange(count + 1))
        channel = channel_columns(self.types, [self._channel(row) for _, _, row in sides])
        payload = pa.Table.from_batches([row for _, _, row in sides]).combine_chunks().to_batches()[0]
        seqs = np.array([seq for seq, _, _ in sides])
        return [MessageBatch(self.space.key, seqs, tuple(channel), regions, payload)]

    def create(self, points, tables, *, wants_snapshots):
        if self.rows is None:
            rows = tables["mirrored"].rows()
            self.rows = {row["id"]: rows.slice(i, 1) for i, row in enumerate(rows.to_pylist())}
        group, keys = group_channels(points.channel, len(points))
        wanted = [keys[at] for at in group.tolist()]
        found = [
            (seq, id, row)
            for seq, id, key in zip(points.after.tolist(), points.id.to_pylist(), wanted, strict=True)
            for row in self.rows.values()
            if key != (None,) and self._channel(row) == key
        ]
        if not found:
            return Created(points)
        payload = pa.Table.from_batches([row for _, _, row in found]).combine_chunks().to_batches()[0]
        seqs = np.array([seq for seq, _, _ in found])
        return Created(points, [SnapshotBatch(self.space.key, seqs, pa.array([id for _, id, _ in found]), payload)])

    def drop(self, points):
        pass

    def dump(self):
        return list(self.rows.values())

    def load(self, state):
        self.rows = {row.column("id")[0].as_py(): row for row in state}

    def _channel(self, row) -> ChannelKey | None:
        (column,) = self.space.equalities
        components, valid = channel_column(column.type, row.column(column.name))
        return (components[0].as_py(),) if valid[0] else None


class MirrorViews(RememberingViews):
    """Views that hold their rows as they were told, and look there for what a row was before."""

    def __init__(self, space):
        self.space = space
        self.held = {}

    def create(self, slots, points):
        self.held.update({slot: {} for slot in slots.tolist()})

    def drop(self, slots):
        for slot in slots.tolist():
            del self.held[slot]

    def dump(self, slots):
        return [[list(entry) for entry in self.held[slot].items()] for slot in slots.tolist()]

    def load(self, slots, state):
        self.held.update({slot: dict(map(tuple, rows)) for slot, rows in zip(slots.tolist(), state, strict=True)})

    def snapshots(self, first):
        texts = [] if first.rows is None else self._render(first.rows)
        keys = [] if first.rows is None else first.rows.column("id").to_pylist()
        for slot, start, stop in zip(first.slot.tolist(), first.starts[:-1], first.starts[1:], strict=True):
            self.held[slot] = dict(zip(keys[start:stop], texts[start:stop], strict=True))
        return first.tails(texts)

    def tell(self, messages, pairs):
        """A row that stays on its channel comes as its old and its new self; both make one notification."""
        rendered = self._render(messages.payload)
        keys = messages.payload.column("id").to_pylist()
        told = {}
        for message, slot, tag in zip(pairs.message.tolist(), pairs.slot.tolist(), pairs.tags.tolist(), strict=True):
            sides = told.setdefault((int(messages.seq[message]), slot), {})
            if tag == OLD:
                sides[OLD] = self.held[slot].pop(keys[message])
            else:
                sides[NEW] = self.held[slot][keys[message]] = rendered[message]
        entries = [(seq, slot, sides) for (seq, slot), sides in told.items() if sides.get(OLD) != sides.get(NEW)]
        tails = []
        for seq, _, sides in entries:
            parts = [delete_change(sides[OLD])] if OLD in sides else []
            tails.append(change_tail(seq, ", ".join(parts + ([insert_change(sides[NEW])] if NEW in sides else []))))
        seqs, slots = (np.array([entry[i] for entry in entries], np.int64) for i in (0, 1))
        return Notifications(seqs, slots, np.arange(len(entries)), tails)

    def _render(self, rows):
        return render_rows(self.space.projection, [rows.column(name) for name in self.space.projection], rows.num_rows)


class MirrorExplanation(Explanation):
    summary = "rows of the table `mirrored` on one channel"

    def lines(self, form, placement, catalog):
        return [("a change costs", "a message for each of its rows")]


class MirrorFamily(Family):
    name = "mirror"
    strategies = ("plain",)
    reference = SelectReference()
    explanation = MirrorExplanation()

    def claims(self, shape, catalog):
        return shape.tables == ("mirrored",) and shape.order is None

    def place(self, shape, constants, catalog):
        placement = place(shape, constants, catalog)
        return Placement(placement.form.replace('"select"', '"mirror"', 1), placement.channels, placement.coords)

    def spec(self, form, catalog):
        """That of a selection, but for the sharding."""
        columns = tuple(ref.column for ref in form.shape.equalities)
        return replace(spec_of(form, catalog), sharding=ByValues((("mirrored", columns),)))

    def own_server(self, form, catalog, strategy):
        return MirrorServer(space_of(form, catalog))

    def views(self, form, catalog):
        return MirrorViews(space_of(form, catalog))
