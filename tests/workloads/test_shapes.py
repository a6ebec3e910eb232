"""The shapes workload has a thousand shapes on one table; the options of market give the subscriptions they name."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import islice

from tidings.engine import Engine
from tidings.sql import parse_catalog
from tidings.workloads.market import Churn, market
from tidings.workloads.shapes import CATALOG_SQL, COLUMNS, SELECTED, SHAPES, queries, shapes


def test_every_line_is_accepted_and_canonical() -> None:
    made = shapes(rows=300, subscriptions=150, changes=900)
    subscriptions, changes = list(made.subscriptions), list(made.changes)
    engine = Engine(parse_catalog(CATALOG_SQL))
    assert engine.door.read(subscriptions) == []
    assert engine.feed(changes).refused == []
    assert Counter(json.loads(line)["op"] for line in changes).keys() == {"insert", "update", "delete"}
    for line in (*subscriptions, *changes):
        assert json.dumps(json.loads(line), ensure_ascii=False).encode() == line


def test_same_seed_same_lines() -> None:
    def lines(seed: int) -> list[bytes]:
        made = shapes(seed=seed, rows=50, subscriptions=100, changes=200)
        return [*made.subscriptions, *made.changes]

    assert lines(1) == lines(1) != lines(2)


def test_there_are_a_thousand_shapes() -> None:
    texts = {re.sub(r"'[^']*'|\b[\d.]+\b", "?", sql) for sql in islice(queries(0), 20_000)}
    assert len(texts) == SHAPES


def test_answers_are_about_equally_large() -> None:
    made = shapes(rows=4_000, subscriptions=0, changes=4_000)
    rows = [json.loads(line)["row"] for line in made.changes]
    matches: list[int] = []
    for sql in islice(queries(0), 300):
        where = sql.partition(" WHERE ")[2]
        condition = re.sub(r"(\w+) BETWEEN (\S+) AND (\S+)", r"\2 <= \1 <= \3", where)
        condition = re.sub(r" = ", " == ", condition).replace(" AND ", " and ")
        test = eval(f"lambda {', '.join(COLUMNS)}: {condition}")
        matches.append(sum(test(**row) for row in rows))
    assert 0.5 < sum(matches) / len(matches) / (SELECTED * len(rows)) < 2


def _market(churn: Churn, *, is_select_only: bool = False) -> list[dict[str, object]]:
    made = market(rows=40, subscriptions=1_000, changes=3_000, churn=churn, is_select_only=is_select_only)
    return [json.loads(line) for line in made.subscriptions]


def test_market_without_churn() -> None:
    records = _market(Churn.none)
    assert len(records) == 1_000 and all(record["after"] == 0 for record in records)


def test_market_with_single_churn_has_moments_after_the_tables_are_filled() -> None:
    records = _market(Churn.single)
    moments = [int(str(record["after"])) for record in records if record["after"]]
    creations = sum("sql" in record for record in records)
    assert creations == 1_000 and 150 < len(moments) < 250
    assert len(set(moments)) > 0.9 * len(moments)
    assert min(moments) >= 40 + 40 // 2 + 10
    by_blocks = [record["after"] for record in _market(Churn.blocks) if record["after"]]
    assert len(set(by_blocks)) <= 101


def test_market_select_only() -> None:
    records = _market(Churn.none, is_select_only=True)
    texts = [str(record["sql"]) for record in records]
    assert len(texts) == 1_000
    assert not any(word in text for text in texts for word in ("JOIN", "ORDER BY", "moved"))
    everything = [str(record["sql"]) for record in _market(Churn.none)]
    kept = [text for text in everything if text in set(texts)]
    assert kept == texts[: len(kept)] and 700 < len(kept) < 950
