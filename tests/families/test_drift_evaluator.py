"""All drift subscriptions over shared rows: the lines of the oracle, whatever the batches, trees and restarts."""

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidings.families.drift.evaluator import DriftEvaluator
from tidings.families.drift.kernels.tournament_tree import NEVER, NO_TIME, interval_around, patient_until
from tidings.families.drift.movement import has_been_silent, has_moved
from tidings.kernels.events import CHANGE
from tidings.model.codes import code_of, double_of
from tidings.model.types import ColumnType
from tidings.pipeline.door import Door
from tidings.pipeline.replica.replica import Replica
from tidings.testing import Workload, drift_workloads, oracle_lines

KINDS = ("moved", "moved_percent", "moved_ratio")


class Watched(Replica):
    """A replica that checks the shape of what its evaluator says."""

    def __init__(self, catalog, fan_out):
        super().__init__(catalog, keeps_points=True)

        class Evaluator(DriftEvaluator):
            pass

        Evaluator.fan_out = fan_out
        self.evaluator = self._evaluators["drift"] = Evaluator(catalog, self.store)

    def restarted(self):
        """Another one, from a dump of this one."""
        other = Watched(self.catalog, self.evaluator.fan_out)
        other.load(self.dump())
        assert other.evaluator.dump()["slot"].tolist() == self.evaluator.dump()["slot"].tolist()
        return other

    def _evaluate(self, events, *, is_told):
        all_told = super()._evaluate(events, is_told=is_told)
        for _, told in all_told:
            kinds = [
                (*tail[:2], *told.changes[tail[2]]) for tail in told.tails.tolist() if events.kind[tail[0]] == CHANGE
            ]
            assert len({tuple(map(int, kind)) for kind in kinds}) == len(kinds)
            assert len(set(zip(told.event.tolist(), told.slot.tolist(), strict=True))) == len(told.event)
            assert set(told.tail.tolist()) == set(range(len(told.tails)))
        return all_told

    def check_pins(self):
        """A version that anybody holds is pinned; without subscriptions none is."""
        assert (self.store.rows.pins >= 0).all()
        self.evaluator.remove(np.arange(len(self.subscriptions.ids)))
        assert not self.store.rows.pins.any()


def play(workload, sizes, fan_out, restart_at=None):
    """All lines, in order."""
    replica = Watched(workload.catalog, fan_out)
    door = Door(workload.catalog)
    assert door.read(workload.subscription_lines()) == []
    points, lines, at = door.take(), [], 0
    changes = workload.change_lines()
    for number, size in enumerate([*sizes, len(changes) - sum(sizes)]):
        if number == restart_at:
            replica = replica.restarted()
        new = replica.apply(
            changes[at : at + size], at, points if number == 0 else (), is_end=number == len(sizes)
        ).notifications
        lines += new.lines()
        at += size
    replica.check_pins()
    return lines


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(drift_workloads(), st.randoms(use_true_random=False), st.sampled_from([2, 4, 16]))
def test_lines_are_those_of_the_oracle(workload, rng, fan_out):
    sizes, left = [], len(workload.changes)
    while left > 0:
        sizes.append(min(left, rng.choice([0, 1, 1, 2, 5, 9])))
        left -= sizes[-1]
    lines = play(workload, sizes, fan_out, rng.choice([None, rng.randrange(len(sizes) + 1)]))
    assert lines == oracle_lines(workload)


CATALOG = """
CREATE TABLE quotes (market TEXT, symbol INT, price DOUBLE, volume BIGINT, at TIMESTAMP, PRIMARY KEY (market, symbol));
CREATE TABLE rates (day DATE, rate DOUBLE, tick BIGINT, PRIMARY KEY (day));
"""
MARKETS = ("north", 'so"uth', "ö")
RANGES = {
    "moved": ("1 AND 2", "0.3 AND 0.7", "2 AND 2"),
    "moved_percent": ("9 AND 11",),
    "moved_ratio": ("1.2 AND 2.5",),
}
RADII = {"moved": ("1", "2", "0.5", "0.1", "3"), "moved_percent": ("10", "50", "5"), "moved_ratio": ("1.5", "2", "1.1")}
PRICES = (10.0, 11.0, 9.0, 12.0, 10.5, 9.5, 0.0, -0.0, -10.0, -5.0, 5.0, 10.1, 10.2, 1e300, 5e-324)


