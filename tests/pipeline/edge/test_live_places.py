"""A live job with gateways, next to it or behind brokers: what they tell is what one engine tells, whoever crashes, and whoever
loses all it had.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.errors import UsageError
from tidings.model.notification import NotificationBatch
from tidings.model.types import ColumnType
from tidings.pipeline.edge.broker import Broker
from tidings.pipeline.edge.dispatch import ENTERED, NOTICES, REGIONS, ROWS, PlaceOptions
from tidings.pipeline.edge.gateway import Gateway
from tidings.pipeline.edge.wire import Kind, Parcel, base_of, decode, encode, notices_of, pack_of
from tidings.pipeline.live import Live
from tidings.testing import FAMILY_WORKLOADS, Workload, with_transactions

FLAT = ("berlin", "paris", "rome")
TREE = ("eu/berlin", "eu/north/oslo", "eu/north/riga", "rome")
View = Counter[str]


def text(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode()


class Job:
    """A job in several shards, each with a dump and a log behind it, as durable engines and Spark have them."""

    def __init__(self, catalog_sql: str, names: tuple[str, ...], how: str, shards: int) -> None:
        receive, sender = (ROWS, REGIONS) if how == REGIONS else (how, ENTERED)
        self.options = PlaceOptions(names, receive, catalog_sql, sender)
        self.shards = shards
        self.catalog = Workload(catalog_sql, [], []).catalog
        self.lives = [self.life(number) for number in range(shards)]
        self.dumps: list[bytes | None] = [None] * shards
        self.log: list[tuple[list[bytes], list[bytes], list[bytes]]] = []
        """Micro-batches since the dumps: lines, events, and what was sent."""

    def life(self, number: int) -> Live:
        def is_own(id: str, place: str) -> bool:
            return zlib.crc32(place.partition("/")[0].encode()) % self.shards == number

        return Live(self.catalog, is_own=is_own, places=self.options)

    def feed(self, lines: list[bytes], events: list[bytes]) -> list[Parcel]:
        sent = [parcel for live in self.lives for parcel in live.apply(live.take(lines, events)).parcels]
        self.log.append((lines, events, [encode(parcel) for parcel in sent]))
        return sent

    def fold(self) -> None:
        self.dumps, self.log = [live.dump() for live in self.lives], []

    def restart(self) -> None:
        """All shards die. What they send again is the same: so they know who holds which rows, whichever was taken."""
        self.lives = [self.life(number) for number in range(self.shards)]
        for live, dump in zip(self.lives, self.dumps, strict=True):
            if dump is not None:
                live.load(dump)
        for lines, events, sent in self.log:
            again = [parcel for live in self.lives for parcel in live.apply(live.take(lines, events)).parcels]
            assert [meaning(decode(encode(parcel))) for parcel in again] == [meaning(decode(data)) for data in sent]


def meaning(parcel: Parcel) -> tuple[Any, ...]:
    """What a parcel says, whatever the order of subscriptions in it and the padding of their columns."""
    head = (
        parcel.kind,
        parcel.node,
        parcel.batch,
        parcel.previous,
        parcel.passed,
        parcel.created,
        parcel.ended,
        parcel.asked,
    )
    if parcel.kind is Kind.NOTICES:
        told = notices_of(parcel.body)
        return *head, None if told is None else told.lines()
    if parcel.kind is Kind.ROWS:
        pack = pack_of(parcel.body)
        return *head, pack.items, sorted((points.form, sorted(points.id.to_pylist())) for points in pack.points)
    base = base_of(parcel.body)
    return *head, sum(map(len, base.replica)), sorted(base.queries)


class Node:
    """A gateway or broker, what it was sent ever, and how much of that is behind its base."""

    def __init__(self, name: str, is_broker: bool) -> None:
        self.name, self.is_broker = name, is_broker
        self.sent: list[bytes] = []
        self.forget()

    def forget(self) -> None:
        self.base: bytes | None = None
        self.at = len(self.sent)
        self.told = 0
        """The last micro-batch that is in a gateway's log."""
        self.begin()

    def begin(self) -> None:
        self.held = Broker() if self.is_broker else Gateway()
        if self.base is not None:
            self.held.load(self.base)

    def fold(self) -> None:
        self.base, self.at = self.held.dump(), len(self.sent)


