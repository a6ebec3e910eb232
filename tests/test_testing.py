"""The contract suite can fail: every check notices an engine or a stage that breaks its promise."""

import json
import random

import pytest

from tidings.families.registry import family
from tidings.families.select import regions
from tidings.pipeline.edge.holders import Holders
from tidings.pipeline.edge.partial import PartialReplica
from tidings.testing import CHECKS, Case, Workload, oracle_lines, recompute, run_inline
from tidings.testing.checks import (
    check_batches_do_not_matter,
    check_exact,
    check_only_affected_are_told,
    check_places,
    check_strategies_agree,
)
from tidings.testing.checks.places import Places

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
SEEDS = range(6)


def case(seed=0, engine=run_inline, workload=WORKLOAD):
    return Case(family("select"), workload, random.Random(seed), engine)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_workload_itself_passes(check):
    for seed in SEEDS:
        check(case(seed))
    assert [json.loads(line)["seq"] for line in oracle_lines(WORKLOAD)] == [0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 6, 7, 7]


def broken(alter):
    """The inline engine with its lines altered."""
    return lambda *arguments: alter(run_inline(*arguments))


def rewrite(place, alter):
    """Alters the record of one line."""

    def altered(lines):
        record = json.loads(lines[place])
        alter(record)
        return [*lines[:place], json.dumps(record), *lines[place + 1 :]]

    return altered


ALTERED = {
    "a line missing": lambda lines: lines[:-1],
    "a line twice": lambda lines: [*lines, lines[-1]],
    "lines out of order": lambda lines: [*lines[1:], lines[0]],
    "no snapshot": lambda lines: lines[1:],
    "told for nothing": rewrite(5, lambda record: record["changes"].clear()),
    "wrong row": rewrite(5, lambda record: record["changes"][0]["row"].update(n=99)),
    "wrong old row": rewrite(5, lambda record: record["changes"][0]["old"].update(n=99)),
    "a row that goes and comes": rewrite(
        5, lambda record: record["changes"][0].update(row=record["changes"][0]["old"])
    ),
    "deleted what was not held": rewrite(12, lambda record: record["changes"][0]["row"].update(kind="z")),
    "another field": rewrite(5, lambda record: record.update(note=1)),
    "a column missing": rewrite(5, lambda record: record["changes"][0]["row"].pop("n")),
    "a snapshot that is none": rewrite(0, lambda record: record.update(snapshot=False)),
    "another seq": rewrite(12, lambda record: record.update(seq=8)),
}


@pytest.mark.parametrize("name", ALTERED)
def test_exactness_can_fail(name):
    with pytest.raises(AssertionError):
        check_exact(case(engine=broken(ALTERED[name])))


@pytest.mark.parametrize("name", ["a line missing", "a line twice", "no snapshot", "another seq"])
def test_being_told_for_nothing_or_not_at_all_can_fail(name):
    with pytest.raises(AssertionError, match="told"):
        check_only_affected_are_told(case(engine=broken(ALTERED[name])))


def test_agreement_of_strategies_can_fail():
    def engine(catalog_sql, subscriptions, changes, sizes, strategy):
        lines = run_inline(catalog_sql, subscriptions, changes, sizes, strategy)
        return lines[:-1] if strategy["select"] == "region" else lines

    with pytest.raises(AssertionError, match="region"):
        check_strategies_agree(case(engine=engine))


def test_agreement_of_batches_can_fail():
    def engine(catalog_sql, subscriptions, changes, sizes, strategy):
        return run_inline(catalog_sql, subscriptions, changes, sizes, strategy)[: len(sizes)]

    with pytest.raises(AssertionError, match="micro-batches"):
        check_batches_do_not_matter(case(engine=engine))


def test_places_that_lose_rows_are_noticed(monkeypatch):
    monkeypatch.setattr(PartialReplica, "load", lambda self, blob: None)
    with pytest.raises(AssertionError, match=r"lines change|does not hold"):
        for seed in range(300):
            check_places(case(seed))


@pytest.mark.parametrize("sender", [None, {}])
def test_rows_that_are_not_sent_are_noticed(sender, monkeypatch):
    honest = Holders.packs

    def forgetful(self, rows, batch, entered, *rest):
        return honest(self, rows, batch, [], *rest)

    monkeypatch.setattr(Holders, "packs", forgetful)
    places = Places(WORKLOAD, 2, sender)
    told = [line for record in WORKLOAD.change_lines() for line in places.feed([record])]
    assert told != oracle_lines(WORKLOAD)


def test_regions_that_are_too_small_are_noticed(monkeypatch):
    honest = regions.regions

    def stingy(*arguments):
        found = honest(*arguments)
        found.hi[:] = -5
        return found

    assert told_at(Places(WORKLOAD, 2, {})) == oracle_lines(WORKLOAD)
    monkeypatch.setattr(regions, "regions", stingy)
    assert told_at(Places(WORKLOAD, 2, {})) != oracle_lines(WORKLOAD)


def told_at(places):
    lines = [line for record in WORKLOAD.change_lines() for line in places.feed([record])]
    return lines + places.feed([], is_end=True)


def test_the_oracle_knows_moments_and_nonsense():
    workload = Workload(
        CATALOG,
        [{"id": "a", "sql": "SELECT id FROM t", "after": 1}, {"id": "a", "sql": "SELECT * FROM t", "after": 1}],
        [
            change(1, "insert", id=1, kind=None, n=None),
            change(1, "insert", id=2, kind=None, n=None),
            change(2, "insert", id=1, kind=None, n=None),
            change(3, "update", id=9, kind=None, n=None),
            change(4, "delete", id=1),
        ],
    )
    assert [(entry.seq, entry.is_snapshot, dict(entry.after)) for entry in recompute(workload)] == [
        (1, True, {'{"id": 1}': 1}),
        (4, False, {}),
    ]
    assert run_inline(CATALOG, workload.subscription_lines(), workload.change_lines(), [2, 3], {}) == oracle_lines(
        workload
    )
