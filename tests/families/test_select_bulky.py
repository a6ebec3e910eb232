"""Long values of columns that no predicate looks at travel only when new to somebody; nobody can tell from the lines."""

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.families.registry import family, family_of
from tidings.families.select.slim import LONG_BYTES_MIN, SLIM
from tidings.families.select.subscription import space_of
from tidings.network.wire import wire_size
from tidings.pipeline.door import Door
from tidings.pipeline.staged import StagedEngine as Engine
from tidings.sql import parse_catalog
from tidings.testing import Workload, check_family, run_inline
from tidings.testing.checks import check_regions, check_strategies_agree
from tidings.testing.deployment import Layout, deploy
from tidings.testing.strategies import long_value_workloads
from tidings.testing.workload import chunks, random_sizes

NOTES = "CREATE TABLE notes (id INT PRIMARY KEY, kind TEXT, price DOUBLE, body TEXT, data BINARY);"
TEXT = "long " * 200
OTHER = "other " * 200


@pytest.mark.parametrize("check", [check_strategies_agree, check_regions], ids=lambda check: check.__name__)
def test_contract_where_values_are_long(check):
    """The checks that look at all strategies."""
    check_family("select", long_value_workloads(), checks=[check], examples=25)


def whole_lines(workload):
    lines = workload.subscription_lines(), workload.change_lines()
    return run_inline(workload.catalog_sql, *lines, [len(workload.changes)], {"select": "whole"})


@settings(max_examples=60, deadline=None)
@given(long_value_workloads(), st.integers(0, 2**32 - 1))
def test_lines_are_those_of_whole_rows_with_any_shards_zones_batches_and_crashes(workload, seed):
    rng = random.Random(seed)
    layout = Layout(tables=rng.randint(1, 3), zones=rng.randint(1, 4))
    deployment = deploy(workload, {"select": "region"}, layout)
    lines = []
    for chunk in chunks(workload.change_lines(), random_sizes(len(workload.changes), rng)):
        lines += deployment.feed(chunk).lines
        for durable in deployment.stages:
            if rng.random() < 0.3:
                durable.fold()
            if rng.random() < 0.3:
                durable.crash()
    lines += deployment.finish().lines
    assert lines == whole_lines(workload)


class Watched:
    """The engine with what goes to the gateway, batch by batch."""

    def __init__(self, subscriptions, catalog=NOTES, strategy="region"):
        self.messages = []
        self.engine = Engine(parse_catalog(catalog), {"select": strategy}, on_work=self._see)
        self.engine.door.read(Workload(catalog, subscriptions, []).subscription_lines())

    def _see(self, work):
        self.messages = work.messages

    def feed(self, *changes):
        """Feeds changes; gives what was told: (subscription, seq, changes)."""
        lines = self.engine.feed(Workload(NOTES, [], list(changes)).change_lines()).notifications.lines()
        return [tuple(json.loads(line)[part] for part in ("subscription", "seq", "changes")) for line in lines]

    def sent(self):
        """Per message of the last feed: whether it is slim, and its old and new text."""
        found = []
        for batch in self.messages:
            slim = batch.regions.tags[batch.regions.starts[:-1]] & SLIM
            columns = [batch.payload.column(f"{side}.body").to_pylist() for side in ("old", "new")]
            found += zip((slim != 0).tolist(), *columns, strict=True)
        return found

    def bytes(self):
        return sum(map(wire_size, self.messages))

    def shelved(self):
        """Keys of the rows with long values at the gateway."""
        forms = self.engine._gateway._forms.values()
        return {key for form in forms for rows in form.views._shelf._channels.values() for (key,) in rows}


def note(seq, op="update", **row):
    full = {"id": 1, "kind": "a", "price": 5.0, "body": TEXT, "data": None}
    return {"seq": seq, "table": "notes", "op": op, "row": {"id": 1} if op == "delete" else {**full, **row}}


def row(**changed):
    return {"id": 1, "kind": "a", "price": 5.0, "body": TEXT, "data": None, **changed}


LOW = {"id": "low", "sql": "SELECT * FROM notes WHERE price <= 10"}
HIGH = {"id": "high", "sql": "SELECT * FROM notes WHERE price >= 8"}


