"""Places: lines do not depend on how subscriptions are spread over gateways that hold only the rows they were sent, whichever
sender finds these rows, and wherever senders and gateways are restarted.
"""

from __future__ import annotations

from tidings.families.registry import sender_of
from tidings.model.notification import NotificationBatch
from tidings.pipeline.door import Door
from tidings.pipeline.edge.entered import EnteredSender
from tidings.pipeline.edge.pack import Pack, place_of
from tidings.pipeline.edge.partial import PartialReplica
from tidings.pipeline.edge.sender import Sender
from tidings.testing.checks.case import Case
from tidings.testing.workload import Workload, chunks

_COUNTS = (2, 3, 16, 70)
_FAULTS = 0.15
"""How often something fails between two micro-batches."""


class Places:
    """A sender and gateways, any of which may die between two micro-batches. What a gateway repeats is thrown away."""

    def __init__(self, workload: Workload, count: int, strategies: dict[str, str] | None = None) -> None:
        """strategies: None for the sender `entered`; else those by which rows find gateways."""
        self.catalog, self.count = workload.catalog, count
        self.door = Door(self.catalog)
        self.door.read(workload.subscription_lines())
        self.sender = self._new_sender(strategies)
        self.gateways = [self._new_gateway() for _ in range(count)]
        self._bases: list[bytes | None] = [None] * count
        self._packs: list[list[Pack]] = [[] for _ in range(count)]
        """[places]: what each was sent since its base was written."""
        self._position = 0

    def _new_sender(self, strategies: dict[str, str] | None) -> Sender:
        def place(id: str) -> int:
            return place_of(id, self.count)

        if strategies is None:
            return EnteredSender(self.catalog, self.count, place)
        make = sender_of(strategies)
        if make is not None:
            made: Sender = make(self.catalog, self.count, place, strategies)
            return made
        # It has kernels of its own, which take seconds to compile.
        from tidings.pipeline.edge.regions import RegionSender

        return RegionSender(self.catalog, self.count, place)

    def _new_gateway(self) -> PartialReplica:
        return PartialReplica(self.catalog, keeps_points=True)

    def feed(self, lines: list[bytes], *, is_end: bool = False) -> list[str]:
        packs, _ = self.sender.feed(lines, self._position, self.door.take(), is_end=is_end)
        self._position += len(lines)
        told = []
        for place, pack in packs.items():
            self._packs[place].append(pack)
            told.append(self.gateways[place].take(pack))
        return NotificationBatch.merge(told).lines()

    def restart(self, place: int) -> None:
        """A gateway dies, and comes back with its base and the packs behind it."""
        forgives = self.gateways[place].forgives
        gateway = self.gateways[place] = self._new_gateway()
        gateway.forgives = forgives
        base = self._bases[place]
        if base is not None:
            gateway.load(base)
        for pack in self._packs[place]:
            gateway.take(pack, is_told=False)

    def fold(self, place: int) -> None:
        """A gateway writes a base, which replaces what it was sent before."""
        self._bases[place], self._packs[place] = self.gateways[place].dump(), []

    def forget(self) -> None:
        """The sender loses what it knows of who holds what."""
        store = self.sender.replica.store
        for number in range(len(self.catalog.tables)):
            self.sender.holders.forget(store.current(number))
        for gateway in self.gateways:
            gateway.forgives = True


def check_places(case: Case) -> None:
    rng, sizes = case.rng, case.sizes()
    count = rng.choice(_COUNTS)
    strategies = rng.choice([None, *map(case.strategy, case.sending_strategies())])
    places = Places(case.workload, count, strategies)
    lines: list[str] = []
    for chunk in chunks(case.workload.change_lines(), sizes):
        lines += places.feed(chunk)
        if rng.random() < _FAULTS:
            places.forget()
        for place in range(min(count, 3)):
            if rng.random() < _FAULTS:
                places.restart(place)
            if rng.random() < _FAULTS:
                places.fold(place)
    lines += places.feed([], is_end=True)
    how = "entered" if strategies is None else f"regions, {strategies}"
    assert lines == case.lines({}, sizes), f"lines change with {count} places and the sender {how}"
