"""Agreement: lines depend neither on the strategy nor on the sizes of micro-batches."""

from __future__ import annotations

from tidings.families.optional import SHARED
from tidings.testing.checks.case import Case


def check_strategies_agree(case: Case) -> None:
    sizes = case.sizes()
    first = SHARED
    lines = case.lines(case.strategy(first), sizes)
    for other in case.some_strategies():
        assert case.lines(case.strategy(other), sizes) == lines, f"strategy {other} differs from {first}"


def check_batches_do_not_matter(case: Case) -> None:
    strategy = case.any_strategy()
    whole = case.lines(strategy)
    one_by_one = [1] * len(case.workload.changes)
    for sizes in (one_by_one, case.sizes(), case.sizes()):
        assert case.lines(strategy, sizes) == whole, f"lines change with micro-batches of {sizes}"
