"""Workloads whose changes are made in transactions."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tidings.testing.workload import Record, Workload

_IDS = ("1", 1, "2", 'tx \u00e9\u4e16"\\', 7)
"""Ids of transactions: `"1"` and `1` are one id; some have characters that JSON escapes."""


def with_transactions(workloads: SearchStrategy[Workload]) -> SearchStrategy[Workload]:
    """The same workloads, with runs of changes of random lengths in one transaction each, and some in none."""

    @st.composite
    def drawn(draw: DrawFn) -> Workload:
        workload = draw(workloads)
        changes: list[Record] = []
        while len(changes) < len(workload.changes):
            # Mostly of several records, so that much cancels out; the shortest last, as hypothesis shrinks to the first.
            size, tx = draw(st.sampled_from([4, 7, 2, 3, 1, 12])), draw(st.sampled_from([*_IDS, None]))
            run = workload.changes[len(changes) : len(changes) + size]
            changes += run if tx is None else [{"seq": record["seq"], "tx": tx} | record for record in run]
        return replace(workload, changes=changes)

    return drawn()
