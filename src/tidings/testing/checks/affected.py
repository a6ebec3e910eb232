"""Only affected subscriptions are notified: exactly if the answer, as a multiset of shown rows, has changed."""

from __future__ import annotations

import json

from tidings.testing.checks.case import Case


def check_only_affected_are_told(case: Case) -> None:
    records = [json.loads(line) for line in case.lines(case.any_strategy())]
    told = [(record["seq"], record["subscription"], record["snapshot"]) for record in records]
    expected = [entry.place for entry in case.oracle(case.workload)]
    assert told == expected, (
        f"told for nothing: {sorted(set(told) - set(expected))}; not told: {sorted(set(expected) - set(told))}"
    )