def random_query(rng):
    kind = rng.choice(KINDS)
    if rng.random() < 0.3:
        moved = f"{kind}(rate) >= {rng.choice(RADII[kind])}"
        silent = f"({moved} OR silent_for(tick) >= {rng.choice([1, 3, 2**63 - 1])})"
        pin = rng.choice(["", "day = '2024-01-01' AND ", "day IN ('2024-01-01', '2024-01-02') AND "])
        return f"SELECT {rng.choice(['*', 'day, rate'])} FROM rates WHERE {pin}{rng.choice([moved, silent])}"
    moved = f"{kind}({rng.choice(['price', 'price', 'volume'])}) >= {rng.choice(RADII[kind])}"
    if rng.random() < 0.2:
        moved = f"{kind}(price) BETWEEN {rng.choice(RANGES[kind])}"
    if rng.random() < 0.3:
        moved = f"({moved} OR silent_for(at) >= INTERVAL '{rng.choice(['1 minute', '1 hour'])}')"
    market = "'" + rng.choice(MARKETS).replace("'", "''") + "'"
    pins = [
        f"market = {market} AND symbol = {rng.randrange(3)}",
        f"market = {market} AND symbol IN (0, 2)",
        f"market = {market}",
        f"symbol = {rng.randrange(3)}",
        "market IN ('north', 'ö') AND symbol IN (0, 1)",
        "market = 'north' AND market = 'ö' AND symbol = 1",
        "",
    ]
    pin = rng.choice(pins)
    shown = rng.choice(["*", "*", "price", "symbol, volume", "market, at"])
    return f"SELECT {shown} FROM quotes WHERE {pin + ' AND ' if pin else ''}{moved}"


def random_workload(seed, subscriptions, changes):
    rng = random.Random(seed)
    records, living = [], []
    for number in range(subscriptions):
        after = 0 if number < subscriptions // 2 else rng.randrange(changes)
        if living and rng.random() < 0.2:
            id, born = living.pop(rng.randrange(len(living)))
            records.append({"id": id, "drop": True, "after": max(born, after)})
            if rng.random() < 0.5:
                records.append({"id": id, "sql": random_query(rng), "after": max(born, after) + rng.choice([0, 1])})
        records.append({"id": f"s{number}", "sql": random_query(rng), "after": after})
        living.append((f"s{number}", after))
    stream, present = [], set()
    for seq in range(1, changes + 1):
        if rng.random() < 0.25:
            key = {"day": f"2024-01-0{rng.randrange(1, 4)}"}
            tick = rng.choice([None, seq, seq, -(2**63), 2**63 - 1])
            row = {**key, "rate": rng.choice([None, *PRICES]), "tick": tick}
            table = "rates"
        else:
            key = {"market": rng.choice(MARKETS), "symbol": rng.randrange(3)}
            at = rng.choice([None, f"2024-01-01T{seq // 60 % 24:02}:{seq % 60:02}:00"])
            row = {
                **key,
                "price": rng.choice([None, *PRICES, *PRICES]),
                "volume": rng.choice([None, 0, 1, 2, 2**53 + 1]),
            }
            row["at"], table = at, "quotes"
        place = (table, *key.values())
        if place in present and rng.random() < 0.15:
            present.discard(place)
            stream.append({"seq": seq, "table": table, "op": "delete", "row": key})
        else:
            present.add(place)
            stream.append({"seq": seq, "table": table, "op": "upsert", "row": row})
    records.sort(key=lambda record: record["after"])
    return Workload(CATALOG, records, stream)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.extended) for seed in (1, 2, 3))])
def test_many_members_of_few_rows(seed):
    workload = random_workload(seed, 150, 120)
    rng = random.Random(seed)
    expected = oracle_lines(workload)
    for sizes, fan_out in [([], 2), ([1] * 119, 2), ([rng.randrange(1, 15) for _ in range(8)], 4), ([30, 30, 30], 16)]:
        assert play(workload, sizes, fan_out, rng.randrange(len(sizes) + 1)) == expected
    assert sum('"update"' in line for line in expected) > 200


NUMBERS = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, -0.0, 0.1, 0.3, 100.0]))
TIMES = st.one_of(st.none(), st.integers(-(2**63) + 1, 2**63 - 1), st.sampled_from([-(2**63) + 1, 2**63 - 1, 0]))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), NUMBERS, NUMBERS, st.floats(1e-300, 1e300))
def test_intervals_are_those_of_the_definition(kind, told, now, least):
    low, high = interval_around(KINDS.index(kind), told, least)
    for value in (now, told, double_of(low), double_of(high)):
        code = code_of(ColumnType.DOUBLE, value)
        assert (code >= high or code <= low) == has_moved(kind, told, value, least)


@settings(max_examples=60, deadline=None)
@given(TIMES, TIMES, st.integers(1, 2**63 - 1))
def test_patience_ends_as_defined(told, now, ticks):
    last = patient_until(NO_TIME if told is None else told, ticks)
    assert ((NO_TIME if now is None else now) > last) == has_been_silent(told, now, ticks)
    assert patient_until(0, 0) == NEVER
