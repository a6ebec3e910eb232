"""Sharding: lines do not depend on the number of shards and zones."""

from __future__ import annotations

from tidings.testing.checks.case import Case
from tidings.testing.deployment import Layout, deploy, run_steps


def check_sharding(case: Case) -> None:
    case = case.by_messages()
    strategy = case.strategy()
    layout = Layout(tables=case.rng.randint(1, 4), forms=case.rng.randint(1, 3), zones=case.rng.randint(2, 6))
    steps = run_steps(deploy(case.workload, strategy, layout), case.workload.change_lines(), case.sizes())
    lines = [line for step in steps for line in step.lines]
    assert lines == case.lines(strategy), f"lines change with {layout}"
