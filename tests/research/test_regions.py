"""Messages reach the points whose answers their changes alter, and few others."""

import random

import pytest

from research.servers.check_regions import RegionCheck, selects_either
from research.strategies.select import region_server
from research.strategies.servers import SERVERS
from tidings.families.registry import family
from tidings.testing import (
    Case,
    Workload,
    check_family,
    drift_workloads,
    join_workloads,
    offers_workloads,
    select_workloads,
    topk_workloads,
)
from tidings.testing.offers_inputs import UNKEPT

CATALOG = "CREATE TABLE t (id INT PRIMARY KEY, kind TEXT, n INT);"


def change(seq, op, **row):
    return {"seq": seq, "table": "t", "op": op, "row": row}


WORKLOAD = Workload(
    CATALOG,
    [
        {"id": "a", "sql": "SELECT * FROM t WHERE kind = 'x' AND n BETWEEN 1 AND 5"},
        {"id": "b", "sql": "SELECT kind FROM t WHERE n >= 3", "after": 2},
        {"id": "c", "sql": "SELECT * FROM t", "after": 1},
        {"id": "c", "drop": True, "after": 4},
    ],
    [
        change(1, "insert", id=1, kind="x", n=1),
        change(2, "insert", id=2, kind="y", n=5),
        change(3, "update", id=1, kind="x", n=3),
        change(4, "update", id=1, kind="x", n=4),
        change(6, "update", id=2, kind="y", n=1),
        change(7, "delete", id=1),
    ],
)
# A subscription whose point says all: who reaches it for nothing is noticed.
RANGED = Workload(CATALOG, [{"id": "d", "sql": "SELECT * FROM t WHERE n BETWEEN 3 AND 4"}], WORKLOAD.changes)


def _says_all(shape, catalog):
    """A point says all, and a change of a publication always shows."""
    table = catalog.table(shape.tables[0])
    return shape.projection is None and not any(axis.type.is_lossy for axis in table.axes)


# Regions of drift are exact up to rows that are told again with nothing changed in what is shown, and those of `relax` are not
# at all; a row of top-k may be sent to those who already hold k better ones for a moment, while another moves; several
# publications change at one seq where some expire; rows of joins travel whether or not they find a partner; strategy
# `entering` of select sends long columns apart.
CASES = {
    "select": (select_workloads(), RegionCheck()),
    "entering": (select_workloads(), RegionCheck(may_hear_twice=True)),
    "drift": (drift_workloads(), RegionCheck(lambda *_: False)),
    "topk": (topk_workloads(), RegionCheck(lambda *_: False, may_hear_twice=True)),
    "several": (topk_workloads(changes_max=30, ranges=(2, 2, 3)), RegionCheck(lambda *_: False, may_hear_twice=True)),
    "join": (join_workloads(), RegionCheck(lambda *_: False, may_hear_twice=True, may_reach=selects_either)),
    "offers": (offers_workloads(), RegionCheck(_says_all, may_hear_twice=True)),
    "unkept": (offers_workloads(catalogs=UNKEPT), RegionCheck(_says_all, may_hear_twice=True)),
}


@pytest.mark.extended
@pytest.mark.parametrize("case", CASES)
def test_regions_reach_those_concerned(case):
    workloads, check = CASES[case]
    name = {"several": "topk", "entering": "select", "unkept": "offers"}.get(case, case)
    strategies = [each for each in SERVERS[name] if (each == "entering") is (case == "entering")]
    check_family(name, workloads, checks=[check], examples=10, strategies=strategies)


def case(workload):
    return Case(family("select"), workload, random.Random(0), strategies=("region",))


def test_regions_that_are_too_large_are_noticed(monkeypatch):
    honest = region_server.reformulate

    def lavish(*arguments):
        messages = honest(*arguments)
        if messages is not None:
            messages.regions.lo[:] = -(2**63)
        return messages

    RegionCheck()(case(RANGED))
    monkeypatch.setattr(region_server, "reformulate", lavish)
    with pytest.raises(AssertionError, match="for nothing"):
        RegionCheck()(case(RANGED))


def test_regions_that_are_too_small_are_noticed(monkeypatch):
    honest = region_server.reformulate

    def stingy(*arguments):
        messages = honest(*arguments)
        if messages is not None and messages.axes:
            messages.regions.hi[:] = -5
        return messages

    monkeypatch.setattr(region_server, "reformulate", stingy)
    with pytest.raises(AssertionError, match="not reached"):
        RegionCheck()(case(WORKLOAD))