class Places:
    """Gateways and brokers, and the views of their subscribers."""

    def __init__(self, names: tuple[str, ...]) -> None:
        inner = dict.fromkeys(name[:at] for name in names for at, sign in enumerate(name) if sign == "/")
        self.nodes = {name: Node(name, name in inner) for name in (*names, *inner)}
        self.views: dict[str, dict[str, View]] = {name: {} for name in names}

    def feed(self, parcels: Sequence[Parcel]) -> list[str]:
        """The lines that are news: those of first bases, and of those after a loss, are checked against views."""
        told: list[NotificationBatch] = []
        for parcel in parcels:
            data = encode(parcel)
            self.nodes[parcel.node].sent.append(data)
            told += self.take(self.nodes[parcel.node], data)
        return NotificationBatch.merge(told).lines()

    def take(self, node: Node, data: bytes) -> list[NotificationBatch]:
        parcel, name = decode(data), node.name
        is_told = parcel.batch > node.told
        taken = node.held.take(parcel, is_told=is_told)
        if taken is None:
            return []
        if node.is_broker:
            assert not len(taken.told)
            below = [encode(parcel) for parcel in taken.parcels]
            for each in below:
                self.nodes[decode(each).node].sent.append(each)
            return [told for each in below for told in self.take(self.nodes[decode(each).node], each)]
        if not is_told:
            return []
        node.told = parcel.batch
        self.views[name] = folded({} if taken.is_whole else self.views[name], taken.told)
        for id in taken.ended:
            self.views[name].pop(id, None)
        return [] if taken.is_whole else [taken.told]

    def gateways(self) -> dict[str, str]:
        """The gateway of each subscription."""
        return {id: name for name in self.views for id in self.nodes[name].held.queries}

    def fold(self, name: str) -> None:
        if not self.nodes[name].held.needs_base:
            self.nodes[name].fold()

    def restart(self, name: str) -> None:
        """What a broker sends again everybody has had."""
        node = self.nodes[name]
        node.begin()
        for data in [*node.sent[node.at :]]:
            assert not self.take(node, data)

    def lose(self, name: str) -> None:
        self.nodes[name].forget()

    def seek(self, name: str) -> None:
        """All is lost, but not what was sent before: it is read again from the newest base on.

        What a broker sends then everybody has had, so nobody behind it hears of the loss.
        """
        node = self.nodes[name]
        node.forget()
        bases = [at for at, data in enumerate(node.sent) if decode(data).kind is Kind.BASE]
        node.at = bases[-1] if bases else 0
        for data in [*node.sent[node.at :]]:
            assert not self.take(node, data) or not node.is_broker


def folded(views: dict[str, View], told: NotificationBatch) -> dict[str, View]:
    for line in told.lines():
        record = json.loads(line)
        view = Counter() if record.get("snapshot") else views[record["subscription"]]
        for change in record["changes"]:
            if change["op"] != "insert":
                view[json.dumps(change["row" if change["op"] == "delete" else "old"])] -= 1
            if change["op"] != "delete":
                view[json.dumps(change["row"])] += 1
        assert min(view.values(), default=0) >= 0, line
        views[record["subscription"]] = +view
    return views


Step = tuple[int, str, int]
STEPS = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.sampled_from(["restart", "fold", "lose", "seek", "ask", "job", "base", "drop", "move"]),
        st.integers(0, 20),
    ),
    max_size=10,
)


