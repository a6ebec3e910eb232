"""Strategy `entering`: what its messages carry is enough for exact notifications, and long columns travel only when new."""

import base64
import random

import numpy as np
import pytest

from research.servers.forms import spec_of
from research.servers.message import SnapshotBatch
from research.servers.space import places
from research.stages.beside_rows import MessageEngine
from research.stages.gateway import Gateway, GatewayWork
from research.stages.staged import StagedEngine, StagedResult
from tidings.model.change import SEQ_MAX
from tidings.model.codes import code_of
from tidings.model.notification import NotificationBatch
from tidings.model.points import Event, PointBatch
from tidings.model.types import ColumnType
from tidings.sql import parse_catalog
from tidings.testing import ENGINE_CHECKS, Workload, check_family, select_workloads
from tidings.testing.workload import chunks

PHOTO = base64.b64encode(random.Random(0).randbytes(10_000)).decode()
CATALOG = "CREATE TABLE products (id INT PRIMARY KEY, rating DOUBLE, note TEXT, photo BINARY);"


class Routed(StagedEngine):
    """Several receivers, each of which gets those messages alone that reach a point of its own."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._gateways = [Gateway(self.catalog) for _ in range(3)]
        self._lives = [[] for _ in self._gateways]
        """For each receiver (form, id, created after, dropped after, coordinates)."""

    def _deliver(self, onward, result, refused):
        told = []
        for place, (gateway, lives) in enumerate(zip(self._gateways, self._lives, strict=True)):
            own = [points.take(_at(points.id, place)) for points in onward.points]
            for points in PointBatch.by_form(own):
                for event, run in points.runs():
                    for id, after, coords in zip(
                        run.id.to_pylist(), run.after.tolist(), run.coords.tolist(), strict=True
                    ):
                        if event is Event.CREATE:
                            lives.append([points.form, id, after, SEQ_MAX, coords])
                        else:
                            life = next(one for one in lives if one[:2] == [points.form, id] and one[3] == SEQ_MAX)
                            life[3] = after
            messages = [self._heard(batch, lives) for batch in onward.messages]
            rows = [
                SnapshotBatch(each.form, each.seq[at], each.target.take(at), each.payload.take(at))
                for each in onward.snapshots
                for at in [_at(each.target, place)]
            ]
            told.append(gateway.apply(GatewayWork(own, messages, [some for some in rows if len(some)]))[0])
        return StagedResult(NotificationBatch.merge(told), super()._deliver(onward, result, refused).refused)

    def _heard(self, batch, lives):
        axes = places(spec_of(batch.form, self.catalog).space.axes, batch.axes).tolist()
        return batch.take(
            np.array(
                [
                    i
                    for i, seq in enumerate(batch.seq.tolist())
                    if any(
                        form == batch.form and born < seq <= died and batch.regions.contains(i, [at[j] for j in axes])
                        for form, _, born, died, at in lives
                    )
                ],
                np.int64,
            )
        )


def _at(ids, place):
    return np.array([i for i, id in enumerate(ids.to_pylist()) if sum(id.encode()) % 3 == place], np.int64)


def by_messages(catalog_sql, subscription_lines, change_lines, batch_sizes, strategy):
    """The lines that receivers make of messages alone."""
    engine = MessageEngine(parse_catalog(catalog_sql), {})
    engine._staged = Routed(parse_catalog(catalog_sql), {"select": "entering"})
    engine.door.read(subscription_lines)
    lines = []
    for chunk in chunks(change_lines, batch_sizes):
        lines += engine.feed(chunk).notifications.lines()
    return lines + engine.finish().notifications.lines()


@pytest.mark.extended
@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
def test_contract_of_receivers(check):
    check_family("select", select_workloads(), checks=[check], examples=60, engine=by_messages, strategies=["entering"])


class Traffic:
    """The messages of changes to products, and who is reached by which long columns."""

    def __init__(self, strategy, subscriptions, changes):
        workload = Workload(CATALOG, subscriptions, changes)
        self.messages = []
        engine = Routed(
            parse_catalog(CATALOG),
            {"select": strategy},
            on_work=lambda work: self.messages.extend(work.messages),
            counts_bytes=True,
        )
        engine.door.read(workload.subscription_lines())
        self.lines = [
            line for change in workload.change_lines() for line in engine.feed([change]).notifications.lines()
        ]
        self.bytes = engine.stats.message_bytes["select"]

    def told(self, id, seq):
        return [line for line in self.lines if f'"{id}", "seq": {seq}, "snapshot": false' in line]

    def reached(self, seq):
        """For each message with photos at a seq the ends of ranges of ratings that it reaches, as lists of (lo, hi)."""
        found = []
        for batch in self.messages:
            for i in (batch.seq == seq).nonzero()[0].tolist():
                if batch.payload.column("long.photo")[i].as_py() is not None:
                    boxes = slice(*batch.regions.starts[i : i + 2].tolist())
                    found.append((batch.regions.lo[boxes].tolist(), batch.regions.hi[boxes].tolist()))
        return found


def product(seq, rating, op="upsert", photo=PHOTO, note="a note"):
    return {
        "seq": seq,
        "table": "products",
        "op": op,
        "row": {"id": 1, "rating": rating, "note": note, "photo": photo},
    }


def rated(id, lo, hi, shown="*"):
    return {"id": id, "sql": f"SELECT {shown} FROM products WHERE rating BETWEEN {lo} AND {hi}"}


def test_an_unchanged_photo_is_sent_once():
    people = [rated("wide", 0, 100), rated("all", 0, 99.5, "id, rating")]
    changes = [product(seq, 1 + seq / 2) for seq in range(1, 73)]
    before, now = (Traffic(strategy, people, changes) for strategy in ("region", "entering"))
    assert now.lines == before.lines and len(now.lines) == 2 * 73
    assert before.bytes > 72 * 10_000
    assert 10_000 < now.bytes < 10_000 + 72 * 100


def test_a_photo_goes_to_those_who_enter_and_to_no_others():
    people = [rated("stays", 1, 9), rated("enters", 5, 9), rated("leaves", 1, 4), rated("never", 7, 9)]
    changes = [
        product(1, 3.0),
        product(2, 6.0),
        product(3, 6.5),
        product(4, 6.5, photo="AAE="),
        product(5, 2.0, photo="AAE="),
    ]
    now = Traffic("entering", people, changes)
    assert now.lines == Traffic("region", people, changes).lines
    points = {"stays": (1.0, 9.0), "enters": (5.0, 9.0), "leaves": (1.0, 4.0), "never": (7.0, 9.0)}

    def sent_to(seq):
        return {
            name
            for name, ends in points.items()
            for lows, highs in now.reached(seq)
            for low, high in zip(lows, highs, strict=True)
            if all(a <= code_of(ColumnType.DOUBLE, x) <= b for a, x, b in zip(low, ends, high, strict=True))
        }

    assert [sent_to(seq) for seq in range(1, 6)] == [
        {"stays", "leaves"},
        {"enters"},
        set(),
        {"stays", "enters"},
        {"leaves"},
    ]


def test_a_column_that_is_compared_for_a_while_is_held_all_the_same():
    people = [rated("stays", 1, 9), {"id": "notes", "sql": "SELECT id FROM products WHERE note LIKE 'a%'"}]
    gone = {"id": "notes", "drop": True, "after": 2}
    changes = [product(1, 3.0), product(2, 3.5, note="another"), product(3, 4.0, note="another")]
    traffic = [Traffic(strategy, [*people, gone], changes).lines for strategy in ("region", "entering")]
    assert traffic[0] == traffic[1]


@pytest.mark.parametrize(
    ("where", "before", "after"),
    [
        ("rating IN (1, 9)", (5, "a"), (9, "a")),
        ("note LIKE 'prefix08b%' AND rating > 0", (1, "prefix08a"), (1, "prefix08b")),
        ("rating IS NOT NULL", (None, "a"), (2, "a")),
    ],
)
def test_rows_that_a_point_covers_but_its_condition_does_not_select_enter_with_all_columns(where, before, after):
    people = [{"id": "s", "sql": f"SELECT * FROM products WHERE {where}", "after": 1}]
    changes = [product(seq, rating, note=note) for seq, (rating, note) in enumerate((before, after, after), 1)]
    now = Traffic("entering", people, changes)
    assert now.lines == Traffic("region", people, changes).lines
    assert PHOTO in now.told("s", 2)[0]


def test_what_is_held_goes_with_the_row():
    people = [rated("all", 0, 100)]
    changes = [product(1, 3.0), product(2, 4.0, "delete"), product(3, 5.0, photo="AAE="), product(4, 6.0, photo="AAE=")]
    now = Traffic("entering", people, changes)
    assert now.lines == Traffic("region", people, changes).lines
    assert '"photo": "AAE="' in now.told("all", 4)[0] and PHOTO not in now.told("all", 4)[0]
