"""The drift workloads obey the file contract, are the same for the same seed, and are distributed as they say."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from research.__main__ import app
from research.workloads import WORKLOADS, find
from research.workloads.draws import TruncatedNormal
from research.workloads.drift.quotes import Walk, reflected
from research.workloads.drift.radii import DEFAULT as RADII
from research.workloads.drift.radii import RadiiCase, drift_radii
from research.workloads.drift.same import DEFAULT as SAME
from research.workloads.drift.same import SameCase, drift_same
from research.workloads.prices import SYMBOLS
from tidings.sql import Compiler, parse_catalog

Record = dict[str, Any]
DRIFTS = [name for name in WORKLOADS if name.startswith("drift-")]
RADIUS = re.compile(r"moved\(price\) >= (\S+)$")

every_workload = pytest.mark.parametrize("name", DRIFTS)
every_size = pytest.mark.parametrize(
    ("rows", "subscriptions", "changes"), [(0, 3_000, 20_000), (7, 3_000, 1_000), (0, 50, 0), (9, 40, 3), (0, 0, 10)]
)


def made(
    name: str, seed: int = 3, rows: int = 0, subscriptions: int = 3_000, changes: int = 20_000
) -> list[list[bytes]]:
    workload = find(name).load()(seed=seed, rows=rows, subscriptions=subscriptions, changes=changes)
    return [list(workload.subscriptions), list(workload.changes)]


def records(*arguments: Any, **options: Any) -> tuple[list[Record], list[Record]]:
    subscriptions, changes = made(*arguments, **options)
    return [json.loads(line) for line in subscriptions], [json.loads(line) for line in changes]


def radii(subscriptions: list[Record]) -> list[float]:
    return [float(found[1]) for record in subscriptions if (found := RADIUS.search(record["sql"]))]


def prices(changes: list[Record], symbol: str = "S0") -> list[float]:
    return [change["row"]["price"] for change in changes if change["row"]["symbol"] == symbol]


@every_workload
@every_size
def test_subscriptions_obey_the_contract(name: str, rows: int, subscriptions: int, changes: int) -> None:
    lines, _ = records(name, rows=rows, subscriptions=subscriptions, changes=changes)
    assert sum("sql" in record for record in lines) == subscriptions
    assert all(0 <= a["after"] <= b["after"] for a, b in pairwise(lines))
    live: set[str] = set()
    for record in lines:
        if "sql" in record:
            assert record.keys() == {"id", "sql", "after"} and record["id"] not in live
            live.add(record["id"])
        else:
            assert record == {"id": record["id"], "drop": True, "after": record["after"]}
            live.remove(record["id"])


@every_workload
@every_size
def test_changes_obey_the_contract(name: str, rows: int, subscriptions: int, changes: int) -> None:
    _, lines = records(name, rows=rows, subscriptions=subscriptions, changes=changes)
    assert len(lines) == changes
    assert all(0 < a["seq"] < b["seq"] for a, b in pairwise(lines))
    there: set[str] = set()
    for change in lines:
        assert change.keys() == {"seq", "table", "op", "row"} and change["table"] == "quotes"
        symbol, op = change["row"]["symbol"], change["op"]
        if op == "delete":
            assert change["row"] == {"symbol": symbol}
            there.remove(symbol)
        else:
            assert list(change["row"]) == ["symbol", "price", "volume", "quoted_at"]
            assert op == "upsert" or (op == "update") == (symbol in there)
            there.add(symbol)
    times = [change["row"]["quoted_at"] for change in lines if change["op"] != "delete"]
    assert times == sorted(times)


@every_workload
def test_queries_compile(name: str) -> None:
    workload = find(name).load()(seed=1, rows=0, subscriptions=3_000, changes=1_000)
    compiler = Compiler(parse_catalog(workload.catalog_sql))
    statements = [compiler.compile(json.loads(line)["sql"]) for line in workload.subscriptions if b'"sql"' in line]
    assert all(statement.shape.movement for statement in statements)


@every_workload
def test_same_seed_same_lines(name: str) -> None:
    assert made(name) == made(name)
    assert all(one != other for one, other in zip(made(name, seed=4), made(name, seed=5), strict=True))


@every_workload
def test_a_shorter_stream_is_the_beginning_of_a_longer_one(name: str) -> None:
    # The bootstrap of drift-same is a share of the changes.
    if name != "drift-same":
        assert made(name, rows=5, changes=9_000)[1] == made(name, rows=5)[1][:9_000]


@pytest.mark.parametrize("name", ["drift-radii", "drift-same", "drift-all"])
def test_items_share_evenly(name: str) -> None:
    subscriptions, changes = records(name, rows=10)
    assert set(Counter(change["row"]["symbol"] for change in changes).values()) == {2_000}
    followers = Counter(re.findall(r"'(\w+)'", " ".join(record["sql"] for record in subscriptions)))
    assert len(followers) == 10
    assert min(followers.values()) > 0.75 * max(followers.values())


def test_different_radii_are_different_and_normal_within_bounds() -> None:
    subscriptions, changes = records("drift-radii", subscriptions=20_000)
    drawn = np.array(radii(subscriptions))
    assert len(set(drawn.tolist())) == len(drawn) == 20_000
    assert drawn.min() >= 1 and drawn.max() <= 200_000
    assert np.mean(drawn) == pytest.approx(RADII.radii.mean, rel=0.02)
    # Two standard deviations either way hold 95.4% of a normal distribution: of what is kept, 71.5% lie within one.
    assert np.mean(np.abs(drawn - RADII.radii.mean) < RADII.radii.sd) == pytest.approx(0.683 / 0.954, abs=0.02)
    assert {record["after"] for record in subscriptions} == {0}
    steps = np.diff(prices(changes))
    assert np.std(steps) == pytest.approx(1_000, rel=0.03)
    assert abs(np.mean(steps)) < 30


def test_radii_repeat_only_when_there_is_no_room() -> None:
    narrow = TruncatedNormal(mean=5, sd=5, low=1, high=10)
    drawn = narrow.draw_distinct(np.random.default_rng(0), 25, decimals=0)
    assert len(drawn) == 25 and set(drawn.tolist()) == set(range(1, 11))


def test_knobs_turn() -> None:
    calm = RadiiCase(radii=TruncatedNormal(10, 5, 1, 20), walk=Walk(start=5.0, sigma=0.1, drift=1.0))
    workload = drift_radii(seed=0, subscriptions=10, changes=100, case=calm)
    assert max(radii([json.loads(line) for line in workload.subscriptions])) <= 20
    assert prices([json.loads(line) for line in workload.changes])[-1] == pytest.approx(5 + 99, abs=5)


def told(subscriptions: list[Record], values: list[float], radius: float) -> list[tuple[int, np.ndarray]]:
    """By the definition, after every change of one item: how many are told, and all centres."""
    centres, after = np.empty(0), Counter(record["after"] for record in subscriptions)
    history = []
    for number, value in enumerate(values, 1):
        is_told = (value >= centres + radius) | (value <= centres - radius)
        centres = np.append(np.where(is_told, value, centres), [value] * after[number])
        history.append((int(is_told.sum()), centres))
    return history


def test_bootstrap_of_the_same_radius_spreads_centres_and_tells_nobody() -> None:
    subscriptions, changes = records("drift-same", changes=4_000)
    assert set(radii(subscriptions)) == {SAME.radius}
    history = told(subscriptions, prices(changes), SAME.radius)
    assert [count for count, _ in history[:400]] == [0] * 400
    centres = history[399][1]
    assert len(centres) == 1_500 and len(set(centres.tolist())) > 350
    assert np.std(centres) == pytest.approx(0.88 * SAME.spread, rel=0.1)
    assert np.ptp(centres) < SAME.radius
    # The walk does tell, and those it tells at once stay together: more and more of them.
    assert max(count for count, _ in history) > 500


@pytest.mark.parametrize("subscriptions", [100, 4_000, 50_000])
def test_nobody_comes_faster_than_agreed(subscriptions: int) -> None:
    lines, _ = records("drift-same", subscriptions=subscriptions, changes=4_000)
    arrivals = Counter(record["after"] for record in lines if record["after"] > 400)
    assert max(arrivals.values()) <= 2
    assert sum(arrivals.values()) == min(subscriptions // 2, 3_600)
    assert all(1 <= record["after"] <= 4_000 for record in lines)


def test_arrivals_can_be_twice_as_fast() -> None:
    workload = drift_same(seed=0, subscriptions=20_000, changes=2_000, case=SameCase(arrivals_max=2.0))
    late = [line for line in workload.subscriptions if json.loads(line)["after"] > 200]
    assert len(late) == 2 * 1_800


@pytest.mark.parametrize("name", ["drift-all", "drift-stocks"])
def test_dollar_radii(name: str) -> None:
    subscriptions, _ = records(name, subscriptions=20_000)
    drawn = np.array(radii(subscriptions))
    assert drawn.min() > 0 and drawn.max() <= 100
    assert np.array_equal(drawn, drawn.round(2))
    whole = drawn[drawn == drawn.round()]
    assert len(whole) / len(drawn) == pytest.approx(0.9 + 0.1 / 100, abs=0.01)
    assert 15 < np.median(whole) < 27
    after = np.array([record["after"] for record in subscriptions])
    assert np.mean(after) == pytest.approx(10_000, rel=0.05)


def test_prices_stay_above_the_floor() -> None:
    _, changes = records("drift-all", changes=60_000)
    walked = prices(changes)
    assert min(walked) >= 0.01
    assert np.std(np.diff(walked)) == pytest.approx(0.5, rel=0.03)
    path = next(Walk(start=1.0, sigma=0.5, floor=0.01).rounds(np.random.default_rng(0), 1))
    assert path.min() >= 0.01
    assert reflected(np.array([2.0, -1.0, -3.0]), 0.5).tolist() == [2.0, 2.0, 4.0]


def test_stocks_are_real_and_go_on_where_they_ended() -> None:
    from bokeh_sampledata import stocks

    _, changes = records("drift-stocks", changes=33_000)
    assert {change["row"]["symbol"] for change in changes} == set(SYMBOLS)
    assert min(change["row"]["price"] for change in changes) >= 0.01
    ibm, days = prices(changes, "IBM"), len(stocks.IBM["close"])
    assert ibm[:days] == [round(price, 2) for price in stocks.IBM["close"]]
    steps = np.diff(ibm[: 2 * days - 1]).reshape(2, days - 1)
    assert np.allclose(steps[0], steps[1], atol=0.011)


def test_splits_are_no_moves() -> None:
    _, changes = records("drift-stocks", changes=16_000)
    # Split on 2003-02-18, when the price went from 48.30 to 24.96.
    assert np.diff(prices(changes, "MSFT")).min() > -20


def test_mix_has_every_kind_of_subscription() -> None:
    subscriptions, _ = records("drift-mix")
    queries = [record["sql"] for record in subscriptions if "sql" in record]
    for part in ("moved(price) >=", "moved_percent(", "moved_ratio(", "BETWEEN", "silent_for(", "SELECT symbol, price"):
        assert sum(part in sql for sql in queries) > 0.02 * len(queries), part
    every_row = sum("symbol = " not in sql for sql in queries)
    assert 0 < every_row < 0.03 * len(queries)
    followers = Counter(re.findall(r"symbol = '(\w+)'", " ".join(queries)))
    assert sum(count for _, count in followers.most_common(20)) > 0.4 * len(queries)


def test_mix_has_people_who_come_and_go_and_return() -> None:
    subscriptions, changes = records("drift-mix")
    creations = Counter(record["id"] for record in subscriptions if "sql" in record)
    drops = [record for record in subscriptions if "drop" in record]
    assert len(drops) == 300 and set(creations.values()) == {1, 2}
    assert sum(count == 2 for count in creations.values()) == 150
    assert sum(record["after"] > 0 for record in subscriptions if "sql" in record) > 600
    assert any(a["id"] == b["id"] and a["after"] == b["after"] for a, b in pairwise(subscriptions))
    assert subscriptions[-1]["after"] <= changes[-1]["seq"]


def test_mix_has_items_that_come_and_go_and_return() -> None:
    _, changes = records("drift-mix")
    ops = Counter(change["op"] for change in changes)
    assert ops["delete"] > 100 and ops["upsert"] > 400 and ops["insert"] > 360 + 80
    popular = Counter(change["row"]["symbol"] for change in changes)
    assert sum(count for _, count in popular.most_common(20)) > 0.4 * len(changes)
    assert {b["seq"] - a["seq"] for a, b in pairwise(changes)} == {1, 3}
    last: dict[str, float] = {}
    still = 0
    for change in changes:
        price = change["row"].get("price")
        still += price is not None and last.get(change["row"]["symbol"]) == price
        last[change["row"]["symbol"]] = price
    assert 0.12 < still / len(changes) < 0.25
    assert min(price for price in last.values() if price) > 0


def test_command_writes_the_files(tmp_path: Path) -> None:
    arguments = ["workload", "drift-radii", "--out", str(tmp_path), "--subscriptions", "1000", "--changes", "1000"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    subscriptions, changes = made("drift-radii", seed=0, subscriptions=1_000, changes=1_000)
    assert (tmp_path / "subscriptions.jsonl").read_bytes().splitlines() == subscriptions
    assert (tmp_path / "changes.jsonl").read_bytes().splitlines() == changes