def check(
    workload: Workload, names: tuple[str, ...], how: str, shards: int, sizes: list[int], steps: list[Step]
) -> None:
    whole, job, places = Live(workload.catalog), Job(workload.catalog_sql, names, how, shards), Places(names)
    nodes = sorted(places.nodes)
    lines = [text({k: v for k, v in record.items() if k != "seq"}) for record in workload.changes]
    wishes = list({record["id"]: record for record in workload.subscriptions if "sql" in record}.values())
    views: dict[str, View] = {}
    living: dict[str, str] = {}
    number = at = 0
    while at < len(lines) or wishes:
        size = sizes[number % len(sizes)]
        batch, at = lines[at : at + size], at + size
        events: list[dict[str, Any]] = []
        for wish in wishes[:2]:
            own = {"id": wish["id"], "sql": wish["sql"]} | ({"option": "net"} if number % 3 == 1 else {})
            own |= {"place": names[number % len(names)]} if number % 2 else {}
            events.append(own)
            living[wish["id"]] = wish["sql"]
        wishes = wishes[2:]
        gateway_of = places.gateways()
        for moment, what, which in steps:
            if moment != number:
                continue
            name = nodes[which % len(nodes)]
            if what in ("lose", "ask"):
                if what == "lose":
                    places.lose(name)
                events.append({"place": name, "resync": True})
            elif what in ("restart", "fold", "seek"):
                getattr(places, what)(name)
            elif what == "job":
                job.restart()
            elif what == "base":
                job.fold()
            elif living:
                id = sorted(living)[which % len(living)]
                if any(event.get("id") == id for event in events):
                    continue
                if what == "drop":
                    del living[id]
                    events.append({"id": id, "drop": True})
                elif name in names and gateway_of[id] != name:
                    events.append({"id": id, "sql": living[id], "replace": True, "place": name})
        moved = {event["id"] for event in events if event.get("replace")}
        # A move is a drop and a creation. A seq is taken where there are events, of whatever kind.
        alone = [{"id": id, "drop": True} for id in moved] + [event for event in events if "resync" not in event]
        found = whole.apply(whole.take(batch, [text(event) for event in alone or [{}] * len(events)]))
        told = places.feed(job.feed(batch, [text(event) for event in events]))
        views = folded(views, found.told)
        for id in set(views) - set(living):
            del views[id]
        assert not [node.name for node in places.nodes.values() if node.held.needs_base]
        expected = found.told.lines()
        if number and not any("resync" in event for event in events):
            assert told == expected
        assert {id: view for each in places.views.values() for id, view in each.items()} == views
        number += 1


def with_other_families(workload: Workload) -> Workload:
    """With subscriptions of several families on one of the tables, if it has a number."""
    numbers = (ColumnType.DOUBLE, ColumnType.BIGINT, ColumnType.INT)
    found = [
        (table.name, column.name)
        for table in workload.catalog.tables
        for column in table.columns
        if column.type in numbers and not table.has_constraints
    ]
    if not found:
        return workload
    table, column = found[-1]
    queries = {
        "other-topk": f"SELECT * FROM {table} ORDER BY {column} LIMIT 2",
        "other-drift": f"SELECT * FROM {table} WHERE moved({column}) >= 1",
        "other-select": f"SELECT * FROM {table} WHERE {column} >= 1",
    }
    more = [{"id": id, "sql": sql} for id, sql in queries.items()]
    return Workload(workload.catalog_sql, [*more, *workload.subscriptions], workload.changes)


@pytest.mark.parametrize("names", [FLAT, TREE], ids=["flat", "tree"])
@pytest.mark.parametrize("how", [ROWS, NOTICES, REGIONS])
@pytest.mark.parametrize("family", FAMILY_WORKLOADS)
def test_gateways_tell_what_one_engine_tells(family: str, how: str, names: tuple[str, ...]) -> None:
    plain = FAMILY_WORKLOADS[family]

    @settings(max_examples=15)
    @given(
        st.one_of(plain, with_transactions(plain), plain.map(with_other_families)),
        st.sampled_from([1, 2]),
        st.lists(st.integers(1, 9), min_size=1, max_size=3),
        STEPS,
    )
    def run(workload: Workload, shards: int, sizes: list[int], steps: list[Step]) -> None:
        check(workload, names, how, 1 if how == REGIONS else shards, sizes, steps)

    run()