def test_a_text_that_stays_is_not_sent_again():
    watched = Watched([LOW])
    watched.feed(note(1, "insert"))
    assert watched.sent() == [(False, None, TEXT)]
    told = watched.feed(note(2, price=6.0))
    assert told == [("low", 2, [{"op": "update", "old": row(), "row": row(price=6.0)}])]
    assert watched.sent() == [(True, None, None)]


def test_a_text_goes_in_full_only_to_those_to_whom_it_is_new_and_only_if_there_are_any():
    watched = Watched([LOW, HIGH])
    watched.feed(note(1, "insert"))
    told = watched.feed(note(2, price=9.0))
    assert told == [
        ("high", 2, [{"op": "insert", "row": row(price=9.0)}]),
        ("low", 2, [{"op": "update", "old": row(), "row": row(price=9.0)}]),
    ]
    assert watched.sent() == [(True, None, None), (False, None, TEXT)]
    watched.feed(note(3, price=9.5))
    assert watched.sent() == [(True, None, None)]


@pytest.mark.parametrize("new", [OTHER, "short", None])
def test_a_text_that_changes_is_sent_without_the_one_before(new):
    watched = Watched([LOW])
    watched.feed(note(1, "insert"))
    told = watched.feed(note(2, body=new))
    assert told == [("low", 2, [{"op": "update", "old": row(), "row": row(body=new)}])]
    # Null for null would mean that the text stays.
    assert watched.sent() == [(False, TEXT, None) if new is None else (True, None, new)]
    assert watched.feed(note(3, "delete")) == [("low", 3, [{"op": "delete", "row": row(body=new)}])]


def test_a_deleted_row_is_sent_without_its_text_and_told_with_it():
    watched = Watched([LOW])
    watched.feed(note(1, "insert"))
    assert watched.feed(note(2, "delete")) == [("low", 2, [{"op": "delete", "row": row()}])]
    assert watched.sent() == [(True, None, None)]


def test_a_row_that_changes_channel_and_text_at_once():
    everyone = [{"id": kind, "sql": f"SELECT * FROM notes WHERE kind = '{kind}'"} for kind in "ab"]
    watched = Watched(everyone)
    watched.feed(note(1, "insert"))
    assert watched.feed(note(2, kind="b", body=OTHER)) == [
        ("a", 2, [{"op": "delete", "row": row()}]),
        ("b", 2, [{"op": "insert", "row": row(kind="b", body=OTHER)}]),
    ]
    assert sorted(watched.sent()) == [(False, None, OTHER), (True, None, None)]


def test_a_first_answer_in_the_middle_of_a_batch_does_not_alter_what_came_before_it():
    watched = Watched([LOW, {**HIGH, "after": 3}])
    changes = [note(1, "insert"), note(2, body=OTHER), note(3, body=TEXT, price=9.0), note(4, price=9.5)]
    assert [changes[0].get("old", {}).get("body") for _, seq, changes in watched.feed(*changes) if seq and changes] == [
        None,
        TEXT,
        None,
        OTHER,
        TEXT,
        TEXT,
    ]


def test_the_last_value_that_is_short_travels_as_ever():
    for length in (LONG_BYTES_MIN - 1, LONG_BYTES_MIN):
        watched = Watched([LOW])
        text = "x" * length
        watched.feed(note(1, "insert", body=text))
        watched.feed(note(2, body=text, price=6.0))
        assert watched.sent() == ([(False, text, text)] if length < LONG_BYTES_MIN else [(True, None, None)])


def test_bytes_of_a_text_are_counted_as_bytes():
    watched = Watched([LOW])
    watched.feed(note(1, "insert", body="ü" * 33))
    watched.feed(note(2, body="ü" * 33, price=6.0))
    assert watched.sent() == [(True, None, None)]


def price_walk(length):
    rng = np.random.default_rng(3)
    price = 50.0
    yield note(1, "insert", price=price)
    for seq in range(2, length + 1):
        price += float(rng.normal(0, 1.0))
        yield note(seq, price=price)


def test_prices_that_move_beside_a_long_text_cost_a_fraction_of_its_bytes():
    subscriptions = [
        {"id": f"s{i}", "sql": f"SELECT * FROM notes WHERE price BETWEEN {5 * i} AND {5 * i + 5}"} for i in range(20)
    ]
    bytes_of, told = {}, {}
    for strategy in ("region", "whole"):
        watched = Watched(subscriptions, strategy=strategy)
        bytes_of[strategy], told[strategy] = 0, []
        for change in price_walk(200):
            told[strategy] += watched.feed(change)
            bytes_of[strategy] += watched.bytes()
    assert told["region"] == told["whole"]
    assert bytes_of["whole"] > 200 * 2 * len(TEXT) * 0.99
    assert bytes_of["region"] < bytes_of["whole"] / 6


