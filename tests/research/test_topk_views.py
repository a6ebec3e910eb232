"""Top-k views against the client's rule in plain words: to the byte, whatever is delivered, in whatever order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_picks import some_of, turned
from research.servers.message import MessageBatch
from research.strategies.topk.reformulate import GONE, PLACED
from research.views.protocols import FirstRows, Pairs
from research.views.topk import view_rows
from research.views.topk.view import TopkViews
from tidings.families.spec import Form
from tidings.families.topk.subscription import Space, space_of
from tidings.model.blob import pack, unpack
from tidings.model.channel import channel_columns
from tidings.model.codes import code_of
from tidings.model.notification import change_tail, delete_change, insert_change, snapshot_tail, update_change
from tidings.model.points import PointBatch
from tidings.model.region import Regions
from tidings.model.render import render_rows
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog

pytestmark = pytest.mark.extended


NUMBERS = "CREATE TABLE stocks (id INT PRIMARY KEY, kind TEXT, per DOUBLE, note DOUBLE);"
TEXTS = "CREATE TABLE stocks (id TEXT PRIMARY KEY, kind TEXT, per DOUBLE, note DOUBLE);"
SEVERAL = "CREATE TABLE stocks (id INT, kind TEXT, per DOUBLE, note DOUBLE, PRIMARY KEY (id, kind));"
QUERIES = [
    "SELECT * FROM stocks ORDER BY per LIMIT 3",
    "SELECT note FROM stocks ORDER BY per DESC LIMIT 2",
    "SELECT kind, note FROM stocks ORDER BY per LIMIT 20",
    "SELECT id, note FROM stocks WHERE kind IN ('a', 'b', 'c') ORDER BY per LIMIT 2",
    "SELECT note FROM stocks WHERE kind IN ('a', 'b', 'c') ORDER BY per DESC LIMIT 4",
]
KINDS = "abc"
# What (per, note) of a row may be.
NUMBERS_OF_ROWS = list(product([0.0, 1.0, 2.0, -1.5], [0.0, 1.0, 2.0]))
# In no order.
SLOTS = Random(1).sample(range(100), 100)
Row = dict[str, Any]
Held = list[tuple[int, Any, str]]
"""Rows in order: rank, key, text. Of one key there is one row."""


@pytest.fixture(autouse=True, scope="module")
def rows_that_nobody_holds_are_forgotten_early() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_rows, "SWEEP_MIN", 3)
        yield


class Plain:
    """Views as lists of rows; a subscription has a list for each of its channels."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.held: dict[int, dict[str, Held]] = {}
        """Home slot -> channel -> rows."""
        self.known: dict[str, tuple[int, Any, str]] = {}

    def read(self, row: Row) -> tuple[int, Any, str]:
        known = self.known.get(repr(row))
        if known is None:
            known = self.known[repr(row)] = self._read(row)
        return known

    def _read(self, row: Row) -> tuple[int, Any, str]:
        space, names = self.space, self.space.projection
        code = code_of(space.rank.type, row[space.rank.name])
        batch = batch_of(space, [row])
        (text,) = render_rows(names, [batch.column(name) for name in names], 1)
        return ~code if space.descending else code, tuple(row[name] for name in space.table.key), text

    def shown(self, home: int) -> Held:
        return sorted(row for held in self.held[home].values() for row in held)[: self.space.k]

    def start(self, home: int, seq: int, rows: list[Row]) -> str:
        for channel, held in self.held[home].items():
            held[:] = sorted(self.read(row) for row in rows if channel in ("", row["kind"]))[: self.space.k]
        return snapshot_tail(seq, sorted(text for _, _, text in self.shown(home)))

    def deliver(self, home: int, channel: str, row: Row, *, is_gone: bool) -> None:
        new = self.read(row)
        held = [other for other in self.held[home][channel] if other[1] != new[1]]
        self.held[home][channel] = held if is_gone else sorted([*held, new])[: self.space.k]


