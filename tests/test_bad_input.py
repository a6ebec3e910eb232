"""Bad input never stops the stream and never disappears: it ends in quarantine with a reason, and good records are unharmed."""

import json

import pytest

from bad_changes import BAD_CHANGES, CATALOG, ROW
from bad_subscriptions import BAD_SUBSCRIPTIONS
from tidings.engine import Engine
from tidings.model.quarantine import Quarantined, raw_text
from tidings.sql import parse_catalog

CATALOG_OF_TEST = parse_catalog(CATALOG)


def change(seq, op, **row):
    return {"seq": seq, "table": "items", "op": op, "row": row if op == "delete" else {**ROW, **row}}


BEFORE = [
    change(1, "insert", id=1),
    change(2, "insert", id=2, n=7),
]
PAIRS = {"seq": 3, "table": "pairs", "op": "insert", "row": {"a": "x", "n": 1, "v": 1.0}}
AFTER = [
    change(9, "update", id=1, n=7),
    change(10, "delete", id=2),
    {"seq": 11, "table": "pairs", "op": "update", "row": {"a": "x", "n": 1, "v": 2.0}},
    change(12, "insert", id=5, n=7),
]
GOOD_BEFORE = [json.dumps(record).encode() for record in (*BEFORE, PAIRS)]
GOOD_AFTER = [json.dumps(record).encode() for record in AFTER]
GOOD_SUBSCRIPTIONS = [
    b'{"id": "good", "sql": "SELECT * FROM items WHERE n BETWEEN 2 AND 7"}',
    b'{"id": "pairs", "sql": "SELECT v FROM pairs WHERE a IN (\'x\', \'y\')"}',
    b'{"id": "late", "sql": "SELECT id FROM items WHERE name = \'x\'", "after": 3}',
]


def run(subscriptions, batches):
    """(lines, refused subscriptions, refused changes) of a run, one batch after another."""
    engine = Engine(CATALOG_OF_TEST)
    at_door = engine.door.read(subscriptions)
    results = [*(engine.feed(batch) for batch in batches), engine.finish()]
    lines = [line for result in results for line in result.notifications.lines()]
    return lines, at_door, [entry for result in results for entry in result.refused]


UNDISTURBED = run(GOOD_SUBSCRIPTIONS, [[*GOOD_BEFORE, *GOOD_AFTER]])


def check_quarantined(entry: Quarantined, source, position, raw):
    assert (entry.source, entry.position, entry.raw) == (source, position, raw_text(raw))
    assert entry.reason.strip()
    written = json.loads(entry.line())
    assert written == {
        "seq": entry.seq,
        "reason": entry.reason,
        "raw": entry.raw,
        "source": source,
        "line": position + 1,
    }
    assert "\n" not in entry.line()


def test_the_good_records_alone_are_all_used():
    lines, at_door, refused = UNDISTURBED
    assert (at_door, refused) == ([], [])
    assert [json.loads(line)["seq"] for line in lines] == [0, 0, 2, 3, 3, 9, 10, 10, 11, 12, 12]


def test_there_are_many_kinds():
    assert len(BAD_CHANGES) + len(BAD_SUBSCRIPTIONS) >= 300
    assert len(set(BAD_CHANGES.values())) == len(BAD_CHANGES)
    assert len(set(BAD_SUBSCRIPTIONS.values())) == len(BAD_SUBSCRIPTIONS)


@pytest.mark.parametrize("name", BAD_CHANGES)
def test_bad_change(name):
    bad = BAD_CHANGES[name]
    lines, at_door, refused = run(GOOD_SUBSCRIPTIONS, [[*GOOD_BEFORE, bad, *GOOD_AFTER]])
    assert at_door == []
    assert len(refused) == 1
    check_quarantined(refused[0], "changes", len(GOOD_BEFORE), bad)
    assert lines == UNDISTURBED[0]


@pytest.mark.parametrize("name", BAD_SUBSCRIPTIONS)
def test_bad_subscription(name):
    bad = BAD_SUBSCRIPTIONS[name]
    lines, at_door, refused = run([*GOOD_SUBSCRIPTIONS, bad], [[*GOOD_BEFORE, *GOOD_AFTER]])
    assert refused == []
    assert len(at_door) == 1
    check_quarantined(at_door[0], "subscriptions", len(GOOD_SUBSCRIPTIONS), bad)
    assert lines == UNDISTURBED[0]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_all_bad_records_in_one_stream(size):
    bad_changes, bad_subscriptions = list(BAD_CHANGES.values()), list(BAD_SUBSCRIPTIONS.values())
    stream = [*GOOD_BEFORE, *bad_changes, b"", b"  ", *GOOD_AFTER]
    batches = [stream[start : start + size] for start in range(0, len(stream), size)]
    lines, at_door, refused = run([*GOOD_SUBSCRIPTIONS, *bad_subscriptions], batches)
    assert [entry.raw for entry in at_door] == [raw_text(bad) for bad in bad_subscriptions]
    assert [entry.raw for entry in refused] == [raw_text(bad) for bad in bad_changes]
    assert [entry.position for entry in refused] == [len(GOOD_BEFORE) + i for i in range(len(bad_changes))]
    assert lines == UNDISTURBED[0]


@pytest.mark.parametrize(
    ("bad", "seq"),
    [
        (b'{"seq": 5, "table": "nothing", "op": "insert", "row": {}}', 5),
        (b'{"seq": 5, "table": "items"}', 5),
        (b'{"seq": "5"}', None),
        (b"garbage", None),
    ],
)
def test_the_seq_is_kept_where_it_can_be_read(bad, seq):
    assert run([], [[bad]])[2][0].seq == seq


GOOD_ENVELOPES = {
    "create": {"op": "c", "before": None, "after": ROW, "source": {"table": "items"}, "seq": 5},
    "read": {"op": "r", "before": None, "after": ROW, "source": {"table": "items"}, "seq": 5},
    "wrapped": {"schema": {}, "payload": {"op": "c", "after": ROW, "source": {"table": "items", "lsn": 7}}},
    "unnumbered": {"op": "c", "after": ROW, "source": {"table": "items"}, "ts_ms": 1, "transaction": None},
    "numbered by its source": {"op": "c", "after": ROW, "source": {"table": "items", "seq": 6, "db": "shop"}},
}


@pytest.mark.parametrize("name", GOOD_ENVELOPES)
def test_good_envelopes_are_used(name):
    line = json.dumps(GOOD_ENVELOPES[name]).encode()
    lines, _, refused = run([b'{"id": "all", "sql": "SELECT * FROM items"}'], [[*GOOD_BEFORE, line]])
    assert refused == []
    last = json.loads(lines[-1])
    assert last["changes"] == [{"op": "insert", "row": ROW}]
    assert last["seq"] > 3


def test_after_the_last_possible_seq_an_unnumbered_record_is_refused():
    last = json.dumps(change(2**63 - 2, "insert", id=1)).encode()
    unnumbered = [json.dumps({**GOOD_ENVELOPES["unnumbered"], "ts_ms": i}).encode() for i in range(3)]
    lines, _, refused = run([b'{"id": "all", "sql": "SELECT id FROM items"}'], [[last, *unnumbered], [unnumbered[0]]])
    assert len(lines) == 2
    assert [entry.raw for entry in refused] == [raw_text(line) for line in [*unnumbered, unnumbered[0]]]
