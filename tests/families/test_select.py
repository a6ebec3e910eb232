"""The select family keeps every promise of the contract suite, and the examples of the design say what they say."""

import json

import pytest
from hypothesis import given, settings

from tidings.families.registry import family, strategies_of
from tidings.testing import CHECKS, Workload, check_family, oracle_lines, run_inline, select_workloads

STOCKS = "CREATE TABLE stocks (symbol TEXT PRIMARY KEY, sector TEXT, per DOUBLE, risk DOUBLE, price DOUBLE);"
STRATEGIES = strategies_of(family("select"))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    check_family("select", select_workloads(), checks=[check], examples=10)


@settings(max_examples=20)
@given(select_workloads())
def test_lines_are_those_of_the_oracle_to_the_byte(workload):
    assert lines_of(workload) == oracle_lines(workload)


def lines_of(workload, strategy="region", sizes=None):
    sizes = [len(workload.changes)] if sizes is None else sizes
    lines = workload.subscription_lines(), workload.change_lines()
    return run_inline(workload.catalog_sql, *lines, sizes, {"select": strategy})


def told(subscriptions, changes, catalog=STOCKS):
    """Per strategy the same: (subscription, seq, snapshot, changes) of every line."""
    workload = Workload(catalog, subscriptions, changes)
    lines = {strategy: lines_of(workload, strategy) for strategy in STRATEGIES}
    assert all(lines[strategy] == lines["region"] for strategy in STRATEGIES)
    records = [json.loads(line) for line in lines["region"]]
    return [(record["subscription"], record["seq"], record["snapshot"], record["changes"]) for record in records]


def stock(seq, op, **row):
    full = {"symbol": "GOOG", "sector": "tech", "per": 51.7, "risk": 3.2, "price": 550.0}
    return {"seq": seq, "table": "stocks", "op": op, "row": row if op == "delete" else {**full, **row}}


S1 = {
    "id": "s1",
    "sql": "SELECT * FROM stocks WHERE sector = 'tech' AND per BETWEEN 45 AND 70",
    "after": 0,
}
GOOG = {"symbol": "GOOG", "sector": "tech", "per": 51.7, "risk": 3.2, "price": 550.0}
GOOG_2 = {**GOOG, "per": 52.1, "price": 555.0}


def test_the_example_of_the_design():
    changes = [stock(1, "insert"), stock(2, "update", per=52.1, price=555.0), stock(3, "delete", symbol="GOOG")]
    assert told([S1], changes) == [
        ("s1", 0, True, []),
        ("s1", 1, False, [{"op": "insert", "row": GOOG}]),
        ("s1", 2, False, [{"op": "update", "old": GOOG, "row": GOOG_2}]),
        ("s1", 3, False, [{"op": "delete", "row": GOOG_2}]),
    ]


def test_lines_are_written_as_the_design_shows_them():
    workload = Workload(STOCKS, [{**S1, "sql": "SELECT symbol, per FROM stocks WHERE per > 1"}], [stock(1, "insert")])
    assert lines_of(workload) == [
        '{"subscription": "s1", "seq": 0, "snapshot": true, "changes": []}',
        '{"subscription": "s1", "seq": 1, "snapshot": false, "changes": '
        '[{"op": "insert", "row": {"symbol": "GOOG", "per": 51.7}}]}',
    ]


def test_a_row_that_enters_and_leaves_a_range():
    changes = [stock(1, "insert", per=44.9), stock(2, "update", per=45.0), stock(3, "update", per=70.000001)]
    assert [entry[1:] for entry in told([S1], changes)] == [
        (0, True, []),
        (2, False, [{"op": "insert", "row": {**GOOG, "per": 45.0}}]),
        (3, False, [{"op": "delete", "row": {**GOOG, "per": 45.0}}]),
    ]


def test_a_late_subscription_starts_with_what_is_there_and_a_dropped_one_hears_the_seq_of_its_drop():
    subscriptions = [{**S1, "after": 1}, {"id": "s1", "drop": True, "after": 2}]
    changes = [stock(1, "insert"), stock(2, "update", per=52.1, price=555.0), stock(3, "delete", symbol="GOOG")]
    assert told(subscriptions, changes) == [
        ("s1", 1, True, [{"op": "insert", "row": GOOG}]),
        ("s1", 2, False, [{"op": "update", "old": GOOG, "row": GOOG_2}]),
    ]


def test_replaced_at_one_moment_the_old_hears_the_seq_and_the_new_starts_from_it():
    again = {"id": "s1", "sql": "SELECT symbol FROM stocks", "after": 1}
    subscriptions = [S1, {"id": "s1", "drop": True, "after": 1}, again]
    changes = [stock(1, "insert"), stock(2, "delete", symbol="GOOG")]
    assert told(subscriptions, changes) == [
        ("s1", 0, True, []),
        ("s1", 1, False, [{"op": "insert", "row": GOOG}]),
        ("s1", 1, True, [{"op": "insert", "row": {"symbol": "GOOG"}}]),
        ("s1", 2, False, [{"op": "delete", "row": {"symbol": "GOOG"}}]),
    ]