def difference(old: Held, new: Held) -> str:
    """Changes from one answer to the other as multisets of what is shown; empty if there are none."""
    gone, come = Counter(row[2] for row in old), Counter(row[2] for row in new)
    gone, come = gone - come, come - gone
    changes = []
    known = {row[1]: row for row in old}
    for row in new:
        before = known.get(row[1])
        if before is not None and gone[before[2]] > 0 and come[row[2]] > 0:
            gone[before[2]] -= 1
            come[row[2]] -= 1
            changes.append(update_change(before[2], row[2]))
    for rows, left, change in ((old, gone, delete_change), (new, come, insert_change)):
        for row in rows:
            if left[row[2]] > 0:
                left[row[2]] -= 1
                changes.append(change(row[2]))
    return ", ".join(changes)


def space_for(table: str, query: str) -> Space:
    catalog = parse_catalog(table)
    return space_of(Form.from_key(Door(catalog).place(query).form), catalog)


def batch_of(space: Space, rows: list[Row]) -> pa.RecordBatch:
    fields = [space.table.schema.field(name) for name in space.payload]
    return pa.RecordBatch.from_pylist(rows, pa.schema(fields))


def points_of(space: Space, channels: list[str], home: list[bool]) -> PointBatch:
    count, none = len(channels), np.zeros(len(channels), np.int64)
    columns = channel_columns(space.channel_types, [(channel,) for channel in channels])
    ids, details = pa.array([""] * count, pa.string()), pa.array([b""] * count, pa.binary())
    coords = np.zeros((count, 2), np.int64)
    return PointBatch(space.key, none.astype(np.int8), none, none, ids, (*columns,), coords, np.array(home), details)


def messages_of(space: Space, seqs: list[int], rows: list[Row]) -> MessageBatch:
    """Messages whose regions nobody looks at any more."""
    none = np.zeros((0, 2), np.int64)
    regions = Regions(none, none, np.zeros(0, np.uint8), np.zeros(len(rows) + 1, np.int64))
    return MessageBatch(space.key, np.array(seqs, np.int64), (), regions, batch_of(space, rows))


