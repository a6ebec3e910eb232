"""Join views against the client's rule in plain words: to the byte, whatever is delivered, in whatever order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import note as report
from hypothesis import strategies as st
from join_views_reference import Arrived, PlainViews, Values

from random_picks import some_of, turned
from research.servers.message import MessageBatch
from research.strategies.join.payload import ALL_SIDES, GONE, PLACED, SIDE, schema_of
from research.strategies.join.space import Space, space_of
from research.views.join import interned_rows, join_state
from research.views.join.view import JoinViews
from research.views.protocols import FirstRows, Pairs
from tidings.families.spec import Form
from tidings.model.blob import pack, unpack
from tidings.model.notification import change_tail, insert_change, snapshot_tail
from tidings.model.points import PointBatch
from tidings.model.region import Regions
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog

pytestmark = pytest.mark.extended


NUMBERS = """
CREATE TABLE r (id INT PRIMARY KEY, b INT, c DOUBLE, x DOUBLE);
CREATE TABLE s (id INT PRIMARY KEY, b INT, c DOUBLE, x DOUBLE);
CREATE TABLE t (id INT PRIMARY KEY, b INT, c DOUBLE, x DOUBLE);
"""
TEXTS = """
CREATE TABLE r (id TEXT PRIMARY KEY, b TEXT, c INT, x TEXT);
CREATE TABLE s (id TEXT, k INT, b TEXT, c INT, x TEXT, PRIMARY KEY (k, id));
CREATE TABLE t (id TEXT, k INT, b TEXT, c INT, x TEXT, PRIMARY KEY (id, k));
"""
QUERIES = [
    "SELECT * FROM r JOIN s USING (b)",
    "SELECT s.x FROM r JOIN s USING (b)",
    "SELECT r.x, s.id, r.id FROM r JOIN s ON r.b = s.b AND r.c = s.c",
    "SELECT * FROM r JOIN s ON r.b = s.b JOIN t ON t.c = s.c",
    "SELECT r.x, t.x FROM r JOIN s ON r.b = s.b JOIN t ON t.c = s.c AND t.b = r.b",
    "SELECT r.x FROM r JOIN s ON r.b = s.b JOIN t ON t.c = r.c WHERE s.x IN ({}, {})",
]
LIKE = [
    "SELECT * FROM r JOIN s USING (b) WHERE r.x BETWEEN 'a long text' AND 'a long texts' AND s.x IN ('a long text', 'b')",
    "SELECT * FROM r JOIN s USING (b) WHERE r.x BETWEEN 'a' AND 'b' AND s.x IN ('b', 'a long texts')",
]
Arrivals = list[Arrived]
# In no order.
SLOTS = Random(1).sample(range(40), 40)


@pytest.fixture(autouse=True, scope="module")
def little_is_kept_and_told_at_a_time() -> Iterator[None]:
    """Rows that nobody holds are forgotten early, and what is told comes in small portions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interned_rows, "SWEEP_MIN", 3)
        patch.setattr(join_state, "FOUND_MAX", 20)
        yield


def space_for(tables: str, query: str) -> tuple[Space, bytes]:
    """The space of a query, and the details of its point."""
    catalog = parse_catalog(tables)
    placed = Door(catalog).place(query)
    return space_of(Form.from_key(placed.form), catalog), placed.details


def payload_of(space: Space, arrivals: Arrivals) -> pa.RecordBatch:
    plain = []
    for one in arrivals:
        parts = {one[0]: one[1]} if isinstance(one[0], int) else dict(enumerate(one))
        number = one[0] if isinstance(one[0], int) else ALL_SIDES
        columns = {f"{at}.{name}": value for at, values in parts.items() for name, value in values.items()}
        plain.append({SIDE: number, **columns})
    return pa.RecordBatch.from_pylist(plain, schema_of(space))


def points_of(space: Space, details: list[bytes]) -> PointBatch:
    count, none = len(details), np.zeros(len(details), np.int64)
    coords = np.zeros((count, space.dims), np.int64)
    ids = pa.array([""] * count, pa.string())
    is_home = np.ones(count, np.bool_)
    return PointBatch(space.key, none.astype(np.int8), none, none, ids, (), coords, is_home, pa.array(details))


def messages_of(space: Space, seqs: list[int], arrivals: Arrivals) -> MessageBatch:
    """Messages whose regions nobody looks at any more."""
    none = np.zeros((0, space.dims), np.int64)
    regions = Regions(none, none, np.zeros(0, np.uint8), np.zeros(len(seqs) + 1, np.int64))
    return MessageBatch(space.key, np.array(seqs, np.int64), (), regions, payload_of(space, arrivals))


