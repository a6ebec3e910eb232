"""The contract suite: what every family must keep, checked on workloads that hypothesis makes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tidings.families import registry
from tidings.families.protocols import Family
from tidings.testing.checks import CHECKS, ENGINE_CHECKS, Case
from tidings.testing.engines import RunEngine, run_inline
from tidings.testing.oracle import Expected, recompute
from tidings.testing.workload import Workload

Check = Callable[[Case], None]


def check_family(
    family: Family | str,
    workloads: SearchStrategy[Workload],
    *,
    checks: Sequence[Check] | None = None,
    engine: RunEngine = run_inline,
    examples: int = 50,
    oracle: Callable[[Workload], list[Expected]] = recompute,
    strategies: Sequence[str] = (),
) -> None:
    """Runs the checks on a family. The first failure raises AssertionError with the smallest workload found.

    A family from outside the package must have been registered. oracle: replaces `recompute` if answers cannot be recomputed
    from the current rows alone. engine: another engine gets the checks of lines only, the inline engine gets all. strategies:
    those that are checked (default: all of the family), for a quick test of the few that matter most.
    """
    found = registry.family(family) if isinstance(family, str) else family
    assert found in registry.families(), f"family {found.name!r} is not registered"
    if checks is None:
        checks = CHECKS if engine is run_inline else ENGINE_CHECKS
    for check in checks:
        _run(found, workloads, check, engine, examples, oracle, strategies)


def _run(
    family: Family,
    workloads: SearchStrategy[Workload],
    check: Check,
    engine: RunEngine,
    examples: int,
    oracle: Callable[[Workload], list[Expected]],
    strategies: Sequence[str],
) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(workload=workloads, rng=st.randoms(use_true_random=False))
    def keeps_promise(workload: Workload, rng: random.Random) -> None:
        check(Case(family, workload, rng, engine, oracle, strategies))

    keeps_promise()