class World:
    """Views, and plain ones beside them that get the same."""

    def __init__(self, space: Space, random: Random) -> None:
        self.random = random
        self.space = space
        self.views, self.plain = TopkViews(space), Plain(space)
        self.slots: dict[tuple[int, str], int] = {}
        """(home, channel) -> slot."""
        self.seq = 0

    def row(self, number: int) -> Row:
        """A row of one of few keys. On which channel it is depends on its key."""
        key = number if self.space.table.column("id").type.name != "TEXT" else f"{number:08}{number}"
        per, note = self.random.choice(NUMBERS_OF_ROWS)
        return {"id": key, "kind": KINDS[number % 3], "per": per, "note": note}

    def rows(self) -> list[Row]:
        return [self.row(number) for number in some_of(self.random, range(8))]

    def create(self) -> None:
        count = self.random.randrange(1, 4)
        channels = KINDS if self.space.has_several_channels else [""]
        free = [slot for slot in SLOTS if slot not in self.slots.values()]
        slots = turned(self.random, free)[: count * len(channels)]
        self.seq += 1
        for i in range(count):
            own = slots[i * len(channels) : (i + 1) * len(channels)]
            self.slots.update(((own[0], channel), slot) for channel, slot in zip(channels, own, strict=True))
            self.plain.held[own[0]] = {channel: [] for channel in channels}
        home = [at % len(channels) == 0 for at in range(len(slots))]
        self.views.create(np.array(slots, np.int64), points_of(self.space, [*channels] * count, home))
        self.start(slots[:: len(channels)])

    def start(self, homes: list[int]) -> None:
        """Snapshots of views, new or not, each after one of two seqs."""
        states = {self.seq - 1: self.rows(), self.seq: self.rows()}
        seqs = [self.random.choice(list(states)) for _ in homes]
        parts = [turned(self.random, some_of(self.random, states[seq])) for seq in seqs]
        expected = [self.plain.start(*each) for each in zip(homes, seqs, parts, strict=True)]
        starts = np.cumsum([0, *map(len, parts)])
        rows = batch_of(self.space, [row for part in parts for row in part]) if starts[-1] else None
        assert self.views.snapshots(FirstRows(np.array(homes), np.array(seqs), starts, rows)) == expected

    def start_anew(self) -> None:
        """What comes after a gap."""
        homes = some_of(self.random, list(self.plain.held))
        if homes:
            self.start(homes)

    def drop(self) -> None:
        homes = turned(self.random, list(self.plain.held))[: self.random.randrange(4)]
        for home in homes:
            del self.plain.held[home]
        slots = [slot for (home, _), slot in self.slots.items() if home in homes]
        self.views.drop(np.array(slots, np.int64))
        self.slots = {place: slot for place, slot in self.slots.items() if place[0] not in homes}

    def tell(self) -> None:
        rows, seqs = [], []
        deliveries: list[tuple[int, tuple[int, str], bool]] = []
        for _ in range(self.random.randrange(1, 4)):
            self.seq += 1
            for _ in range(self.random.randrange(1, 4)):
                is_again = bool(rows) and self.random.randrange(10) >= 7
                row = self.random.choice(rows) if is_again else self.row(self.random.randrange(8))
                places = some_of(self.random, [place for place in self.slots if place[1] in ("", row["kind"])])
                gone = some_of(self.random, places) if self.random.randrange(2) else []
                deliveries += [(len(rows), place, place in gone) for place in places]
                rows.append(row)
                seqs.append(self.seq)
        expected = {}
        for seq in sorted(set(seqs)):
            before = {home: self.plain.shown(home) for home in self.plain.held}
            for message, (home, channel), is_gone in deliveries:
                if seqs[message] == seq:
                    self.plain.deliver(home, channel, rows[message], is_gone=is_gone)
            for home, old in before.items():
                changes = difference(old, self.plain.shown(home))
                if changes:
                    expected[seq, home] = change_tail(seq, changes)
        message, slot, tags = (
            np.array(column, np.int64)
            for column in (
                [message for message, _, _ in deliveries],
                [self.slots[place] for _, place, _ in deliveries],
                [GONE if is_gone else PLACED for _, _, is_gone in deliveries],
            )
        )
        told = self.views.tell(messages_of(self.space, seqs, rows), Pairs(message, slot, tags.astype(np.uint8)))
        tails = [told.tails[tail] for tail in told.tail.tolist()]
        lines = list(zip(zip(told.seq.tolist(), told.slot.tolist(), strict=True), tails, strict=True))
        assert len(dict(lines)) == len(lines)
        assert dict(lines) == expected

    def restart(self) -> None:
        """Views made again from what they dump, in other slots."""
        state = unpack(pack(self.views.dump(np.array(list(self.slots.values()), np.int64))))
        moved = turned(self.random, SLOTS)[: len(self.slots)]
        homes = [home for home, _ in self.slots]
        home_of = {home: moved[homes.index(home)] for home in homes}
        is_home = [place[0] == slot for place, slot in self.slots.items()]
        self.views = TopkViews(self.space)
        if moved:
            points = points_of(self.space, [channel for _, channel in self.slots], is_home)
            self.views.create(np.array(moved, np.int64), points)
            self.views.load(np.array(moved, np.int64), state)
        self.slots = {(home_of[home], channel): slot for (home, channel), slot in zip(self.slots, moved, strict=True)}
        self.plain.held = {home_of[home]: held for home, held in self.plain.held.items()}


def check(world: World) -> None:
    """Views hold the rows they should."""
    state = world.views.dump(np.array(list(world.slots.values()), np.int64))
    texts = state["versions"]["texts"].to_pylist()
    held = [texts[number] for number in state["held"]]
    expected = [[row[2] for row in world.plain.held[home][channel]] for home, channel in world.slots]
    assert [held[start:stop] for start, stop in pairwise(np.cumsum([0, *state["sizes"]]))] == expected


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("table", [NUMBERS, TEXTS, SEVERAL], ids=["number", "text", "several"])
@settings(max_examples=12)
@given(st.randoms(use_true_random=False, note_method_calls=True))
def test_any_course_of_events_gives_the_lines_of_plain_views(table: str, query: str, random: Random) -> None:
    world = World(space_for(table, query), random)
    world.create()
    for _ in range(random.randint(1, 30)):
        event = random.choice(["create", "tell", "tell", "tell", "start_anew", "restart", "drop"])
        if event != "create" or len(world.plain.held) < 10:
            getattr(world, event)()
        check(world)


