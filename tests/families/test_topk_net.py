"""Option `net`: told once per micro-batch at most, and exact after every notification and at the end."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.engine import Engine
from tidings.model.errors import RecordError
from tidings.sql import Compiler, parse_catalog
from tidings.testing import Workload, recompute, run_inline, topk_workloads
from tidings.testing.plain import canonical

STOCKS = "CREATE TABLE stocks (symbol TEXT PRIMARY KEY, risk DOUBLE, per DOUBLE);"


def net(workload):
    """The same workload for those who want net changes only; each subscription lives once, and to the end."""
    compiler, once = Compiler(parse_catalog(workload.catalog_sql)), {}
    for record in workload.subscriptions:
        if "sql" in record and len(compiler.compile(record["sql"]).shape.ranges) <= 1:
            once.setdefault(record["id"], {**record, "option": "net"})
    return Workload(workload.catalog_sql, list(once.values()), workload.changes)


def apply(answer, changes):
    for change in changes:
        for side in ("old", "row") if change["op"] == "update" else ("row",):
            is_gone = side == "old" or change["op"] == "delete"
            answer[canonical(change[side])] += -1 if is_gone else 1
    assert min(answer.values(), default=0) >= 0
    return +answer


@settings(max_examples=60)
@given(topk_workloads(), st.lists(st.integers(1, 12), min_size=1, max_size=4))
def test_views_are_exact_after_every_notification(workload, sizes):
    workload = net(workload)
    lines = run_inline(
        workload.catalog_sql, workload.subscription_lines(), workload.change_lines(), sizes, {"topk": "dense"}
    )
    expected = recompute(workload)
    answers = {}
    for record in map(json.loads, lines):
        before = Counter() if record["snapshot"] else answers[record["subscription"]]
        assert record["changes"] or record["snapshot"]
        answers[record["subscription"]] = apply(Counter(before), record["changes"])
        assert answers[record["subscription"]] == at(expected, record["subscription"], record["seq"])
    last = {entry.id: entry.after for entry in expected}
    assert answers == last


def at(expected, id, seq):
    return [entry.after for entry in expected if entry.id == id and entry.seq <= seq][-1]


def test_what_comes_and_goes_within_a_batch_tells_nobody():
    rows = [("A", 5.0), ("B", 7.0), ("B", 1.0), ("B", 8.0), ("A", 6.0), ("A", 4.0)]
    changes = [
        {"seq": seq, "table": "stocks", "op": "upsert", "row": {"symbol": symbol, "risk": 1.0, "per": per}}
        for seq, (symbol, per) in enumerate(rows, 1)
    ]
    sql = "SELECT symbol, per FROM stocks WHERE risk <= 2 ORDER BY per LIMIT 1"
    workload = Workload(STOCKS, [{"id": "s", "sql": sql, "option": "net"}], changes)
    lines = run_inline(STOCKS, workload.subscription_lines(), workload.change_lines(), [2, 4], {})
    told = [(record["seq"], record["changes"]) for record in map(json.loads, lines)]
    a = {"symbol": "A", "per": 5.0}
    assert told == [
        (0, []),
        (2, [{"op": "insert", "row": a}]),
        (6, [{"op": "update", "old": a, "row": {"symbol": "A", "per": 4.0}}]),
    ]


@pytest.mark.parametrize(
    "sql",
    ["SELECT * FROM stocks WHERE risk > 1", "SELECT * FROM stocks WHERE risk > 1 AND per > 2 ORDER BY per LIMIT 3"],
)
def test_net_is_refused_where_it_is_not_served(sql):
    with pytest.raises(RecordError, match="option 'net' is for ORDER BY"):
        Engine(parse_catalog(STOCKS)).door.create("s", sql, 0, is_net=True)


def test_unknown_options_are_refused():
    line = json.dumps({"id": "s", "sql": "SELECT * FROM stocks ORDER BY per LIMIT 3", "option": "gross"}).encode()
    (refused,) = Engine(parse_catalog(STOCKS)).door.read([line])
    assert "option" in refused.reason
