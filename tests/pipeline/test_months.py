"""A replica that runs for months: what it holds depends on who is there, not on who has been; and it stays exact."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from months import CATALOG_SQL, left_behind, random_change, random_query

import tidings.families.shown as shown
import tidings.kernels.stabbing.stabbing_index as stabbing_index
import tidings.pipeline.replica.held_points as held_points
from tidings.families.drift.kernels.audience_layout import GROUPS
from tidings.families.registry import family
from tidings.pipeline.door import Door
from tidings.pipeline.registrar import Registrar
from tidings.pipeline.replica.replica import Replica
from tidings.sql import parse_catalog
from tidings.testing import Case, Workload
from tidings.testing.checks.exact import check_exact
from tidings.testing.workload import chunks, random_sizes

CATALOG = parse_catalog(CATALOG_SQL)
FAMILIES = ("select", "drift", "topk", "join")
LAZY = ("ids", "text of ids", "held points", "held bytes")
"""Of which some more are kept than there are."""
QUIET = 40
"""Changes after the last drop: rows that nobody follows are forgotten after as many events as there are rows."""


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets everything be given up as soon as it is unused."""
    for module, name in ((stabbing_index, "_RECORDS_MIN"), (shown, "_IDLE_MIN"), (held_points, "_DEAD_MIN")):
        monkeypatch.setattr(module, name, 0)
    yield


def run_replica(workload: Workload, sizes: list[int]) -> list[str]:
    """A replica's lines; it is restarted from a dump now and then, and must be empty in the end."""
    rng = random.Random(len(workload.changes))
    door, replica = Door(CATALOG), Replica(CATALOG, keeps_points=True)
    assert door.read(workload.subscription_lines()) == []
    points, position = door.take(), 0
    lines: list[str] = []
    for chunk in chunks(workload.change_lines(), sizes):
        told = replica.apply(chunk, position, points).notifications
        lines += told.lines()
        points, position = [], position + len(chunk)
        if rng.random() < 0.1:
            other = Replica(CATALOG, keeps_points=True)
            other.load(replica.dump())
            replica = other
    assert left_behind(replica) == {}
    return lines


@st.composite
def lives(draw: st.DrawFn) -> Workload:
    """Subscriptions of random shapes that come and go, all of which have gone a while before the end."""
    rng = draw(st.randoms(use_true_random=False))
    last = rng.randrange(10, 60)
    changes = [random_change(rng, seq) for seq in range(1, last + QUIET)]
    subscriptions = []
    for i in range(draw(st.integers(1, 25))):
        born, died = sorted(rng.randrange(last) for _ in range(2))
        id = f"s{rng.randrange(8)}-{i}"
        subscriptions.append({"id": id, "sql": random_query(rng), "after": born})
        subscriptions.append({"id": id, "drop": True, "after": died + 1})
    return Workload(CATALOG_SQL, subscriptions, changes)


@pytest.mark.usefixtures("eager")
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(lives(), st.randoms(use_true_random=False))
def test_shapes_come_and_go_and_answers_stay_right(workload: Workload, rng: random.Random) -> None:
    sizes = random_sizes(len(workload.changes), rng)
    lines = run_replica(workload, sizes)
    check_exact(Case(family("select"), workload, rng, engine=lambda *_: lines))


