"""Restart: lines do not change if objects of any stage are restored from blob and log at any time."""

from __future__ import annotations

from tidings.testing.checks.case import Case
from tidings.testing.deployment import Layout, deploy
from tidings.testing.workload import chunks


def check_restart(case: Case) -> None:
    case = case.by_messages()
    strategy = case.strategy()
    layout = Layout(tables=case.rng.choice([1, 2]), forms=case.rng.choice([1, 2]), zones=case.rng.choice([1, 2]))
    deployment = deploy(case.workload, strategy, layout)
    lines: list[str] = []
    for chunk in chunks(case.workload.change_lines(), case.sizes()):
        lines.extend(deployment.feed(chunk).lines)
        for durable in deployment.stages:
            event = case.rng.choice(["nothing", "fold", "crash", "crash", "fold and crash"])
            if "fold" in event:
                durable.fold()
            if "crash" in event:
                durable.crash()
    lines.extend(deployment.finish().lines)
    assert lines == case.lines(strategy), "lines change when stages are restarted"
