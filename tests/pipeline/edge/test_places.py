"""Subscriptions at gateways, each over the rows it was sent: the lines are those of one engine with all rows.

Gateways and senders crash at random moments; what a gateway repeats is thrown away.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.engine import Engine
from tidings.testing import FAMILY_WORKLOADS, Workload, with_transactions
from tidings.testing.checks.places import Places
from tidings.testing.workload import chunks

NET_SHARE = 3
"""One of so many subscriptions wants the net effect of micro-batches."""


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


@pytest.mark.parametrize(
    ("family", "strategies"),
    [*((family, None) for family in FAMILY_WORKLOADS), ("select", {})]
    + [pytest.param(family, {}, marks=pytest.mark.extended) for family in ("drift", "topk", "join", "offers")],
    ids=lambda value: value if isinstance(value, str) else "entered" if value is None else "regions",
)
def test_lines_are_those_of_one_engine(family: str, strategies: dict[str, str] | None) -> None:
    @settings(max_examples=30)
    @given(
        workloads(family),
        st.sampled_from([2, 3, 16, 70]),
        st.lists(st.integers(1, 9), min_size=1, max_size=3),
        st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["restart", "fold", "forget"])), max_size=6),
    )
    def check(workload: Workload, count: int, sizes: list[int], faults: list[tuple[int, str]]) -> None:
        whole, places = Engine(workload.catalog), Places(workload, count, strategies)
        whole.door.read(workload.subscription_lines())
        for number, batch in enumerate([*chunks(workload.change_lines(), sizes), None]):
            for moment, fault in faults:
                if moment % 13 == number:
                    if fault == "forget":
                        places.forget()
                    else:
                        getattr(places, fault)(moment % count)
            if batch is None:
                assert places.feed([], is_end=True) == whole.finish().notifications.lines()
            else:
                assert places.feed(batch) == whole.feed(batch).notifications.lines()

    check()
