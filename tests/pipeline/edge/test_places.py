"""Subscriptions at gateways, each over the rows it was sent: the lines are those of one engine with all rows.

Gateways and senders crash at random moments; what a gateway repeats is thrown away.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.engine import Engine
from tidings.model.notification import NotificationBatch
from tidings.pipeline.door import Door
from tidings.pipeline.edge.entered import EnteredSender
from tidings.pipeline.edge.pack import Pack, place_of
from tidings.pipeline.edge.partial import PartialReplica
from tidings.pipeline.edge.regions import RegionSender
from tidings.testing import FAMILY_WORKLOADS, Workload, with_transactions
from tidings.testing.workload import chunks

NET_SHARE = 3
"""One of so many subscriptions wants the net effect of micro-batches."""


class Places:
    """A sender and gateways that can be killed at any moment between two micro-batches."""

    def __init__(self, workload: Workload, places: int, make: type[EnteredSender | RegionSender]) -> None:
        self.make = make
        self.catalog = workload.catalog
        self.door = Door(self.catalog)
        self.count = places
        self.sender = self.new_sender()
        self.gateways = [self.new_gateway() for _ in range(places)]
        self.bases: list[bytes | None] = [None] * places
        self.packs: list[list[Pack]] = [[] for _ in range(places)]
        self.position = 0

    def new_sender(self) -> EnteredSender | RegionSender:
        return self.make(self.catalog, self.count, lambda id: place_of(id, self.count))

    def new_gateway(self) -> PartialReplica:
        return PartialReplica(self.catalog, keeps_points=True)

    def feed(self, lines: list[bytes], *, is_end: bool = False) -> list[str]:
        packs, _ = self.sender.feed(lines, self.position, self.door.take(), is_end=is_end)
        self.position += len(lines)
        told = []
        for place, pack in packs.items():
            self.packs[place].append(pack)
            told.append(self.gateways[place].take(pack))
        return NotificationBatch.merge(told).lines()

    def restart(self, place: int) -> None:
        """A gateway dies, and comes back with its base and the packs behind it."""
        gateway = self.gateways[place] = self.new_gateway()
        gateway.forgives = any(other.forgives for other in self.gateways)
        base = self.bases[place]
        if base is not None:
            gateway.load(base)
        for pack in self.packs[place]:
            gateway.take(pack, is_told=False)

    def fold(self, place: int) -> None:
        """A gateway writes a base, which replaces what it was sent before."""
        self.bases[place], self.packs[place] = self.gateways[place].dump(), []

    def forget(self) -> None:
        """The sender loses what it knows of who holds what."""
        store = self.sender.replica.store
        for number in range(len(self.catalog.tables)):
            self.sender.holders.forget(store.current(number))
        for gateway in self.gateways:
            gateway.forgives = True


def some_net(workload: Workload) -> Workload:
    """The workload, some of whose subscriptions want the net effect of micro-batches."""
    records = [
        {**record, "option": "net"} if "sql" in record and number % NET_SHARE == 0 else record
        for number, record in enumerate(workload.subscriptions)
    ]
    return Workload(workload.catalog_sql, records, workload.changes)


def workloads(family: str) -> Any:
    plain = FAMILY_WORKLOADS[family]
    return st.one_of(plain, with_transactions(plain), with_transactions(plain).map(some_net))


@pytest.mark.parametrize("make", [EnteredSender, RegionSender])
@pytest.mark.parametrize("family", FAMILY_WORKLOADS)
def test_lines_are_those_of_one_engine(family: str, make: type[EnteredSender | RegionSender]) -> None:
    @settings(max_examples=40)
    @given(
        workloads(family),
        st.sampled_from([2, 3, 16, 70]),
        st.lists(st.integers(1, 9), min_size=1, max_size=3),
        st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["restart", "fold", "forget"])), max_size=6),
    )
    def check(workload: Workload, places: int, sizes: list[int], faults: list[tuple[int, str]]) -> None:
        whole, network = Engine(workload.catalog), Places(workload, places, make)
        assert whole.door.read(workload.subscription_lines()) == network.door.read(workload.subscription_lines())
        for number, batch in enumerate([*chunks(workload.change_lines(), sizes), None]):
            for moment, fault in faults:
                if moment % 13 != number:
                    continue
                if fault == "forget":
                    network.forget()
                else:
                    getattr(network, fault)(moment % places)
            if batch is None:
                assert network.feed([], is_end=True) == whole.finish().notifications.lines()
            else:
                assert network.feed(batch) == whole.feed(batch).notifications.lines()

    check()
