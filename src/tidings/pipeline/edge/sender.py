"""What senders have in common: rows and subscriptions at the centre, and the place of each subscription."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tidings.kernels.arrays import grow
from tidings.kernels.events import Told
from tidings.kernels.packs import list_entered
from tidings.kernels.rows import I64
from tidings.model.catalog import Catalog
from tidings.model.points import Event, PointBatch
from tidings.pipeline.edge.holders import Entered, Holders
from tidings.pipeline.edge.pack import Pack
from tidings.pipeline.replica.batch import Applied, Batch, Origin
from tidings.pipeline.replica.replica import Replica


class Sender(ABC):
    """Decides what is accepted, when subscriptions begin and end, and what each place is sent.

    Rows reach a place when they enter an answer of one of its subscriptions; how that is found out is up to subclasses.
    """

    def __init__(
        self,
        catalog: Catalog,
        places: int,
        place_of: Callable[[str], int],
        *,
        by_commit: bool = True,
        is_stream: bool = False,
        replica: Replica | None = None,
    ) -> None:
        """place_of: id of a subscription -> its place. is_stream: as in `RowStore`; then there may be a `dump`.

        replica: whoever feeds it calls `packs` after each micro-batch; None: one that is fed with lines, by `feed`.
        """
        self.replica = replica or Replica(catalog, keeps_points=is_stream, is_stream=is_stream, by_commit=by_commit)
        self.replica.observe(self)
        self.holders = Holders(places)
        self._place_of = place_of
        self._place = np.zeros(0, np.int64)
        """[slots]."""
        self._points: list[list[PointBatch]] = [[] for _ in range(places)]
        self._packs: dict[int, Pack] = {}

    def feed(
        self, lines: Sequence[bytes], origin: Origin, points: Iterable[PointBatch] = (), *, is_end: bool = False
    ) -> tuple[dict[int, Pack], Applied]:
        """Handles a micro-batch. Returns what each place is sent; places that are sent nothing are left out."""
        applied = self.replica.apply(lines, origin, points, is_end=is_end)
        return self.packs(), applied

    def packs(self) -> dict[int, Pack]:
        """What each place is sent of the last micro-batch."""
        packs, self._packs = self._packs, {}
        return packs

    def slots_at(self, place: int) -> I64:
        """The subscriptions of a place, by slot."""
        slots = np.array(sorted(self.replica.subscriptions.slots.values()), np.int64)
        own: I64 = slots[self._place[slots] == place]
        return own

    def base(self, place: int) -> bytes:
        """All that a place needs to hold, as a dump for `PartialReplica.load`. From now on it counts as holding just that."""
        slots = self.slots_at(place)
        _, told = self.replica.first_answers(slots)
        entered = [version for _, version, _ in self._evaluated(told)]
        versions = np.unique(np.concatenate([np.empty(0, np.int64), *entered]))
        self.holders.assign(place, self.replica.store.all_current(), versions)
        return self.replica.dump_part(slots, versions)

    def dump(self) -> Any:
        """State for `load`, as something `tidings.model.blob.pack` takes."""
        may, sure = self.holders.dump(self.replica.store.all_current())
        return {"replica": self.replica.dump(), "may": may, "sure": sure}

    def load(self, state: Any, *, knows_holders: bool) -> None:
        """knows_holders: whether the places are those of the dump; if not, each needs a new base."""
        versions = self.replica.load(state["replica"])
        if knows_holders:
            self.holders.load(versions, state["may"], state["sure"])
        known = self.replica.subscriptions
        grow(self._place, len(known.ids))
        for id, slot in known.slots.items():
            self._place[slot] = self._place_of(id)

    def traffic(self) -> tuple[Counter[str], Counter[str]]:
        """(messages, bytes of the values of their rows) so far, by family."""
        return self.replica.messages(), self.replica.message_bytes()

    def evaluates(self, form_key: str) -> bool:
        """Whether the replica evaluates subscriptions of a form."""
        return True

    def moved(self, points: PointBatch, slots: np.ndarray) -> None:
        created = np.flatnonzero((points.event == np.int8(Event.CREATE)) & points.home)
        if len(created):
            grow(self._place, int(slots.max()) + 1)
            ids = points.id.to_pylist() if len(created) == len(points) else [points.id[at].as_py() for at in created]
            self._place[slots[created]] = [self._place_of(id) for id in ids]
        places = self._place[slots]
        for place in np.unique(places).tolist():
            self._points[place].append(points.take(places == place))

    def told(self, batch: Batch, told: Sequence[tuple[str, Told]]) -> None:
        entered = self._entered(batch, told)
        self._packs = self.holders.packs(self.replica.store, batch, entered, self._points, self.replica.passed)
        for own in self._points:
            own.clear()

    @abstractmethod
    def _entered(self, batch: Batch, told: Sequence[tuple[str, Told]]) -> list[Entered]:
        """The rows that enter answers. told: of the forms that are evaluated."""

    def _evaluated(self, told: Sequence[tuple[str, Told]]) -> list[Entered]:
        """Those that enter answers that the replica evaluates."""
        words = np.int64(self.holders.words)
        return [
            list_entered(one.who, one.size, one.tails, one.changes, one.sources, self._place, words) for _, one in told
        ]
