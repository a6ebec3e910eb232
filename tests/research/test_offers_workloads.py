"""The offers workloads obey the file contract, are the same for the same seed, and match as often as they say."""

from __future__ import annotations

from collections import Counter
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from offers_lines import check_canonical, check_changes, check_constraints, check_subscriptions, every_size, records

from constraint_sets import Geometric, columns_of, condition_of, disjuncts, matches
from research.workloads import find
from research.workloads.offers.attributes import ATTRIBUTES, word
from research.workloads.offers.marketplace import offers_marketplace
from research.workloads.offers.places import SIDE_KM, offers_places
from tidings.workloads.workload import WorkloadLines

every_workload = pytest.mark.parametrize("name", ["offers-marketplace", "offers-places"])


def made(name: str, seed: int = 3, rows: int = 0, subscriptions: int = 1_000, changes: int = 3_000) -> WorkloadLines:
    return find(name).load()(seed=seed, rows=rows, subscriptions=subscriptions, changes=changes)


@every_workload
@every_size
def test_lines_obey_the_contract(name: str, rows: int, subscriptions: int, changes: int) -> None:
    workload = made(name, rows=rows, subscriptions=subscriptions, changes=changes)
    check_subscriptions(workload, subscriptions)
    check_changes(workload, changes)


@every_workload
def test_lines_are_canonical(name: str) -> None:
    check_canonical(made(name))


@every_workload
def test_same_seed_same_lines(name: str) -> None:
    first, same, other = ([*w.subscriptions, b"", *w.changes] for w in (made(name), made(name), made(name, seed=4)))
    assert first == same != other


@every_workload
def test_tables_hold_constraints(name: str) -> None:
    check_constraints(made(name))


@every_workload
def test_offers_come_change_expire_and_go(name: str) -> None:
    changes = records(made(name, rows=200, changes=8_000).changes)
    assert all(change["op"] == "insert" for change in changes[:200])
    live = changes[200:]
    ops = Counter(change["op"] for change in live)
    assert set(ops) == {"insert", "update", "upsert", "delete"}
    assert min(ops["insert"], ops["delete"]) > 0.1 * len(live) and 0.4 < ops["update"] / len(live) < 0.55
    first_seen = {change["id"] for change in changes[:200]}
    assert any(change["op"] == "insert" and change["id"] in first_seen for change in live)
    there: dict[str, int] = {}
    expired, sizes = 0, []
    for change in changes:
        over = [id for id, end in there.items() if end <= change["seq"]]
        expired += len(over)
        for id in (*over, *([change["id"]] if change["op"] == "delete" else ())):
            del there[id]
        if change["op"] != "delete":
            there[change["id"]] = change.get("expires", 2**63)
        sizes.append(len(there))
    assert expired > 0.05 * len(live)
    assert min(sizes[250:]) > 150 and max(sizes) < 250
    steps = Counter(b["seq"] - a["seq"] for a, b in pairwise(changes))
    assert max(steps) > 1 and steps[1] > 0.95 * len(changes)


@every_workload
def test_subscribers_come_and_go(name: str) -> None:
    found = records(made(name, rows=100).subscriptions)
    later = [record for record in found if record["after"]]
    drops = sum("drop" in record for record in found)
    assert 60 < drops < 140 and 60 < len(later) - drops < 140
    assert all(record["after"] >= 100 for record in later)


@pytest.mark.parametrize("generator", [offers_marketplace, offers_places])
def test_without_churn_a_shorter_run_is_the_beginning_of_a_longer_one(generator: Any) -> None:
    short, long = (generator(rows=20, subscriptions=n, changes=2 * n, has_churn=False) for n in (150, 230))
    assert list(short.subscriptions) == list(islice(long.subscriptions, 150))
    assert list(short.changes) == list(islice(long.changes, 300))


@pytest.mark.parametrize(
    ("generator", "least", "most", "none"),
    [(offers_marketplace, 0.0005, 0.006, 0.85), (offers_places, 0.0005, 0.003, 0.75)],
)
def test_an_offer_matches_some_but_not_too_many(generator: Any, least: float, most: float, none: float) -> None:
    workload = generator(seed=1, rows=300, subscriptions=800, changes=300, has_churn=False)
    columns = columns_of(workload.catalog_sql)
    wanted = [disjuncts(condition_of(record["sql"]), columns) for record in records(workload.subscriptions)]
    offered = [disjuncts(record["where"], columns) for record in records(workload.changes)]
    found = np.array([[matches(offer, one) for one in wanted] for offer in offered])
    assert least < found.mean() < most
    assert (~found.any(axis=1)).mean() < none
    assert found.any(axis=0).mean() > 0.1


def test_the_marketplace_has_fifty_attributes_and_every_kind_of_predicate() -> None:
    assert len({one.name for one in ATTRIBUTES}) == 50
    assert {one.type for one in ATTRIBUTES} == {"TEXT", "BIGINT", "DOUBLE", "DATE", "BOOLEAN"}
    assert len({word(number) for number in range(4_096)}) == 4_096
    workload = made("offers-marketplace", subscriptions=1_500, changes=1_500)
    columns = columns_of(workload.catalog_sql)
    texts = {
        "subscriptions": [record["sql"] for record in records(workload.subscriptions) if "sql" in record],
        "offers": [record["where"] for record in records(workload.changes) if "where" in record],
    }
    for side, found in texts.items():
        used = Counter[str]()
        for text in found:
            sets = disjuncts(condition_of(text) or text, columns)
            names = {column for one in sets for column in one}
            assert 1 <= len(names) <= 3
            used.update(names)
        assert used.keys() == columns.keys()
        top = sum(count for _, count in used.most_common(5))
        assert 0.3 < top / used.total() < 0.7, side
        for word_used in (" = ", " IN (", " BETWEEN ", " <> ", " LIKE ", " >= ", " < ", " <= ", " > ", " OR "):
            assert 0.005 < sum(word_used in text for text in found) / len(found) < 0.97, (side, word_used)
    ranked = [sql for sql in texts["subscriptions"] if " ORDER BY price LIMIT " in sql]
    assert 0.07 < len(ranked) / len(texts["subscriptions"]) < 0.13
    assert all("price BETWEEN" in sql or "price >=" in sql for sql in ranked)


def test_places_have_every_kind_of_geometry() -> None:
    workload = made("offers-places", subscriptions=500, changes=500)
    columns = columns_of(workload.catalog_sql)
    texts = {
        "offers": [record["where"] for record in records(workload.changes) if "where" in record],
        "subscriptions": [condition_of(record["sql"]) for record in records(workload.subscriptions) if "sql" in record],
    }
    kinds: dict[str, set[tuple[str, str]]] = {}
    for side, found in texts.items():
        for text in found:
            for column, one in ((c, s) for sets in disjuncts(text, columns) for c, s in sets.items()):
                if isinstance(one, Geometric):
                    kinds.setdefault(side, set()).add((column, one.op))
                    assert min(one.box) >= 0 and max(one.box) <= SIDE_KM
    assert kinds["offers"] == {("spot", "="), ("spot", "within"), ("area", "=")}
    assert kinds["subscriptions"] == {
        *(("spot", "="), ("spot", "within"), ("area", "overlaps"), ("area", "contains"), ("area", "within")),
    }
