"""The drift family keeps every promise of the contract suite, and says what the rules of movement say."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.families.drift.movement import has_moved, roundest_between
from tidings.testing import CHECKS, Workload, check_family, drift_workloads, run_inline

QUOTES = "CREATE TABLE quotes (symbol TEXT PRIMARY KEY, price DOUBLE, volume BIGINT, at TIMESTAMP);"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    check_family("drift", drift_workloads(), checks=[check], examples=10)


def lines_of(workload, sizes=None):
    sizes = [len(workload.changes)] if sizes is None else sizes
    return run_inline(workload.catalog_sql, workload.subscription_lines(), workload.change_lines(), sizes, {})


@pytest.fixture
def told():
    """(subscription, seq, snapshot, changes) of every line."""

    def told(subscriptions, changes, catalog=QUOTES):
        records = [json.loads(line) for line in lines_of(Workload(catalog, subscriptions, changes))]
        return [(record["subscription"], record["seq"], record["snapshot"], record["changes"]) for record in records]

    return told


@pytest.fixture
def seqs(told):
    """Per subscription the seqs of what it was told, the snapshot left out."""

    def seqs(subscriptions, changes):
        found = {}
        for id, seq, is_snapshot, _ in told(subscriptions, changes):
            found.setdefault(id, []).extend([] if is_snapshot else [seq])
        return found

    return seqs


def quote(seq, price, op="upsert", symbol="GOOG", volume=1, at="2024-01-01T00:00:00"):
    row = {"symbol": symbol, "price": price, "volume": volume, "at": at}
    return {"seq": seq, "table": "quotes", "op": op, "row": {"symbol": symbol} if op == "delete" else row}


def follow(id, movement, key="symbol = 'GOOG' AND ", after=0, shown="*"):
    return {"id": id, "sql": f"SELECT {shown} FROM quotes WHERE {key}{movement}", "after": after}


def test_told_the_row_as_it_was_last_told_and_as_it_is(told):
    changes = [quote(1, 100.0), quote(2, 104.0), quote(3, 105.0, volume=7)]
    lines = told([follow("s", "moved(price) >= 5", shown="price, volume")], changes)
    old, new = {"price": 100.0, "volume": 1}, {"price": 105.0, "volume": 7}
    assert lines == [
        ("s", 0, True, []),
        ("s", 1, False, [{"op": "insert", "row": old}]),
        ("s", 3, False, [{"op": "update", "old": old, "row": new}]),
    ]


def test_thresholds_are_reached_exactly_in_doubles(seqs):
    # In doubles 0.1 + 0.2 > 0.3: the distance from 0.1 to 0.3 does not reach 0.2, though 0.3 - 0.1 < 0.2 says so too.
    changes = [quote(1, 0.1), quote(2, 0.3), quote(3, 0.30000000000000004)]
    assert seqs([follow("s", "moved(price) >= 0.2")], changes) == {"s": [1, 3]}


def test_percent_of_the_value_last_told_and_of_zero(seqs):
    changes = [
        quote(1, 200.0),
        quote(2, 209.9),
        quote(3, 210.0),
        quote(4, 0.0),
        quote(5, 0.0, volume=2),
        quote(6, 1e-9),
    ]
    # Nothing is so small that it is not every percentage of nothing.
    assert seqs([follow("s", "moved_percent(price) >= 5")], changes) == {"s": [1, 3, 4, 5, 6]}


def test_ratio_up_and_down(seqs):
    changes = [quote(1, 100.0), quote(2, 150.0), quote(3, 199.99), quote(4, 200.0), quote(5, 100.1), quote(6, 100.0)]
    assert seqs([follow("s", "moved_ratio(price) >= 2")], changes) == {"s": [1, 4, 6]}


@pytest.mark.parametrize(
    ("movement", "low", "high"),
    [("moved", 0.7, 1.1), ("moved_percent", 0.6, 1.1), ("moved_ratio", 1.005, 1.012)],
)
def test_a_range_of_radii_is_never_told_below_its_low_end_and_always_at_its_high_one(seqs, movement, low, high):
    prices = {seq: 100.0 + 0.1 * (seq - 1) for seq in range(1, 101)}
    told = seqs([follow("s", f"{movement}(price) BETWEEN {low} AND {high}")], [quote(*each) for each in prices.items()])
    steps = list(pairwise(told["s"]))
    assert len(steps) > 5
    for last, now in steps:
        assert has_moved(movement, prices[last], prices[now], low)
        assert not any(has_moved(movement, prices[last], prices[seq], high) for seq in range(last, now))


@settings(max_examples=100)
@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300))
def test_the_roundest_number_between_is_between(a, b):
    low, high = sorted((a, b))
    chosen = roundest_between(low, high)
    assert low <= chosen <= high
    assert roundest_between(chosen, high) == chosen
    assert roundest_between(low, chosen) == chosen


def test_created_in_mid_stream_it_starts_from_the_row_there_is(told, seqs):
    subscriptions = [follow("early", "moved(price) >= 5"), follow("late", "moved(price) >= 5", after=2)]
    changes = [quote(1, 100.0), quote(2, 103.0), quote(3, 105.0), quote(4, 108.0)]
    assert seqs(subscriptions, changes) == {"early": [1, 3], "late": [4]}
    assert told(subscriptions, changes)[2][3] == [{"op": "insert", "row": quote(2, 103.0)["row"]}]


def test_deleted_and_inserted_again_it_is_told_both(told):
    changes = [quote(1, 100.0), quote(2, 0, "delete"), quote(3, 100.0), quote(4, 101.0)]
    assert [line[3][0]["op"] for line in told([follow("s", "moved(price) >= 5")], changes)[1:]] == [
        "insert",
        "delete",
        "insert",
    ]


def test_a_row_without_a_value_counts_as_absent(told):
    changes = [quote(1, None), quote(2, 100.0), quote(3, None), quote(4, None, volume=2), quote(5, 100.0)]
    lines = told([follow("s", "moved(price) >= 5"), follow("late", "moved(price) >= 5", after=4)], changes)
    ops = [
        (id, seq, [change["op"] for change in changes]) for id, seq, is_snapshot, changes in lines if not is_snapshot
    ]
    assert ops == [("s", 2, ["insert"]), ("s", 3, ["delete"]), ("late", 5, ["insert"]), ("s", 5, ["insert"])]
    assert ("late", 4, True, []) in lines


def test_changes_of_other_columns_tell_nobody(seqs):
    changes = [quote(1, 100.0), quote(2, 100.0, volume=2), quote(3, 100.0, volume=3)]
    assert seqs([follow("s", "moved(price) >= 5")], changes) == {"s": [1]}


def test_what_is_shown_did_not_change_so_nobody_is_told_but_the_value_counts_as_told(seqs):
    changes = [quote(1, 100.0), quote(2, 105.0), quote(3, 109.0, volume=9), quote(4, 110.0, volume=9)]
    assert seqs([follow("s", "moved(price) >= 5", shown="volume")], changes) == {"s": [1, 4]}


def test_every_row_is_followed_with_its_own_last_value(seqs):
    changes = [
        quote(1, 100.0),
        quote(2, 10.0, symbol="IBM"),
        quote(3, 104.0),
        quote(4, 15.0, symbol="IBM"),
        quote(5, 105.0),
        quote(6, 0, "delete", symbol="IBM"),
    ]
    subscriptions = [follow("all", "moved(price) >= 5", key=""), follow("late", "moved(price) >= 5", key="", after=3)]
    assert seqs(subscriptions, changes) == {"all": [1, 2, 4, 5, 6], "late": [4, 6]}


def test_several_keys_are_several_rows(seqs):
    changes = [quote(i, 100.0 + i, symbol=symbol) for i, symbol in enumerate(("GOOG", "IBM", "T", "GOOG", "IBM"), 1)]
    key = "symbol IN ('GOOG', 'IBM') AND "
    subscriptions = [follow("two", "moved(price) >= 3", key=key), follow("late", "moved(price) >= 3", key=key, after=3)]
    assert seqs(subscriptions, changes) == {"two": [1, 2, 4, 5], "late": [4, 5]}


def test_silence_is_broken_by_the_clock_of_the_row(seqs):
    changes = [
        quote(1, 100.0, at="2024-01-01T00:00:00"),
        quote(2, 101.0, at="2024-01-01T00:59:59"),
        quote(3, 101.5, at="2024-01-01T01:00:00"),
        quote(4, 106.5, at="2024-01-01T01:30:00"),
        quote(5, 106.0, at=None),
        quote(6, 106.0, at="2024-01-01T02:29:00"),
        quote(7, 106.0, at="2024-01-01T02:30:00"),
    ]
    movement = "(moved(price) >= 5 OR silent_for(at) >= INTERVAL '1 hour')"
    assert seqs([follow("s", movement), follow("plain", "moved(price) >= 5")], changes) == {
        "s": [1, 3, 4, 7],
        "plain": [1, 4],
    }


def test_whole_numbers_are_compared_as_doubles(seqs):
    big = 2**53
    changes = [quote(1, 1.0, volume=big), quote(2, 1.0, volume=big + 1), quote(3, 1.0, volume=big + 2)]
    assert has_moved("moved", float(big), float(big + 2), 1.0)
    assert seqs([follow("s", "moved(volume) >= 2")], changes) == {"s": [1, 3]}
