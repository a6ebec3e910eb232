"""The select bench runs at tiny sizes, its data are what they claim to be, and everybody's matches agree with brute force."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from research.__main__ import app
from research.bench import BENCHES, find, runner, select
from research.bench.peers import PeerWays, Way
from research.bench.runner import SAMPLE
from research.bench.select.data import SelectData, kind_numbers
from research.bench.select.peers import DuckDbJoin, NumpyScan
from tidings.bench import Options
from tidings.model.errors import UsageError


@pytest.fixture(scope="module")
def data() -> SelectData:
    return SelectData.make(3_000, 20_000, seed=1, rows=1_000)


def _brute_force(data: SelectData, count: int) -> list[int]:
    rows = next(data.updates()).rows.slice(0, count).to_pylist()
    lo, hi, kind = data.lo.tolist(), data.hi.tolist(), data.kind.tolist()
    return [
        sum(
            row["kind"] == f"k{kind[i]}" and lo[i][0] <= row["a"] <= hi[i][0] and lo[i][1] <= row["b"] <= hi[i][1]
            for i in range(data.size)
        )
        for row in rows
    ]


def test_one_subscription_in_ten_thousand_matches() -> None:
    peer = NumpyScan(SelectData.make(200_000, 10_000, seed=0), is_by_kind=True)
    peer.feed(next(SelectData.make(1, 10_000, seed=0).updates()).rows.slice(0, 500))
    assert 18 < np.mean(peer.found()) < 22


@pytest.mark.extended
def test_matches_agree_with_brute_force(data: SelectData) -> None:
    expected = _brute_force(data, SAMPLE)
    assert sum(expected) > 20
    bench = select.SelectBench(Options((data.size,)), data.size, lambda _: None)
    bench.given = data
    figures = {figure.key: figure.value for figure in bench.inline()}
    assert bench.expected == expected
    rows = next(data.updates()).rows.slice(0, SAMPLE)
    assert kind_numbers(rows).tolist() == [int(kind[1:]) for kind in rows.column("kind").to_pylist()]
    for peer in (NumpyScan(data), NumpyScan(data, is_by_kind=True), DuckDbJoin(data)):
        peer.feed(rows)
        assert peer.found() == expected
        peer.close()
    assert min(figures.values()) >= 0 or figures["inline.memory.rss"] == min(figures.values())
    assert 50 < figures["inline.memory.index"] < 1_000


@pytest.mark.extended
def test_run_fills_every_cell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runner, "BUDGET_S", 0.01)

    def without_spark(given: PeerWays) -> None:
        given.ways = [Way("numpy.scan", "numpy", 10, NumpyScan), Way("duckdb.10k", "DuckDB", 10_000, DuckDbJoin)]

    monkeypatch.setattr(select.SelectBench, "add_peers", without_spark)
    path = tmp_path / "select.json"
    arguments = [
        "bench",
        "select",
        "--sizes",
        "2000,1000",
        "--changes",
        "20000",
        "--engines",
        "inline",
        "--json",
        str(path),
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "2k / 1k" in result.stdout and "agree with ours" in result.stdout
    written = json.loads(path.read_text())
    assert written["stamp"]["seed"] == 0 and written["stamp"]["cpus"]
    assert {"ratio.match", "ratio.ids", "peer.duckdb.10k.changes_per_s"} <= {line["key"] for line in written["figures"]}
    assert all(set(line["values"]) == {"1000", "2000"} for line in written["figures"])


@pytest.mark.parametrize("name", ["drift", "topk", "join"])
def test_unknown_engines_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="verify, index, inline"):
        BENCHES[name].load()(Options((1_000,), engines=("nonesuch",)), lambda _: None)


def test_mistakes_name_what_there_is() -> None:
    with pytest.raises(UsageError, match="select"):
        find("nonesuch")
    with pytest.raises(UsageError, match="inline"):
        BENCHES["select"].load()(Options((1_000,), engines=("nonesuch",)), lambda _: None)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["bench", "select", "--cases", "market"], "--cases and --batches are not for the bench 'select'"),
        (["bench", "relay", "--agreement"], "--peer-sizes and --agreement are not for the bench 'relay'"),
        (["bench", "live"], "the whole path is measured by `tidings bench`"),
        (["workload", "market", "--out", "x"], "`tidings workload list` has those of the product"),
        (["workload", "topk-uniform"], "--out DIR"),
    ],
)
def test_mistakes_in_options(words: list[str], problem: str) -> None:
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, UsageError) and problem in str(result.exception)


@pytest.mark.parametrize(("command", "known"), [("bench", "join"), ("workload", "join-star")])
def test_lists_have_a_line_each(command: str, known: str) -> None:
    result = CliRunner().invoke(app, [command, "list"])
    assert known in [line.split()[0] for line in result.stdout.splitlines()]