def pairs_of(deliveries: list[tuple[int, int, int]]) -> Pairs:
    message, slot, tags = np.array(deliveries, np.int64).reshape(-1, 3).T
    return Pairs(message, slot, tags.astype(np.uint8))


def values_of(type: pa.DataType) -> list[Any]:
    if pa.types.is_string(type):
        return ["a long text", "a long texts", "b", "b", None]
    return [0.0, 1.0, None] if pa.types.is_floating(type) else [1, 2, None]


class World:
    """Views, and plain ones beside them that get the same."""

    def __init__(self, space: Space, details: list[bytes], random: Random) -> None:
        self.random = random
        self.space, self.details = space, details
        self.views, self.plain = JoinViews(space), PlainViews(space)
        self.notes: dict[int, bytes] = {}
        """Details by slot."""
        self.whole_share = self.random.choice([0.0, 0.0, 0.3, 1.0])
        self.state: dict[tuple[int, int], Values] = {}
        """What (side, number of a key) was last; sometimes it comes again."""
        schemas = [side.table.schema for side in space.sides]
        self.rows = [list(product(*(values_of(schema.field(name).type) for name in "bcx"))) for schema in schemas]
        """All values that (b, c, x) of a side may have."""
        self.seq = 0

    def values(self, side: int, number: int) -> Values:
        if (side, number) in self.state and self.random.randrange(10) >= 6:
            return self.state[side, number]
        table = self.space.sides[side].table
        key = f"{number:04}" if pa.types.is_string(table.schema.field("id").type) else number
        row = dict(zip("bcx", self.random.choice(self.rows[side]), strict=True), id=key, k=number % 2)
        self.state[side, number] = {name: row[name] for name in self.space.sides[side].payload}
        return self.state[side, number]

    def arrival(self) -> Arrived:
        """A row of one of few keys."""
        sides = range(len(self.space.sides))
        if self.random.randrange(10) < 10 * self.whole_share:
            return tuple(self.values(side, self.random.randrange(2)) for side in sides)
        number, side = divmod(self.random.randrange(4 * len(sides)), len(sides))
        return side, self.values(side, number)

    def create(self) -> None:
        free = [slot for slot in SLOTS if slot not in self.plain.rows]
        slots = turned(self.random, free)[: self.random.randrange(1, 4)]
        details = [self.random.choice(self.details) for _ in slots]
        self.views.create(np.array(slots), points_of(self.space, details))
        for slot, note in zip(slots, details, strict=True):
            self.plain.create(slot, note)
            self.notes[slot] = note
        self.start(slots)

    def start(self, slots: list[int]) -> None:
        """Snapshots of views, new or not, each after one of two seqs: a row is the same for all after one."""
        self.seq += 2
        seqs = [self.seq - self.random.randrange(2) for _ in slots]
        states = {seq: self.arrivals() for seq in sorted(set(seqs))}
        parts = [turned(self.random, some_of(self.random, states[seq])) for seq in seqs]
        parts = [part + part[:2] for part in parts]
        expected = [self.plain.start(*each) for each in zip(slots, seqs, parts, strict=True)]
        starts = np.cumsum([0, *map(len, parts)])
        rows = payload_of(self.space, [one for part in parts for one in part]) if starts[-1] else None
        assert self.views.snapshots(FirstRows(np.array(slots), np.array(seqs), starts, rows)) == expected

    def arrivals(self) -> Arrivals:
        """Rows of one moment: all of a key are the same."""
        fixed: dict[tuple[int, Any], Values] = {}
        return [
            (one[0], fixed.setdefault((one[0], one[1]["id"]), one[1]))
            if isinstance(one[0], int)
            else tuple(fixed.setdefault((side, values["id"]), values) for side, values in enumerate(one))
            for one in (self.arrival() for _ in range(self.random.randrange(12)))
        ]

    def start_anew(self) -> None:
        """What comes after a gap."""
        slots = some_of(self.random, list(self.plain.rows))
        if slots:
            self.start(slots)

    def drop(self) -> None:
        slots = turned(self.random, list(self.plain.rows))[: self.random.randrange(4)]
        self.views.drop(np.array(slots, np.int64))
        for slot in slots:
            self.plain.drop(slot)

    def tell(self) -> None:
        arrivals: Arrivals = []
        seqs: list[int] = []
        deliveries: list[tuple[int, int, int]] = []
        for _ in range(self.random.randrange(1, 5)):
            self.seq += self.random.randrange(1, 3)
            for _ in range(self.random.choice([1, 1, 3])):
                tags = self.random.choice([[PLACED], [PLACED, GONE, PLACED | GONE], [GONE]])
                slots = some_of(self.random, turned(self.random, list(self.plain.rows)))
                tags = turned(self.random, tags)
                deliveries += [(len(seqs), slot, tags[at % len(tags)]) for at, slot in enumerate(slots)]
                arrivals.append(self.arrival())
                seqs.append(self.seq)
        expected = {}
        for seq in sorted(set(seqs)):
            for slot in self.plain.rows:
                own = [(arrivals[at], tag) for at, to, tag in deliveries if to == slot and seqs[at] == seq]
                tail = self.plain.tell(slot, seq, own)
                if tail:
                    expected[seq, slot] = tail
        # Those that are only dropped come with nothing but their keys.
        for at in range(len(seqs)):
            if not any(tag & PLACED for to, _, tag in deliveries if to == at):
                arrivals[at] = self.keys_of(arrivals[at])
        told = self.views.tell(messages_of(self.space, seqs, arrivals), pairs_of(deliveries))
        tails = [told.tails[tail] for tail in told.tail.tolist()]
        lines = list(zip(zip(told.seq.tolist(), told.slot.tolist(), strict=True), tails, strict=True))
        assert len(dict(lines)) == len(lines)
        assert dict(lines) == expected

    def keys_of(self, one: Arrived) -> Arrived:
        def keys(side: int, values: Values) -> Values:
            return {name: values[name] for name in self.space.sides[side].table.key}

        if isinstance(one[0], int):
            return one[0], keys(*one)
        return tuple(keys(side, values) for side, values in enumerate(one))

    def restart(self) -> None:
        """Views made again from what they dump, in other slots."""
        slots = list(self.plain.rows)
        state = unpack(pack(self.views.dump(np.array(slots, np.int64))))
        moved = dict(zip(slots, turned(self.random, SLOTS), strict=False))
        self.views = JoinViews(self.space)
        if slots:
            now = np.array(list(moved.values()))
            self.views.create(now, points_of(self.space, [self.notes[slot] for slot in slots]))
            self.views.load(now, state)
        self.notes = {moved[slot]: self.notes[slot] for slot in slots}
        self.plain.move(moved)


