"""Subscriptions by events: every event is answered, repeating one changes nothing, and the registry survives a restart."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.points import Event
from tidings.pipeline.registrar import Registrar
from tidings.pipeline.replica.batch import Places
from tidings.pipeline.replica.replica import Replica
from tidings.sql import parse_catalog
from tidings.testing.oracle import Recomputation
from tidings.testing.plain import answer_of

CATALOG = parse_catalog("CREATE TABLE t (id BIGINT PRIMARY KEY, x DOUBLE);")
SQL, OTHER = "SELECT * FROM t WHERE x > 1", "SELECT * FROM t WHERE x > 2"


def registrar(*, own: str = "", remainder: int = 0) -> Registrar:
    """remainder: it reports broken lines at offsets that have this remainder by 2."""
    return Registrar(CATALOG, lambda id, place: id.startswith(own), lambda offset: offset % 2 == remainder)


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
    # Events of a stream happen when they come.
    ((_, reason),) = handle(registry, 12, {"id": "a", "sql": SQL, "after": 20})[1]
    assert "'after' 20 has not come yet" in str(reason) and len(registry) == 0
    assert handle(registry, 20, {"id": "a", "sql": SQL, "after": 20}) == ([("CREATE", 20, "a")], [("a", 20)])


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


def test_changes_of_a_table_of_subscriptions_are_events() -> None:
    registry = registrar()

    def change(op: str, sql: str | None) -> dict[str, Any]:
        return {"table": "wishes", "op": op, "row": {"id": "a", "sql": sql, "owner": "somebody"}}

    assert handle(registry, 1, change("insert", SQL)) == ([("CREATE", 1, "a")], [("a", 1)])
    assert handle(registry, 2, change("upsert", SQL)) == ([], [("a", 1)])
    assert handle(registry, 3, change("update", OTHER)) == ([("DROP", 3, "a"), ("CREATE", 3, "a")], [("a", 3)])
    assert handle(registry, 4, {"op": "delete", "row": {"id": "a"}}) == ([("DROP", 4, "a")], [("a", 4)])
    # An update that does not touch a long query leaves it out; a table that is emptied has no subscriptions.
    handle(registry, 5, change("insert", SQL), {"id": "b", "sql": OTHER})
    kept = {"table": "wishes", "op": "update", "row": {"id": "a"}, "keep": ["sql"]}
    assert handle(registry, 6, kept) == ([], [("a", 5)])
    renamed = {**kept, "row": {"id": "c"}, "old": {"id": "a"}}
    assert handle(registry, 7, renamed) == ([("DROP", 7, "a"), ("CREATE", 7, "c")], [("a", 7), ("c", 7)])
    assert handle(registry, 8, {"table": "wishes", "op": "truncate"})[1] == [("b", 8), ("c", 8)]
    ((id, reason),) = handle(registry, 9, {"op": "vacuum", "row": {"id": "a"}})[1]
    assert id is None and "not a usable subscription event" in str(reason)


def test_a_mark_of_byte_order_is_no_part_of_an_event() -> None:
    line = b"\xef\xbb\xbf" + json.dumps({"id": "a", "sql": SQL}).encode()
    (answer,) = registrar().handle([("p", 0, line)], 1)[1]
    assert (answer.id, answer.seq) == ("a", 1)


def test_a_query_that_the_catalog_has_outgrown_can_be_dropped() -> None:
    text = "CREATE TABLE a (k BIGINT PRIMARY KEY, price DOUBLE); CREATE TABLE b (k BIGINT PRIMARY KEY);"
    before, after = parse_catalog(text), parse_catalog(f"{text} ALTER TABLE b ADD COLUMN price DOUBLE;")
    registry, grown = (Registrar(catalog, lambda id, place: True, lambda offset: True) for catalog in (before, after))
    sql = "SELECT * FROM a JOIN b USING (k) WHERE price > 3"
    handle(registry, 1, {"id": "a", "sql": sql})
    grown.load(registry.dump())
    assert "ambiguous" in str(handle(grown, 2, {"id": "other", "sql": sql})[1])
    assert handle(grown, 3, {"id": "a", "drop": True}) == ([("DROP", 3, "a")], [("a", 3)])


rows = st.fixed_dictionaries({"id": st.integers(0, 3), "x": st.sampled_from([0.5, 1.5, 2.5])})
changes = st.fixed_dictionaries({"op": st.sampled_from(["upsert", "delete"]), "row": rows})
queries = st.sampled_from([SQL, OTHER, "SELECT * FROM t ORDER BY x LIMIT 2", "SELECT id FROM t WHERE x < 2 OR id = 3"])
events = st.one_of(
    st.fixed_dictionaries({"id": st.sampled_from("ab"), "sql": queries, "replace": st.booleans()}),
    st.fixed_dictionaries({"id": st.sampled_from("ab"), "drop": st.just(True)}),
)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.lists(events, max_size=3), st.lists(changes, max_size=4)), max_size=8), st.booleans())
def test_no_gap_and_no_double_around_the_moment(
    batches: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]], restarts: bool
) -> None:
    """Everybody is told what recomputation says, from the very seq of the answer on, up to that of the drop."""
    registry, replica = registrar(), Replica(CATALOG, keeps_points=True, is_stream=True)
    plain = Recomputation(CATALOG)
    living: dict[str, str] = {}
    told: list[dict[str, Any]] = []
    for wishes, changed in batches:
        replica.advance()
        moment = replica.passed
        points, answers = registry.handle(
            [("", at, json.dumps(event).encode()) for at, event in enumerate(wishes)], moment
        )
        for event, answer in zip(wishes, answers, strict=True):
            id, sql = event["id"], event.get("sql")
            is_refused = (
                id not in living if sql is None else id in living and living[id] != sql and not event["replace"]
            )
            assert (answer.refused is not None) == is_refused
            if is_refused or living.get(id) == sql:
                continue
            assert answer.seq == moment
            if living.pop(id, None) is not None:
                plain.register({"id": id, "drop": True, "after": moment})
            if sql is not None:
                living[id] = sql
                plain.register({"id": id, "sql": sql, "after": moment})
        for at, change in enumerate(changed):
            plain.commit([{"seq": moment + 1 + at, "table": "t", **change}])
        texts = [json.dumps({"table": "t", **change}).encode() for change in changed]
        zeros = np.zeros(len(texts), np.int64)
        found = replica.apply(texts, Places([""], zeros, [""], zeros, np.arange(len(texts))), points)
        told += map(json.loads, found.notifications.lines())
        if restarts:
            other, again = registrar(), Replica(CATALOG, keeps_points=True, is_stream=True)
            other.load(registry.dump())
            again.load(replica.dump())
            registry, replica = other, again
    expected = sorted(plain.expected, key=lambda entry: entry.place)
    assert [(line["seq"], line["subscription"], line["snapshot"]) for line in told] == [e.place for e in expected]
    for line, entry in zip(told, expected, strict=True):
        view = Counter(entry.before)
        for change in line["changes"]:
            if change["op"] != "insert":
                view.subtract(answer_of([change.get("old", change["row"])]))
            if change["op"] != "delete":
                view.update(answer_of([change["row"]]))
        assert view == entry.after and min(view.values(), default=1) >= 0