def test_of_several_lives_at_one_moment_only_the_last_is_heard_of():
    others = [{"id": "s1", "sql": sql, "after": 1} for sql in ("SELECT * FROM stocks", "SELECT per FROM stocks")]
    gone = {"id": "s1", "drop": True, "after": 1}
    last = {"id": "s1", "sql": "SELECT symbol FROM stocks", "after": 1}
    subscriptions = [others[0], gone, others[1], gone, others[0], gone, last]
    assert told(subscriptions, [stock(1, "insert"), stock(2, "delete", symbol="GOOG")]) == [
        ("s1", 1, True, [{"op": "insert", "row": {"symbol": "GOOG"}}]),
        ("s1", 2, False, [{"op": "delete", "row": {"symbol": "GOOG"}}]),
    ]


def test_a_subscription_waiting_for_a_seq_that_never_comes_gets_its_snapshot_at_the_end():
    assert told([{**S1, "after": 99}], [stock(1, "insert")]) == [("s1", 99, True, [{"op": "insert", "row": GOOG}])]


def test_a_change_that_the_projection_hides_tells_nobody():
    subscriptions = [{"id": "s1", "sql": "SELECT symbol FROM stocks WHERE per >= 45"}]
    changes = [stock(1, "insert"), stock(2, "update", per=60.0, price=1.0), stock(3, "update", per=1.0)]
    assert [entry[1] for entry in told(subscriptions, changes)] == [0, 1, 3]


def test_a_row_that_moves_between_the_channels_of_one_subscription_is_an_update():
    subscriptions = [{"id": "s1", "sql": "SELECT * FROM stocks WHERE sector IN ('tech', 'food')"}]
    changes = [stock(1, "insert"), stock(2, "update", sector="food"), stock(3, "update", sector="none")]
    food = {**GOOG, "sector": "food"}
    assert [entry[3] for entry in told(subscriptions, changes)[1:]] == [
        [{"op": "insert", "row": GOOG}],
        [{"op": "update", "old": GOOG, "row": food}],
        [{"op": "delete", "row": food}],
    ]


@pytest.mark.parametrize(
    ("first", "second", "op"),
    [
        (("tech", "prefix08b"), ("food", "prefix08a"), "delete"),
        (("tech", "prefix08a"), ("food", "prefix08b"), "insert"),
    ],
)
def test_a_move_between_channels_with_a_tie_in_a_text_range_is_told_once(first, second, op):
    sql = "SELECT * FROM stocks WHERE sector IN ('tech', 'food') AND symbol_2 >= 'prefix08b'"
    catalog = "CREATE TABLE stocks (id INT PRIMARY KEY, sector TEXT, symbol_2 TEXT);"
    rows = [{"id": 1, "sector": sector, "symbol_2": text} for sector, text in (first, second)]
    changes = [{"seq": i, "table": "stocks", "op": "upsert", "row": row} for i, row in enumerate(rows, 1)]
    entries = told([{"id": "s1", "sql": sql}], changes, catalog)
    last = [(entry[1], entry[3][0]["op"]) for entry in entries if entry[1] == 2]
    assert last == [(2, op)]


def test_null_satisfies_no_predicate_but_no_predicate_lets_it_through():
    ranged = {"id": "ranged", "sql": "SELECT symbol FROM stocks WHERE per <= 1000"}
    equal = {"id": "equal", "sql": "SELECT symbol FROM stocks WHERE sector = 'tech'"}
    everything = {"id": "everything", "sql": "SELECT symbol, per FROM stocks"}
    changes = [stock(1, "insert", per=None, sector=None), stock(2, "update", per=1.0, sector="tech")]
    assert [(entry[0], entry[1]) for entry in told([ranged, equal, everything], changes) if not entry[2]] == [
        ("everything", 1),
        ("equal", 2),
        ("everything", 2),
        ("ranged", 2),
    ]


def test_contradictions_have_an_empty_snapshot_and_are_never_told():
    queries = ["per > 5 AND per < 4", "sector = 'a' AND sector = 'b'", "sector IN ('a') AND sector IN ('b')"]
    subscriptions = [{"id": str(i), "sql": f"SELECT * FROM stocks WHERE {q}"} for i, q in enumerate(queries)]
    entries = told(subscriptions, [stock(1, "insert", sector="a", per=4.5)])
    assert entries == [(str(i), 0, True, []) for i in range(len(queries))]


def test_equal_shown_rows_are_counted_not_merged():
    subscriptions = [{"id": "s1", "sql": "SELECT sector FROM stocks"}]
    changes = [stock(1, "insert"), stock(2, "insert", symbol="MSFT"), stock(3, "delete", symbol="GOOG")]
    ops = [change["op"] for entry in told(subscriptions, changes) for change in entry[3]]
    assert ops == ["insert", "insert", "delete"]


def test_integers_beyond_two_to_the_53_stay_apart():
    catalog = "CREATE TABLE stocks (id BIGINT PRIMARY KEY, n BIGINT);"
    subscriptions = [{"id": "s1", "sql": f"SELECT id FROM stocks WHERE n > {2**53} AND n <= {2**63 - 1}"}]
    rows = [{"id": i, "n": n} for i, n in enumerate([2**53, 2**53 + 1, 2**63 - 1])]
    changes = [{"seq": i, "table": "stocks", "op": "insert", "row": row} for i, row in enumerate(rows, 1)]
    assert [entry[1] for entry in told(subscriptions, changes, catalog)] == [0, 2, 3]
