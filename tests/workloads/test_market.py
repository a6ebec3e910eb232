"""The market workload obeys the file contract, is the same for the same seed, and is skewed as real markets are."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice, pairwise
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from constraint_sets import columns_of, condition_of, disjuncts, matches
from tidings.cli import workload as command
from tidings.engine import Engine
from tidings.model.errors import UsageError
from tidings.sql import parse_catalog
from tidings.workloads import WORKLOADS, find
from tidings.workloads.market import CATALOG_SQL, MarketFeed, market
from tidings.workloads.market.offers import offer_queries


def _market(seed: int = 3, changes: int = 12_000) -> tuple[list[bytes], list[bytes]]:
    made = market(seed=seed, rows=300, subscriptions=2_000, changes=changes)
    return list(made.subscriptions), list(made.changes)


def test_every_line_about_rows_is_accepted() -> None:
    subscriptions, changes = _market()
    on_offers = {json.loads(line)["id"] for line in subscriptions if b" FROM market " in line}
    wanted = [line for line in subscriptions if json.loads(line)["id"] not in on_offers]
    rows = [line for line in changes if b'"table": "market"' not in line]
    engine = Engine(parse_catalog(CATALOG_SQL))
    assert engine.door.read(wanted) == []
    for start in range(0, len(rows), 5_000):
        assert engine.feed(rows[start : start + 5_000]).refused == []
    assert engine.finish().refused == []
    assert engine.stats.changes == len(rows) > 10_000
    assert engine.stats.deliveries["select"] > 0


def test_same_seed_same_lines() -> None:
    assert _market(changes=3_000) == _market(changes=3_000)
    assert _market(seed=4, changes=3_000) != _market(seed=5, changes=3_000)


def test_feed_does_not_depend_on_how_it_is_asked() -> None:
    one, many = MarketFeed(1, 50), MarketFeed(1, 50)
    whole = one.changes(20_000)
    pieces = [line for size in (1, 99, 9_900, 10_000) for line in many.changes(size)]
    assert whole == pieces
    assert list(one.subscriptions(100)) == list(islice(many.subscriptions(3_000), 100))


def test_sequence_ascends_with_gaps_and_uses_every_op() -> None:
    changes = [json.loads(line) for line in _market()[1]]
    steps = Counter(b["seq"] - a["seq"] for a, b in pairwise(changes))
    assert min(steps) == 1 and max(steps) > 1 and steps[1] > 0.95 * len(changes)
    assert {change["op"] for change in changes} == {"insert", "update", "upsert", "delete"}
    assert {change["table"] for change in changes} == {"stocks", "reviews", "analysts", "market"}


def test_a_tenth_is_about_offers() -> None:
    subscriptions, changes = _market()
    queries = [record["sql"] for record in map(json.loads, subscriptions) if "sql" in record]
    assert 0.08 < sum(" FROM market " in sql for sql in queries) / len(queries) < 0.12
    feed = MarketFeed(3, 300)
    for lines in (changes[: feed.filling], changes[feed.filling :]):
        assert 0.08 < sum(b'"table": "market"' in line for line in lines) / len(lines) < 0.13


def test_every_change_of_an_offer_finds_it() -> None:
    there: set[str] = set()
    sizes, ops = [], Counter[str]()
    for change in map(json.loads, _market(changes=20_000)[1]):
        if change["table"] == "market":
            id, op = change["id"], change["op"]
            assert (id in there) == (op != "insert")
            assert change.keys() == {"seq", "table", "op", "id"} | (set() if op == "delete" else {"where"})
            (there.discard if op == "delete" else there.add)(id)
            sizes.append(len(there))
            ops[op] += 1
    assert set(ops) == {"insert", "update", "upsert", "delete"}
    assert all(55 < size < 65 for size in sizes[60:])


def test_offers_match_some_who_ask_for_them() -> None:
    """About five of a thousand."""
    columns = columns_of(CATALOG_SQL.splitlines()[-1])
    feed = MarketFeed(2, 300)
    wanted = [disjuncts(condition_of(sql), columns) for sql in islice(offer_queries(2), 1_000)]
    lines = [json.loads(line) for line in feed.changes(5_000) if b'"where"' in line]
    offers = [disjuncts(line["where"], columns) for line in lines[-200:]]
    found = [sum(matches(offer, one) for one in wanted) for offer in offers]
    assert 2 < sum(found) / len(found) < 12
    assert sum(count == 0 for count in found) < 0.4 * len(found)


def test_without_offers_the_other_lines_are_in_the_same_order() -> None:
    """Offers have random numbers of their own: selections alone are as they were before there were offers."""
    rows = MarketFeed(1, 50, has_offers=False)
    mixed = [sql for sql in islice(MarketFeed(1, 50).queries(), 500) if " FROM market " not in sql]
    assert mixed == list(islice(rows.queries(), len(mixed)))
    assert not any(b'"table": "market"' in line for line in rows.changes(10_000))
    assert rows.filling == 50 + 10 + 25


def test_popularity_is_skewed() -> None:
    changes = [json.loads(line) for line in _market()[1]]
    rows = [change["row"] for change in changes if change["table"] == "stocks" and change["op"] == "update"]
    for column, top in (("symbol", 30), ("sector", 2)):
        counts = Counter(row[column] for row in rows)
        assert sum(count for _, count in counts.most_common(top)) > 2 * top / len(counts) * len(rows)


def test_sectors_differ_in_per() -> None:
    rows = [json.loads(line)["row"] for line in MarketFeed(0, 2_000).changes(2_000)]
    by_sector: dict[str, list[float]] = {}
    for row in rows:
        if row["per"] is not None:
            by_sector.setdefault(row["sector"], []).append(row["per"])
    means = [sum(pers) / len(pers) for pers in by_sector.values()]
    assert max(means) > 2 * min(means)


def test_subscriptions_come_and_go() -> None:
    records = [json.loads(line) for line in _market()[0]]
    drops = [record for record in records if record.get("drop")]
    creates = {record["id"]: record for record in records if "sql" in record}
    assert len(creates) == 2_000 and len(drops) == 200
    assert sum(record["after"] > 0 for record in creates.values()) >= 300
    assert [record["after"] for record in records] == sorted(record["after"] for record in records)
    assert all(creates[drop["id"]]["after"] <= drop["after"] for drop in drops)


def test_command_writes_the_three_files(tmp_path: Path) -> None:
    app = typer.Typer()
    command.add_to(app)
    arguments = ["market", "--out", str(tmp_path), "--subscriptions", "50", "--changes", "200", "--seed", "7"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    made = market(seed=7, rows=0, subscriptions=50, changes=200)
    assert (tmp_path / "catalog.sql").read_text() == CATALOG_SQL
    assert (tmp_path / "subscriptions.jsonl").read_bytes().splitlines() == list(made.subscriptions)
    assert (tmp_path / "changes.jsonl").read_bytes().splitlines() == list(made.changes)


def test_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(UsageError, match="market"):
        find("nonesuch")
    assert all(entry.load() for entry in WORKLOADS.values())