def test_gateways_and_brokers_are_not_taken_for_each_other() -> None:
    catalog = "CREATE TABLE t (id INT PRIMARY KEY);"
    nothing = Live(Workload(catalog, [], []).catalog, places=PlaceOptions(("eu/berlin", "rome"), ROWS, catalog))
    sent = {parcel.node: parcel for parcel in nothing.apply(nothing.take([], [])).parcels}
    with pytest.raises(UsageError, match="'eu' has places below it, as 'eu/berlin'"):
        Gateway().take(sent["eu"])
    with pytest.raises(UsageError, match="'rome' is a gateway"):
        Broker().take(sent["rome"])


def test_a_broker_that_was_never_sent_anything_has_a_state() -> None:
    broker, other = Broker(), Broker()
    other.load(broker.dump())
    assert other.needs_base and other.dump() == broker.dump()


def test_quiet_places_are_told_that_time_passes() -> None:
    catalog = "CREATE TABLE t (id INT PRIMARY KEY);"
    live = Live(Workload(catalog, [], []).catalog, places=PlaceOptions(TREE, ROWS, catalog))
    places = Places(TREE)
    for number in range(600):
        line = text({"table": "t", "op": "upsert", "row": {"id": number}})
        places.feed(live.apply(live.take([line], [])).parcels)
    for node in places.nodes.values():
        assert node.held.passed > 300
        assert len(node.sent) == 3


def test_a_gateway_that_asks_without_need_keeps_no_row_that_nobody_counts_on() -> None:
    """It would not be told when such a row changes, and show it as it was."""
    catalog = "CREATE TABLE t (id INT PRIMARY KEY, n INT);"
    live = Live(Workload(catalog, [], []).catalog, places=PlaceOptions(("eu/berlin",), ROWS, catalog))
    places = Places(("eu/berlin",))

    def step(*changes: tuple[str, int, int], events: Sequence[dict[str, Any]] = ()) -> list[str]:
        lines = [text({"table": "t", "op": op, "row": {"id": id, "n": n}}) for op, id, n in changes]
        return places.feed(live.apply(live.take(lines, [text(event) for event in events])).parcels)

    step(events=[{"id": "best", "sql": "SELECT id, n FROM t ORDER BY n LIMIT 1"}])
    step(("upsert", 1, 1), ("upsert", 2, 0))
    for node in ("eu", "eu/berlin"):
        assert step(events=[{"place": node, "resync": True}]) == []
    step(("upsert", 1, 5), ("upsert", 3, 3))
    (line,) = step(("delete", 2, 0))
    assert [change["row"]["id"] for change in json.loads(line)["changes"] if change["op"] == "insert"] == [3]


@pytest.mark.parametrize("receive", [ROWS, NOTICES])
def test_tables_and_places_are_added_behind_a_broker(receive: str) -> None:
    catalogs = (
        "CREATE TABLE t (id INT PRIMARY KEY);",
        "CREATE TABLE t (id INT PRIMARY KEY); CREATE TABLE u (id INT PRIMARY KEY);",
    )
    names = ("eu/berlin",), ("eu/berlin", "eu/north/oslo")
    live = Live(Workload(catalogs[0], [], []).catalog, places=PlaceOptions(names[0], receive, catalogs[0]))
    grown = Live(Workload(catalogs[1], [], []).catalog, places=PlaceOptions(names[1], receive, catalogs[1]))
    places = Places(names[1])

    def step(live: Live, table: str, id: int, *events: dict[str, Any]) -> list[str]:
        line = text({"table": table, "op": "upsert", "row": {"id": id}})
        return places.feed(live.apply(live.take([line], [text(event) for event in events])).parcels)

    step(live, "t", 1, {"id": "a", "sql": "SELECT * FROM t", "place": "eu/berlin"})
    grown.load(live.dump())
    step(grown, "u", 1, {"id": "b", "sql": "SELECT * FROM u", "place": "eu/north/oslo"})
    told = [json.loads(line)["subscription"] for line in [*step(grown, "u", 2), *step(grown, "t", 2)]]
    assert told == ["b", "a"]
    assert [sum(view["a" if name == "eu/berlin" else "b"].values()) for name, view in places.views.items()] == [2, 2]
