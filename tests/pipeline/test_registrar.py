"""Subscriptions by events: every event is answered, repeating one changes nothing, and the registry survives a restart."""

from __future__ import annotations

import json
from typing import Any

from tidings.model.points import Event
from tidings.pipeline.registrar import Registrar
from tidings.sql import parse_catalog

CATALOG = parse_catalog("CREATE TABLE t (id BIGINT PRIMARY KEY, x DOUBLE);")
SQL, OTHER = "SELECT * FROM t WHERE x > 1", "SELECT * FROM t WHERE x > 2"


def registrar(*, own: str = "", remainder: int = 0) -> Registrar:
    """remainder: it reports broken lines at offsets that have this remainder by 2."""
    return Registrar(CATALOG, lambda id: id.startswith(own), lambda offset: offset % 2 == remainder)


def handle(registry: Registrar, passed: int, *records: dict[str, Any]) -> tuple[list[tuple[str, int, str]], list[Any]]:
    """(event, after, id) of the points, and (id, seq or the reason for refusing) of the answers."""
    lines = [("p", offset, json.dumps(record).encode()) for offset, record in enumerate(records)]
    points, answers = registry.handle(lines, passed)
    found = sorted(
        (int(order), Event(int(event)).name, int(after), id)
        for batch in points
        for order, event, after, id in zip(batch.order, batch.event, batch.after, batch.id.to_pylist(), strict=True)
    )
    return [entry[1:] for entry in found], [(answer.id, answer.refused or answer.seq) for answer in answers]


def test_a_life() -> None:
    registry = registrar()
    assert handle(registry, 7, {"id": "a", "sql": SQL}) == ([("CREATE", 7, "a")], [("a", 7)])
    # A front end that starts again sends all once more.
    assert handle(registry, 9, {"id": "a", "sql": SQL}) == ([], [("a", 7)])
    assert handle(registry, 11, {"id": "a", "sql": OTHER, "replace": True}) == (
        [("DROP", 11, "a"), ("CREATE", 11, "a")],
        [("a", 11)],
    )
    assert handle(registry, 12, {"id": "a", "drop": True}) == ([("DROP", 12, "a")], [("a", 12)])
    assert len(registry) == 0
    # A moment that is still to come is waited for.
    assert handle(registry, 12, {"id": "a", "sql": SQL, "after": 20}) == ([("CREATE", 20, "a")], [("a", 20)])


def test_what_is_refused_changes_nothing() -> None:
    registry = registrar()
    handle(registry, 1, {"id": "a", "sql": SQL})
    events = [
        {"id": "a", "sql": OTHER},
        {"id": "b", "drop": True},
        {"id": "b"},
        {"id": "b", "sql": "SELECT nothing FROM t"},
        {"id": "a", "sql": "SELECT nothing FROM t", "replace": True},
        {"id": "a", "drop": True, "sql": SQL},
    ]
    points, answers = handle(registry, 2, *events)
    assert points == []
    reasons = [str(reason) for _, reason in answers]
    for part, reason in zip(
        ("taken by another query", "no subscription 'b'", "neither 'sql'", "nothing", "nothing", "a drop carries no"),
        reasons,
        strict=True,
    ):
        assert part in reason
    assert handle(registry, 3, {"id": "a", "drop": True})[0] == [("DROP", 3, "a")]


def test_broken_lines_are_answered_by_one_registry_and_events_by_their_own() -> None:
    lines = [("p", 4, b"nonsense"), ("p", 5, b""), ("p", 6, json.dumps({"id": "b1", "sql": SQL}).encode())]
    first, second = registrar(own="a"), registrar(own="b", remainder=1)
    (broken,) = first.handle(lines, 0)[1]
    assert (broken.partition, broken.offset, broken.id) == ("p", 4, None)
    assert broken.refused is not None and "not a usable subscription event" in broken.refused
    (answer,) = second.handle(lines, 0)[1]
    assert (answer.offset, answer.id, answer.refused) == (6, "b1", None)


def test_the_registry_survives_a_restart() -> None:
    registry, again = registrar(), registrar()
    handle(registry, 1, {"id": "a", "sql": SQL}, {"id": "b", "sql": OTHER})
    again.load(registry.dump())
    assert handle(again, 5, {"id": "a", "sql": SQL}, {"id": "b", "drop": True}) == (
        [("DROP", 5, "b")],
        [("a", 1), ("b", 5)],
    )
