"""The mix bench runs at tiny sizes, its data are what they claim to be, and peers make the lines that the engine makes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tidings.bench import Options, mix
from tidings.bench.mix import inline, peers, spark
from tidings.bench.mix.cases import CASES, Batch, MixData
from tidings.bench.mix.duckdb_peer import DuckDb
from tidings.bench.mix.inline import Running, batches_timed, batches_warm, changes_needed
from tidings.bench.mix.numpy_peer import NumpyShapes
from tidings.bench.mix.peers import MixPeer, MixWay
from tidings.bench.mix.selections import Range, Selection
from tidings.bench.report import Heading
from tidings.cli import bench as command
from tidings.model.errors import UsageError
from tidings.sql import parse_catalog
from tidings.workloads.market import CATALOG_SQL

_WAYS = [
    MixWay("numpy", "numpy", NumpyShapes, is_for_mixes=False),
    MixWay("duckdb", "DuckDB", DuckDb, is_for_mixes=True),
]


def _data(case: str, size: int, live: int, *, has_churn: bool = False) -> MixData:
    return CASES[case].data(size, live, seed=2, has_churn=has_churn)


def _lines(running: Running, batch: Batch) -> list[bytes]:
    return b"".join(running.feed(batch)[1]).splitlines()


def _both(data: MixData, peer: MixPeer, sizes: list[int]) -> list[tuple[list[bytes], list[bytes]]]:
    """Lines of the engine and of the peer, for batches of these sizes in turn."""
    running, found = Running(data), []
    peer.fill(data.filling)
    for size in sizes:
        for batch in running.batches(1, size):
            peer.feed(batch.lines)
            found.append((_lines(running, batch), peer.found()))
    peer.close()
    return found


@pytest.mark.parametrize("load", [NumpyShapes, DuckDb])
@pytest.mark.parametrize(("case", "size", "told"), [("select", 1_500, 200), ("shapes", 150, 10)])
def test_peers_make_the_same_lines_of_selections(load: Any, case: str, size: int, told: int) -> None:
    data = _data(case, size, 800)
    peer = load(data)
    assert peer.expressed == size and not peer.is_net
    found = _both(data, peer, [1, 1, 10, 1, 300, 400])
    assert sum(len(ours) for ours, _ in found) > told
    for ours, theirs in found:
        assert theirs == ours


def _result(line: bytes) -> tuple[str, int, list[str]]:
    """A notification with updates as deletes and inserts, in any order: how a change is told may differ."""
    record = json.loads(line)
    parts = [
        (op, change[name])
        for change in record["changes"]
        for op, name in ((("delete", "old"), ("insert", "row")) if "old" in change else ((change["op"], "row"),))
    ]
    return record["subscription"], record["seq"], sorted(json.dumps(part) for part in parts)


@pytest.mark.extended
def test_duckdb_recomputes_joins_and_the_first_rows() -> None:
    data = _data("auctions", 400, 40)
    peer = DuckDb(data)
    assert peer.expressed == 400 and peer.is_net
    found = _both(data, peer, [1] * 40)
    assert sum(len(ours) for ours, _ in found) > 40
    for ours, theirs in found:
        assert sorted(map(_result, ours)) == sorted(map(_result, theirs))


def test_what_a_peer_cannot_express_it_leaves_out() -> None:
    data = _data("market", 300, 10)
    offers = sum(b" FROM market " in line for line in data.first)
    rows = [line for line in data.first if b" FROM market " not in line]
    moved = sum(b"moved" in line for line in rows)
    joins_and_ranks = sum(b" JOIN " in line or b" ORDER BY " in line for line in rows)
    assert offers and moved and joins_and_ranks
    assert DuckDb(data).expressed == 300 - offers - moved
    assert NumpyShapes(data).expressed == 300 - offers - moved - joins_and_ranks
    for load in (DuckDb, NumpyShapes):
        peer = load(data)
        peer.fill(data.filling)
        peer.feed(data.live)
        peer.close()


def test_selections_are_taken_apart() -> None:
    catalog = parse_catalog(CATALOG_SQL)
    sql = "SELECT symbol, per FROM stocks WHERE sector IN ('a b', 'c') AND per < 2 AND price BETWEEN 1.5 AND 3 AND risk >= 0"
    found = Selection.parse("s1", sql, catalog)
    assert found is not None
    assert (found.table, found.shown, found.equal) == ("stocks", ("symbol", "per"), {"sector": ("a b", "c")})
    assert found.ranges["price"] == Range(1.5, 3) and found.ranges["risk"] == Range(0, None)
    high = found.ranges["per"].high
    assert isinstance(high, float) and 1.999 < high < 2
    assert Selection.parse("s2", "SELECT * FROM stocks WHERE symbol = 'A' AND moved(price) >= 1", catalog) is None
    assert Selection.parse("s3", "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per >= 1", catalog) is None


@pytest.mark.parametrize("case", CASES)
def test_tables_are_full_before_anything_is_timed(case: str) -> None:
    data = _data(case, 200, 500, has_churn=True)
    ops = [json.loads(line)["op"] for line in data.filling]
    assert set(ops) == {"insert"} and abs(len(ops) - CASES[case].filling * CASES[case].rows(200)) < 30
    assert 500 <= len(data.live) < 600
    moments = [after for after, _ in data.later]
    assert len(moments) > 20 and moments == sorted(moments)
    # Moments are counted in changes: gaps between sequence numbers bring the first ones into the end of the filling.
    assert moments[0] >= json.loads(data.filling[-30])["seq"]
    assert all(json.loads(line)["after"] == after for after, line in data.later)


def test_people_come_and_go_in_the_batch_of_their_moment() -> None:
    data = _data("select", 300, 400, has_churn=True)
    running, told = Running(data), 0
    for batch in running.batches(40, 10):
        first = json.loads(batch.lines[0])["seq"]
        for line in _lines(running, batch):
            record = json.loads(line)
            told += record["snapshot"]
            assert first - 20 < record["seq"] <= batch.last
    came = sum(b'"sql"' in line and after <= batch.last for after, line in data.later)
    assert told == came > 10


def test_small_batches_are_repeated_until_there_are_enough() -> None:
    assert [batches_timed(size, 100_000) for size in mix.BATCHES] == [2_000, 200, 20, 5, 5]
    assert [batches_timed(size, 300) for size in mix.BATCHES] == [300, 30, 3, 1, 1]
    assert all(batches_warm(size) >= 1 for size in mix.BATCHES)
    assert changes_needed((1, 10), 50) == inline.SAMPLE + 20 + 50 + 10 * (20 + 5)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "BUDGET_S", 0.5)
    monkeypatch.setattr(inline, "_WARM_CHANGES", 2)
    monkeypatch.setattr(peers, "BUDGET_S", 0.2)
    monkeypatch.setattr(mix, "CHURN", 600)
    monkeypatch.setattr(mix, "_TINY", 20)
    monkeypatch.setattr(mix, "_TINY_CHANGES", 2)
    monkeypatch.setattr(mix, "ways", lambda _, has_spark: [] if has_spark else _WAYS)
    for key, case in CASES.items():
        monkeypatch.setitem(CASES, key, replace(case, replayed=300))


@pytest.mark.extended
@pytest.mark.usefixtures("quick")
def test_the_report_has_all_figures() -> None:
    options = Options((100, 200), 60, ("inline",), cases=("select", "auctions"), batches=(1, 10))
    report = mix.run(options, lambda _: None)
    for case, size in (("select", 100), ("select", 200), ("auctions", 200)):
        for variant in ("steady", "churn"):
            p50, p99 = (report.value(f"{case}.{variant}.batch1.{name}", size) for name in ("p50_ms", "p99_ms"))
            assert p50 is not None and p99 is not None and 0 < p50 <= p99
            for key in ("batch1.changes_per_s", "batch10.changes_per_s", "notifications", "peak_mb", "door_s"):
                value = report.value(f"{case}.{variant}.{key}", size)
                assert value is not None and value >= 0, key
        assert report.value(f"{case}.replay.changes_per_s", size)
        ours, best = (
            report.value(f"{case}.{key}", size) for key in ("steady.batch1.changes_per_s", "ratio.best.batch1")
        )
        rates = [report.value(f"{case}.peer.{way.key}.batch1.changes_per_s", size) for way in _WAYS]
        found = [rate for rate in rates if rate is not None]
        assert len(found) == (2 if case == "select" else 1)
        assert ours is not None and best == pytest.approx(ours / max(found))
    assert any("lines of 100 changes agree with ours" in note for note in report.notes)
    assert any("told what each batch comes to" in note for note in report.notes)


@pytest.mark.usefixtures("quick")
def test_the_command_measures_one_case_alone(tmp_path: Path) -> None:
    app = typer.Typer()
    command.add_to(app)
    path = tmp_path / "mix.json"
    arguments = ["mix", "--cases", "select", "--sizes", "100", "--batches", "10", "--engines", "inline", "--no-peers"]
    result = CliRunner().invoke(app, [*arguments, "--json", str(path)])
    assert result.exit_code == 0, result.output
    assert "market, selections, batches of 10: changes" in result.stdout
    keys = {line["key"] for line in json.loads(path.read_text())["figures"]}
    assert {key.split(".")[0] for key in keys} == {"select"}
    assert "select.steady.batch10.notifications_per_s" in keys
    assert not any("batch1." in key or "peer" in key for key in keys)


class _Slow(MixPeer):
    """A peer for which one change takes a while, and that is wrong when told to be."""

    def __init__(self, data: MixData, text: bytes | None = None) -> None:
        self._numpy = NumpyShapes(data)
        self._text = text
        self.expressed = self._numpy.expressed
        self.batches: list[int] = []

    def fill(self, lines: Any) -> None:
        self._numpy.fill(lines)

    def notifications(self, lines: Any) -> bytes:
        self.batches.append(len(lines))
        return self._numpy.notifications(lines) if self._text is None else self._text


@pytest.mark.parametrize("is_per_change", [True, False])
def test_a_peer_without_time_gets_smaller_batches_and_says_so(
    is_per_change: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "BUDGET_S", 0.002 if is_per_change else 0.0)
    data = _data("select", 500, 3_000)
    slow = _Slow(data)
    slow.is_per_change = is_per_change
    compared = peers.Compared(CASES["select"], data, None, lambda _: None)
    compared.run(MixWay("slow", "a slow peer", lambda _: slow, is_for_mixes=False), (1, 1_000), 100_000)
    assert max(slow.batches[1:]) < 1_000
    assert any("a slow peer: for batches of 1,000 measured with" in note for note in compared.notes)


def test_a_peer_with_other_lines_is_found_out() -> None:
    data = _data("select", 500, 200)
    ours = inline.measure(data, (1,), 5, Heading("x", "x"), lambda _: None)
    assert ours.sample
    compared = peers.Compared(CASES["select"], data, ours, lambda _: None)
    way = MixWay("wrong", "a wrong peer", lambda given: _Slow(given, b"{}\n"), is_for_mixes=False)
    with pytest.raises(AssertionError, match="a wrong peer"):
        compared.run(way, (1,), 5)


def test_mistakes_name_what_there_is() -> None:
    with pytest.raises(UsageError, match="auctions"):
        mix.run(Options((100,), cases=("nonesuch",)), lambda _: None)
    with pytest.raises(UsageError, match="inline, spark"):
        mix.run(Options((100,), engines=("nonesuch",)), lambda _: None)
    with pytest.raises(UsageError, match="--batches takes changes per batch"):
        command.sizes_of("x", "--batches", "changes per batch")
    app = typer.Typer()
    command.add_to(app)
    result = CliRunner().invoke(app, ["soak", "--cases", "market"])
    assert isinstance(result.exception, UsageError) and "--cases" in str(result.exception)


@pytest.mark.extended
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_is_measured_by_batch_and_its_peer_makes_the_same_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidings.bench.mix.spark_peer import SparkForeachBatch
    from tidings.spark.session import spark_session

    monkeypatch.setattr(spark, "LARGE", 300)
    monkeypatch.setattr(spark, "SMALL", 20)
    monkeypatch.setattr(spark, "_LARGE_BATCHES", 2)
    monkeypatch.setattr(spark, "_SMALL_BATCHES", 3)
    monkeypatch.setattr(spark, "CHANGES", 2 * 300 + 3 * 20)
    with spark_session("mix", "local[2]") as session:
        data = _data("select", 200, 700, has_churn=True)
        figures = {f.key: f.value for f in spark.measure(data, Heading("m", "m"), lambda _: None)}
        assert set(figures) > {"m.changes_per_s", "m.first_s", "m.small_s", "m.notifications"}
        assert all(value > 0 for value in figures.values())
        assert figures["m.first_s"] < figures["m.first_after_s"]
        steady = _data("select", 300, 60)
        found = _both(steady, SparkForeachBatch(steady, session), [60])
    ((ours, theirs),) = found
    assert theirs == ours != []