def check(world: World) -> None:
    """Views hold the rows they should, and show what those join to."""
    assert len(world.views._state) == sum(map(len, (*world.plain.rows.values(), *world.plain.wholes.values())))


CASES = [
    *((NUMBERS, query.format(0, 1)) for query in QUERIES),
    *((TEXTS, query.format("'b'", "'a long texts'")) for query in QUERIES),
    (TEXTS, LIKE[0]),
]


@pytest.mark.parametrize(("tables", "query"), CASES)
@settings(max_examples=8)
@given(st.randoms(use_true_random=False))
def test_any_course_of_events_gives_the_lines_of_plain_views(tables: str, query: str, random: Random) -> None:
    queries = LIKE if query in LIKE else [query]
    spaces, details = zip(*(space_for(tables, one) for one in queries), strict=True)
    world = World(spaces[0], list(details), random)
    world.create()
    for _ in range(random.randint(1, 26)):
        event = random.choice(["create", "tell", "tell", "tell", "start_anew", "restart", "drop"])
        report(event)
        if event != "create" or len(world.plain.rows) < 8:
            getattr(world, event)()
        check(world)


def views_of(query: str, count: int, tables: str = NUMBERS) -> tuple[Space, JoinViews]:
    """Views of one query, in the first slots."""
    space, details = space_for(tables, query)
    views = JoinViews(space)
    views.create(np.arange(count), points_of(space, [details] * count))
    return space, views


def row(side: int, id: int, b: Any, c: Any = 0.0, x: Any = 0.0) -> Arrived:
    return side, {"id": id, "b": b, "c": c, "x": x}


def tell(space: Space, views: JoinViews, seq: int, arrived: Arrivals, slots: range) -> list[tuple[int, str]]:
    """All rows are placed with all slots."""
    pairs = pairs_of([(at, slot, PLACED) for at in range(len(arrived)) for slot in slots])
    told = views.tell(messages_of(space, [seq] * len(arrived), arrived), pairs)
    return [(slot, told.tails[tail]) for slot, tail in zip(told.slot.tolist(), told.tail.tolist(), strict=True)]


