"""A family from outside the package lands through registration alone, and keeps the contract."""

import json

import pytest
from hypothesis import strategies as st
from mirror_family import CATALOG, QUERIES, MirrorFamily

from tidings.families import registry
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog
from tidings.testing import CHECKS, Workload, check_family, run_inline, workload_strategy


@pytest.fixture(autouse=True)
def mirror():
    family = MirrorFamily()
    registry.register(family)
    yield family
    registry._extra.remove(family)


def mirror_workloads():
    kinds = st.sampled_from(["'prefix08'", "'prefix08a'", "'prefix08b'", "'zzz'"])
    queries = st.builds(str.format, st.sampled_from(QUERIES), kinds)
    return workload_strategy(CATALOG, queries)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(mirror, check):
    check_family(mirror, mirror_workloads(), checks=[check], examples=10)


def test_the_mirror_family_serves_its_table_and_select_the_others(mirror):
    door = Door(parse_catalog(CATALOG))
    found = [registry.family_of(door.place(query.format("'a'")).form)[0].name for query in QUERIES]
    assert found == ["mirror", "mirror", "select"]


def test_an_unregistered_family_is_not_checked(mirror):
    with pytest.raises(AssertionError, match="not registered"):
        check_family(MirrorFamily(), mirror_workloads(), examples=1)


def test_a_late_subscription_finds_rows_that_came_before_it():
    changes = [
        {"seq": i, "table": "mirrored", "op": "insert", "row": {"id": i, "kind": "a", "n": i}} for i in (1, 2, 3)
    ]
    late = "SELECT n FROM mirrored WHERE kind = 'a'"
    subscriptions = [{"id": "x", "sql": late, "after": 2}, {"id": "y", "sql": late.replace("n ", "* ", 1), "after": 3}]
    workload = Workload(CATALOG, subscriptions, changes)
    lines = run_inline(CATALOG, workload.subscription_lines(), workload.change_lines(), [1], {})
    told = [(r["subscription"], r["seq"], [c["row"]["n"] for c in r["changes"]]) for r in map(json.loads, lines)]
    assert told == [("x", 2, [1, 2]), ("x", 3, [3]), ("y", 3, [1, 2, 3])]
