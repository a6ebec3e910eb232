"""The contract suite: what every family must keep, checked on workloads that hypothesis makes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tidings.families import registry
from tidings.families.protocols import Family
from tidings.model.catalog import Catalog
from tidings.sql.shape import Shape
from tidings.testing.checks import CHECKS, ENGINE_CHECKS, Case
from tidings.testing.checks.case import Bound
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
    has_exact_regions: Callable[[Shape, Catalog], bool] | None = None,
    may_hear_twice: bool = False,
    may_reach: Bound | None = None,
    strategies: Sequence[str] = (),
) -> None:
    """Runs the checks on a family. The first failure raises AssertionError with the smallest workload found.

    A family from outside the package must have been registered. oracle: replaces `recompute` if answers cannot be recomputed
    from the current rows alone. may_hear_twice: a change may reach a point several times, because it sends several rows.
    may_reach: bounds superfluous messages: which changes may reach a point with inexact regions whose answer they do not alter
    (default: any). engine: another engine gets the checks of lines only, the inline engine gets all. strategies: the message
    strategies that are checked (default: all of the family), for a quick test of the few that matter most.
    """
    found = registry.family(family) if isinstance(family, str) else family
    assert found in registry.families(), f"family {found.name!r} is not registered"
    if checks is None:
        checks = CHECKS if engine is run_inline else ENGINE_CHECKS
    for check in checks:
        _run(
            found, workloads, check, engine, examples, oracle, has_exact_regions, may_hear_twice, may_reach, strategies
        )


def _run(
    family: Family,
    workloads: SearchStrategy[Workload],
    check: Check,
    engine: RunEngine,
    examples: int,
    oracle: Callable[[Workload], list[Expected]],
    has_exact_regions: Callable[[Shape, Catalog], bool] | None,
    may_hear_twice: bool,
    may_reach: Bound | None,
    strategies: Sequence[str],
) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(workload=workloads, rng=st.randoms(use_true_random=False))
    def keeps_promise(workload: Workload, rng: random.Random) -> None:
        case = Case(family, workload, rng, engine, oracle, may_hear_twice=may_hear_twice, strategies=strategies)
        if has_exact_regions is not None:
            case.has_exact_regions = has_exact_regions
        if may_reach is not None:
            case.may_reach = may_reach
        check(case)

    keeps_promise()