def test_a_snapshot_after_a_gap_takes_the_place_of_what_was_held() -> None:
    space = space_for(NUMBERS, "SELECT id FROM stocks ORDER BY per LIMIT 2")
    views, slot = TopkViews(space), np.array([5])
    views.create(slot, points_of(space, [""], [True]))
    rows = [{"id": number, "kind": "a", "per": float(number), "note": 0.0} for number in range(4)]
    for seq, first in ((1, rows[:2]), (7, rows[2:]), (8, [])):
        starts = np.array([0, len(first)])
        batch = batch_of(space, first) if first else None
        (tail,) = views.snapshots(FirstRows(slot, np.array([seq]), starts, batch))
        assert tail == snapshot_tail(seq, [f'{{"id": {row["id"]}}}' for row in first])
    told = views.tell(messages_of(space, [9], rows[:1]), Pairs(np.array([0]), slot, np.array([PLACED], np.uint8)))
    assert [told.tails[tail] for tail in told.tail] == [change_tail(9, insert_change('{"id": 0}'))]


def test_those_whose_answers_change_alike_share_one_line() -> None:
    space = space_for(NUMBERS, "SELECT id FROM stocks ORDER BY per LIMIT 2")
    views, slots = TopkViews(space), np.arange(1000)
    views.create(slots, points_of(space, [""] * 1000, [True] * 1000))
    rows = [{"id": number, "kind": "a", "per": float(number), "note": 0.0} for number in range(4)]
    # Half of them hold rows 1 and 2, half rows 1 and 3: row 0 takes the place of one or the other.
    first = batch_of(
        space, [rows[1 + 2 * at * (slot % 2) + at * (1 - slot % 2)] for slot in range(1000) for at in (0, 1)]
    )
    views.snapshots(FirstRows(slots, np.ones(1000, np.int64), np.arange(0, 2001, 2), first))
    pairs = Pairs(np.zeros(1000, np.int64), slots, np.full(1000, PLACED, np.uint8))
    told = views.tell(messages_of(space, [2], rows[:1]), pairs)
    assert len(told.slot) == 1000
    assert len(told.tails) == 2


def test_ties_follow_the_keys_when_labels_are_given_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key goes between the first one and all others, so that labels run out of room."""
    monkeypatch.setattr(view_rows, "SWEEP_MIN", 1000)
    world = World(space_for(TEXTS, "SELECT id FROM stocks ORDER BY per LIMIT 20"), Random(0))
    world.create()
    for count in range(80):
        key = "a" * count + "b" if count else "a"
        monkeypatch.setattr(world, "row", lambda _, key=key: {"id": key, "kind": "a", "per": 1.0, "note": 0.0})
        world.tell()
        check(world)


def test_rows_that_nobody_holds_are_forgotten() -> None:
    space = space_for(TEXTS, "SELECT * FROM stocks ORDER BY per LIMIT 2")
    views, slots = TopkViews(space), np.arange(101)
    views.create(slots, points_of(space, [""] * 101, [True] * 101))

    def place(chosen: list[int], notes: list[int]) -> None:
        rows = [{"id": f"{note % 7}", "kind": "a", "per": 0.0, "note": float(note)} for note in notes]
        pairs = Pairs(np.arange(len(chosen)), np.array(chosen), np.full(len(chosen), PLACED, np.uint8))
        views.tell(messages_of(space, notes, rows), pairs)

    for note in range(1000):
        place([0], [note])
    assert len(views._rows) < 10
    assert len(views._rows.texts) < 20
    place([*range(1, 101)], [*range(1, 101)])
    assert len(views._rows) >= 100
    # Nothing new comes, but most of those who hold rows go.
    views.drop(slots[1:])
    assert len(views._rows) <= 2
    views.drop(slots[:1])
    assert len(views._rows) == 0