def test_where_texts_are_short_not_a_byte_is_different():
    sent = {}
    for strategy in ("region", "whole"):
        watched = Watched([LOW, HIGH], strategy=strategy)
        watched.feed(note(1, "insert", body="short"), note(2, body="short", price=9.0), note(3, "delete"))
        (batch,) = watched.messages
        sent[strategy] = batch.seq.tolist(), batch.payload.to_pydict(), batch.regions.lo.tolist(), wire_size(batch)
    assert sent["region"] == sent["whole"]


@pytest.mark.parametrize(
    ("sql", "bulky"),
    [
        ("SELECT * FROM notes WHERE kind = 'a' AND price > 1", ("body", "data")),
        ("SELECT * FROM notes", ("kind", "body", "data")),
        ("SELECT price, body, id FROM notes WHERE price > 1", ("body",)),
        # Rows could not be told apart, or would move unheard, or the point does not say all.
        ("SELECT price, body FROM notes WHERE price > 1", ()),
        ("SELECT id, body FROM notes WHERE price > 1", ()),
        ("SELECT * FROM notes WHERE kind IN ('a', 'b')", ()),
        ("SELECT * FROM notes WHERE kind > 'a'", ()),
        ("SELECT id, price FROM notes WHERE price > 1", ()),
    ],
)
def test_which_columns_are_bulky(sql, bulky):
    catalog = parse_catalog(NOTES)
    assert space_of(family_of(Door(catalog).place(sql).form)[1], catalog).bulky == bulky


def test_rows_leave_the_shelf_when_the_last_holder_has_lost_them():
    watched = Watched([LOW, HIGH])
    watched.feed(note(1, "insert"), note(2, "insert", id=2, price=9.0), note(3, "insert", id=3, body="short"))
    assert watched.shelved() == {1, 2}
    watched.feed(note(4, id=2, price=20.0), note(5, price=7.0))
    assert watched.shelved() == {1, 2}
    watched.feed(note(6, id=2, price=30.0, body="short"), note(7, "delete"))
    assert watched.shelved() == set()


def test_rows_leave_the_shelf_with_the_last_subscription_of_their_channel():
    kinds = [{"id": kind, "sql": f"SELECT * FROM notes WHERE kind = '{kind}'"} for kind in "ab"]
    watched = Watched([*kinds, {"id": "b", "drop": True, "after": 3}])
    watched.feed(note(1, "insert"))
    watched.feed(note(2, "insert", id=2, kind="b"))
    assert watched.shelved() == {1, 2}
    watched.feed(note(3, "insert", id=3))
    assert watched.shelved() == {1, 3}


@settings(max_examples=40, deadline=None)
@given(long_value_workloads())
def test_the_shelf_keeps_current_values_of_current_rows_and_nothing_else(workload):
    watched = Watched(workload.subscriptions, workload.catalog_sql)
    tables = watched.engine._tables
    for line in workload.change_lines():
        watched.engine.feed([line])
        current = {row["id"]: row for row in tables._stores["notes"].rows().to_pylist()}
        for form in watched.engine._gateway._forms.values():
            space = space_of(form.form, workload.catalog)
            if not space.bulky:
                continue
            for rows in form.views._shelf._channels.values():
                for (key,), values in rows.items():
                    assert values == tuple(_if_long(current[key][name]) for name in space.bulky)


def _if_long(value):
    size = 0 if value is None else len(value.encode() if isinstance(value, str) else value)
    return value if size >= LONG_BYTES_MIN else None


def test_explain_says_which_values_may_stay_at_home():
    catalog = parse_catalog(NOTES)
    placed = Door(catalog).place("SELECT * FROM notes WHERE price > 1")
    form = family_of(placed.form)[1]
    lines = {
        name: dict(family("select").explanation.lines(form, placed, catalog, name)) for name in ("region", "whole")
    }
    assert lines["region"]["long values"].startswith("kind, body, data: 65 bytes or more")
    assert "long values" not in lines["whole"]
