"""Ways to turn changes into top-k messages; all give the same notifications.

`dense` sends a row to the tiles of the plane where it matters, whoever is there. `sparse` knows the points, and sends only
to tiles with somebody in them, fewer and smaller ones. `dense:EPS` and `sparse:EPS` make do with about 1 / EPS tiles where
there would be k, and reach some who have no use for the row. `unicast` finds the points in the dense tiles and sends to
each; `relax` sends a row to everyone whose range holds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tidings.families.listeners import Listeners
from tidings.families.optional import Remembering
from tidings.families.protocols import Created, Memory, Rows, Server
from tidings.families.targets import IndexedTargets
from tidings.families.topk.index import Ranked, Step
from tidings.families.topk.reformulate import messages_of, quadrants_of, tiles_of
from tidings.families.topk.subscription import DIMS, Space
from tidings.kernels.crowds import Crowds
from tidings.kernels.rankings import Rankings, Sends
from tidings.model.change import TableChanges
from tidings.model.channel import channel_keys
from tidings.model.message import MessageBatch
from tidings.model.points import PointBatch
from tidings.model.region import Regions


class DenseServer(Server, Remembering):
    """At most k tiles for a row that rises, and some for each row that takes the place of one that falls."""

    memory = Memory.CHANGES
    at_a_time = 8_192
    """Changes; their messages are several times as many, and larger arrays than those are slow to get memory for."""

    def __init__(self, space: Space, ranked: Ranked | None = None) -> None:
        self.space = space
        self.ranked = Ranked(space) if ranked is None else ranked
        self._listeners = Listeners()

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        for start in range(0, len(changes), self.at_a_time):
            part = changes.slice(start, min(len(changes), start + self.at_a_time))
            step = self.ranked.change(part)
            if len(step.change) == 0:
                continue
            messages = messages_of(self.space, self.ranked, part.seq, step, self._regions(step))
            heard = self._listeners.hear(messages.channel, len(messages))
            if heard.any():
                yield messages.take(np.flatnonzero(heard))

    def _regions(self, step: Step) -> Regions:
        return tiles_of(step)

    def create(self, points: PointBatch, tables: dict[str, Rows], *, wants_snapshots: bool) -> Created:
        if not self.ranked.is_filled:
            self.ranked.fill(tables[self.space.table.name])
        self._listeners.add(points)
        return Created(points, self.ranked.first_rows(points) if wants_snapshots else [])

    def drop(self, points: PointBatch) -> None:
        self._listeners.add(points, -1)

    def dump(self) -> Any:
        return {"ranked": self.ranked.dump(), "listeners": self._listeners.dump(self.space.channel_types)}

    def load(self, state: Any) -> None:
        self.ranked.load(state["ranked"])
        self._listeners.load(state["listeners"])


class RoundedServer(DenseServer):
    """No more tiles than there are groups, where there would be k: some are larger than they need to be."""

    def __init__(self, space: Space, groups: int) -> None:
        super().__init__(space, Ranked(space, Rankings(space.k, groups)))


class SparseServer(DenseServer):
    """Tiles drawn around the points in them; none where nobody is."""

    def __init__(self, space: Space, groups: int | None = None) -> None:
        self._among = _Among(space.k, groups)
        super().__init__(space, Ranked(space, self._among))

    def create(self, points: PointBatch, tables: dict[str, Rows], *, wants_snapshots: bool) -> Created:
        created = super().create(points, tables, wants_snapshots=wants_snapshots)
        sets, coords = self.ranked.placed(points)
        self._among.points.add(sets, coords[:, 0], coords[:, 1])
        return created

    def drop(self, points: PointBatch) -> None:
        super().drop(points)
        sets, coords = self.ranked.placed(points)
        self._among.points.remove(sets, coords[:, 0], coords[:, 1])

    def dump(self) -> Any:
        points = self._among.points.dump()
        channel = self.ranked.channels(points.pop("set"))
        return {"dense": super().dump(), "channel": list(channel), "points": points}

    def load(self, state: Any) -> None:
        super().load(state["dense"])
        count = len(state["points"]["lo"])
        sets = self.ranked.sets_of(channel_keys(state["channel"], count))
        self._among.points.load({"set": sets, **state["points"]})


class _Among(Rankings):
    """Rankings that tell only the points there are."""

    def __init__(self, k: int, groups: int | None) -> None:
        super().__init__(k, groups)
        self.points = Crowds()

    def change(
        self,
        sets: ArrayLike,
        entries: ArrayLike,
        xs: ArrayLike,
        ys: ArrayLike,
        ties: ArrayLike,
        is_present: ArrayLike,
        among: Crowds | None = None,
    ) -> Sends:
        return super().change(sets, entries, xs, ys, ties, is_present, self.points)


class UnicastServer(DenseServer):
    """One message per send and affected subscription."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self._targets = IndexedTargets(DIMS)

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        for messages in super().change(changes):
            addressed = self._targets.address(messages)
            if addressed is not None:
                yield addressed

    def create(self, points: PointBatch, tables: dict[str, Rows], *, wants_snapshots: bool) -> Created:
        self._targets.add(points)
        return super().create(points, tables, wants_snapshots=wants_snapshots)

    def drop(self, points: PointBatch) -> None:
        super().drop(points)
        self._targets.remove(points)

    def dump(self) -> Any:
        return {"dense": super().dump(), "targets": self._targets.dump(self.space.channel_types)}

    def load(self, state: Any) -> None:
        super().load(state["dense"])
        self._targets.load(state["targets"])


class RelaxServer(DenseServer):
    """Every row that is sent goes to all whose ranges hold it; views let go what they have no use for."""

    def _regions(self, step: Step) -> Regions:
        return quadrants_of(self.space, self.ranked, step)
