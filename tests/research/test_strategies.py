"""The strategies of `research` keep the promises of the contract suite, as those of the product do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from join_star import BOTH, ITEMS, ROWS, SHOPS, STAR, TURNED, check_that_rows_are_dropped_where_they_came, played

from research import strategies
from research.servers.protocols import FamilyServer
from research.strategies import JOINS, SERVERS
from research.strategies.join.servers import server_of
from tidings.families import registry
from tidings.families.optional import REGION, SHARED
from tidings.model.errors import UsageError
from tidings.sql import parse_catalog
from tidings.testing import (
    CHECKS,
    check_family,
    drift_workloads,
    join_workloads,
    offers_workloads,
    select_workloads,
    topk_workloads,
)
from tidings.testing.offers_inputs import UNKEPT

ROOT = Path(__file__).parents[2]
CASES = {
    "select": select_workloads(),
    "drift": drift_workloads(),
    "topk": topk_workloads(),
    "join": join_workloads(),
    "offers": offers_workloads(),
}


@pytest.mark.extended
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("family", CASES)
def test_contract(family, check):
    check_family(family, CASES[family], checks=[check], examples=10, strategies=tuple(SERVERS[family]))


@pytest.mark.extended
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract_of_publications_that_nobody_keeps(check):
    workloads = offers_workloads(catalogs=UNKEPT)
    check_family("offers", workloads, checks=[check], examples=6, strategies=[*SERVERS["offers"], "relational"])


@pytest.mark.extended
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract_of_top_k_with_several_ranges(check):
    workloads = topk_workloads(changes_max=30, ranges=(2, 2, 3))
    check_family("topk", workloads, checks=[check], examples=4, strategies=tuple(SERVERS["topk"]))


@pytest.mark.extended
@pytest.mark.parametrize("strategy", JOINS)
def test_joins_share_rows_where_they_can(strategy):
    messages, told = played(strategy, [SHOPS, ITEMS, BOTH, TURNED], ROWS)
    assert told == ["s0", "s1", "s2", "s3"]
    # Sales are filtered by items, but for those who have none: these are by shops.
    semijoins = {"rel-sel": [4]}.get(strategy, [1, 3])
    if isinstance(server_of(parse_catalog(STAR), strategy), FamilyServer):
        assert sorted(len(batch.to) for batch in messages) == semijoins
        assert [len(batch) for batch in messages] == [1] * len(semijoins)
    else:
        assert all(not batch.to for batch in messages) and sum(map(len, messages)) == 4


@pytest.mark.extended
@pytest.mark.parametrize("strategy", JOINS)
def test_rows_of_joins_are_dropped_where_they_came(strategy):
    check_that_rows_are_dropped_where_they_came(strategy)


def test_they_are_there_by_name_and_can_be_taken_away():
    assert registry.parse_strategies(["select=scan", "topk=dense:0.5", "offers=relational"])
    strategies.register()
    with pytest.raises(UsageError, match="has a strategy 'scan' already"):
        registry.add_strategy("select", "scan", sender=object)
    with pytest.raises(UsageError, match="either an evaluator or a sender"):
        registry.add_strategy("select", "other")
    strategies.unregister()
    for family in SERVERS:
        own = (SHARED, REGION) if family in ("select", "offers") else (SHARED,)
        assert registry.strategies_of(registry.family(family)) == own
    with pytest.raises(UsageError, match="no strategy 'relational'"):
        registry.parse_strategies(["offers=relational"])
    strategies.register()


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        ("research.strategies:register", "shared region entering unicast scan"),
        ("research.strategies:nonesuch", "TIDINGS_STRATEGIES names 'research.strategies:nonesuch'"),
    ],
)
def test_the_environment_names_them_for_other_processes(named, shown):
    code = "from tidings.families import registry; print(*registry.strategies_of(registry.family('select')))"
    environment = {**os.environ, "TIDINGS_STRATEGIES": named}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT, check=False
    )
    assert shown in done.stdout + done.stderr