@pytest.mark.parametrize(("tables", "b"), [(NUMBERS, 0), (TEXTS, "")])
def test_null_is_equal_to_nothing_not_even_to_null(tables: str, b: Any) -> None:
    space, views = views_of("SELECT r.id, s.b FROM r JOIN s ON r.b = s.b AND r.c = s.c", 1, tables)
    names = [side.payload for side in space.sides]
    id, key = (1, '{"id": 1, "b": 0}') if b == 0 else ("1", '{"id": "1", "b": ""}')
    sent: Arrivals = [
        (side, {name: value for name, value in {"id": id, "k": 0, "b": b, "c": c}.items() if name in names[side]})
        for b, c in ((None, 0), (b, None), (None, None))
        for side in (0, 1)
    ]
    for seq in range(3):
        assert tell(space, views, seq, sent[2 * seq : 2 * seq + 2], range(1)) == []
    # A null is not zero either, which it has the code of, nor the empty text.
    (_, left), (_, right) = sent[:2]
    assert tell(space, views, 4, [(0, {**left, "b": b}), (1, right)], range(1)) == []
    assert tell(space, views, 5, [(1, {**right, "b": b})], range(1)) == [(0, change_tail(5, insert_change(key)))]


def test_nothing_delivered_tells_nothing() -> None:
    space, views = views_of("SELECT r.id FROM r JOIN s USING (b)", 1)
    assert tell(space, views, 1, [row(0, 1, 1)], range(0)) == []
    assert tell(space, views, 1, [], range(1)) == []


def test_a_row_that_came_whole_counts_rather_than_one_of_the_same_keys() -> None:
    space, views = views_of("SELECT s.x FROM r JOIN s USING (b)", 1)
    (_, left), (_, right) = row(0, 1, 1), row(1, 1, 1)
    names = [side.payload for side in space.sides]
    parts = [{name: values[name] for name in own} for values, own in zip((left, right), names, strict=True)]
    sent = [(0, parts[0]), (parts[0], {**parts[1], "x": 2.0}), (1, parts[1])]
    assert tell(space, views, 1, sent, range(1)) == [(0, change_tail(1, insert_change('{"x": 2.0}')))]


def test_a_snapshot_after_a_gap_takes_the_place_of_what_was_held() -> None:
    space, views = views_of("SELECT r.id FROM r JOIN s USING (b)", 6)
    slot = np.array([5])
    for seq, ids in ((1, [1, 2]), (7, [3]), (8, [])):
        sent = [row(0, id, 1) for id in ids] + [row(1, 9, 1)] * bool(ids)
        first = FirstRows(slot, np.array([seq]), np.array([0, len(sent)]), payload_of(space, sent) if sent else None)
        assert views.snapshots(first) == [snapshot_tail(seq, [f'{{"id": {id}}}' for id in ids])]
    assert tell(space, views, 9, [row(0, 4, 1)], range(5, 6)) == []


def test_those_whose_answers_change_alike_share_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_state, "FOUND_MAX", 10_000)
    space, views = views_of("SELECT * FROM r JOIN s USING (b)", 1000)
    # Half of them hold one row of s, half another.
    tell(space, views, 1, [row(1, 1, 1)], range(500))
    tell(space, views, 2, [row(1, 2, 1)], range(500, 1000))
    pairs = pairs_of([(0, slot, PLACED) for slot in range(1000)])
    told = views.tell(messages_of(space, [3], [row(0, 1, 1)]), pairs)
    assert len(told.slot) == 1000
    assert len(told.tails) == 2


def test_rows_that_nobody_holds_are_forgotten() -> None:
    space, views = views_of("SELECT * FROM r JOIN s USING (b)", 101)
    for note in range(300):
        tell(space, views, note, [row(note % 2, note % 7, note, x=float(note))], range(1))
        assert len(views._rows) <= 7 * 2 * 2
    assert len(views._rows._interner) <= 7 * 2 * 2 * 2
    for slot in range(1, 101):
        tell(space, views, 300, [row(0, slot, slot)], range(slot, slot + 1))
    # Nothing new comes, but most of those who hold rows go.
    views.drop(np.arange(1, 101))
    assert len(views._rows) <= 7 * 2 * 2
    views.drop(np.arange(1))
    assert len(views._rows) == 0