class Stream:
    """A registrar and a replica, fed as a job feeds them."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.registrar = Registrar(CATALOG, lambda id, place: True, lambda offset: True)
        self.replica = Replica(CATALOG, keeps_points=True, is_stream=False)
        self.seq = 0

    def handle(self, *events: dict[str, object]) -> None:
        lines = [("p", i, json.dumps(event).encode()) for i, event in enumerate(events)]
        self.replica.advance()
        self.seq = self.replica.passed
        points, answers = self.registrar.handle(lines, self.replica.passed)
        assert [answer.refused for answer in answers] == [None] * len(events)
        self.replica.apply([], 0, points)

    def change(self, count: int) -> None:
        records = [random_change(self.rng, self.seq + i + 1) for i in range(count)]
        self.replica.apply([json.dumps(record).encode() for record in records], 0)
        self.seq += count

    def round(self, number: int, count: int, families: tuple[str, ...]) -> None:
        """Creates subscriptions, changes rows, drops them."""
        ids = [f"{number}-{i}" for i in range(count)]
        self.handle(*({"id": id, "sql": random_query(self.rng, families)} for id in ids))
        self.change(10)
        self.handle(*({"id": id, "drop": True} for id in ids))
        self.change(QUIET)


@pytest.mark.parametrize(
    "families", [FAMILIES, *(pytest.param((name,), marks=pytest.mark.extended) for name in FAMILIES)]
)
def test_memory_does_not_grow_with_what_is_gone(families: tuple[str, ...]) -> None:
    """Rounds of fresh shapes, beside some subscriptions that stay. Points of the dropped are left out every 20 rounds or so."""
    stream = Stream(7)
    stream.handle(*({"id": f"stays {i}", "sql": random_query(stream.rng, families)} for i in range(12)))
    stream.change(30)
    counts, sizes = [], []
    for number in range(80):
        stream.round(number, 12, families)
        held = left_behind(stream.replica)
        assert held["ids"] <= 1_024 + 4 * 24 and held["held points"] <= 2 * (256 + 1_000)
        counts.append(sum(count for name, count in held.items() if name not in LAZY))
        # Texts of rows and ids are compacted when a megabyte of the former or 64 KiB of the latter are dead.
        texts = stream.replica.store.nbytes + stream.replica.subscriptions.id_text.nbytes
        assert texts < 4 << 20
        sizes.append(stream.replica.nbytes - texts)
    assert max(sizes[30:]) <= 1.25 * max(sizes[:30])
    assert max(counts[30:]) <= 1.5 * max(counts[:10])
    stream.handle(*({"id": f"stays {i}", "drop": True} for i in range(12)))
    stream.change(QUIET)
    assert left_behind(stream.replica) == {}
    assert stream.replica.size_counts()["subscriptions"] == stream.replica.size_counts()["forms"] == 0
    assert len(stream.registrar) == 0


def test_a_table_that_nobody_follows_is_forgotten_beside_one_that_is_followed() -> None:
    stream = Stream(3)
    stream.change(60)
    stream.handle({"id": "a", "sql": "SELECT * FROM trades WHERE moved(price) >= 1"})
    drift: Any = stream.replica._evaluators["drift"]
    sizes = []
    for number in range(20):
        stream.handle({"id": f"b{number}", "sql": "SELECT * FROM quotes WHERE market = 'north' AND moved(price) >= 1"})
        assert {key[0] for key in drift._groupings} == {0, 1}
        stream.handle({"id": f"b{number}", "drop": True})
        stream.change(QUIET)
        assert {key[0] for key in drift._groupings} == {1}
        assert int(drift._audiences.head[GROUPS]) == 1
        sizes.append(drift.nbytes)
    assert sizes[-1] == sizes[1]


def test_ids_are_not_remembered_for_ever() -> None:
    stream = Stream(5)
    for number in range(5):
        ids = [f"{number}-{i}" for i in range(500)]
        stream.handle(*({"id": id, "sql": "SELECT * FROM trades WHERE lots > 1"} for id in ids))
        stream.change(8)
        stream.handle(*({"id": id, "drop": True} for id in ids))
    assert len(stream.registrar._door._latest) <= 1_500
    assert left_behind(stream.replica) == {}


def test_an_event_never_comes_before_an_earlier_one_of_its_id() -> None:
    """Also when its time has been forgotten in between."""
    door = Door(CATALOG)
    door.create("a", "SELECT * FROM trades", 10)
    door.drop("a", 20)
    door.take()
    door.forget(15)
    door.create("a", "SELECT * FROM trades", 5)
    (points,) = door.take()
    assert points.after.tolist() == [20]
    door.forget(20)
    door.drop("a", 7)
    (points,) = door.take()
    assert points.after.tolist()[0] <= 20


def test_sizes_are_those_of_what_is_held() -> None:
    stream = Stream(11)
    before = stream.replica.nbytes, stream.registrar.nbytes
    stream.change(50)
    ids = [f"s{i}" for i in range(300)]
    stream.handle(*({"id": id, "sql": random_query(stream.rng)} for id in ids))
    counts = stream.replica.size_counts()
    rows = sum(len(stream.replica.store.current(table)) for table in range(2))
    assert counts["subscriptions"] == len(ids) and counts["rows"] == rows and 10 < counts["forms"] <= 300
    full = stream.replica.nbytes, stream.registrar.nbytes
    assert full[0] > before[0] + 300 * 300 and full[1] > before[1] + 300 * 300
    restored = Registrar(CATALOG, lambda id, place: True, lambda offset: True)
    restored.load(stream.registrar.dump())
    assert restored._known_bytes == stream.registrar._known_bytes > 0
    stream.handle(*({"id": id, "drop": True} for id in ids))
    assert stream.registrar._known_bytes == 0
