"""What all benches have in common: the report as people read it, and mistakes in options."""

from __future__ import annotations

import io

import pytest

from tidings.bench import BENCHES, find
from tidings.bench.report import Figure, Report, short, shown
from tidings.cli.bench import sizes_of
from tidings.model.errors import UsageError


def test_report_shows_sizes_and_growth() -> None:
    report = Report("title", (10_000, 1_000_000), {})
    report.add(10_000, [Figure("a", "rate", "changes/s", 200.0)])
    report.add(1_000_000, [Figure("a", "rate", "changes/s", 100.0), Figure("b", "cost", "us", 1.234)])
    out = io.StringIO()
    report.write(out)
    assert out.getvalue().splitlines() == [
        "title",
        "figure  unit       10k    1M  1M / 10k",
        "rate    changes/s  200   100     0.50x",
        "cost    us           -  1.23         -",
    ]
    assert [short(n) for n in (10_000, 1_500, 2_000_000)] == ["10k", "1500", "2M"]
    assert [shown(x) for x in (1234567.0, 12.34, 0.1234, None)] == ["1,234,567", "12.3", "0.123", "-"]


def test_mistakes_name_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"mix, live, soak, serve, edge, network; .* python -m research bench list"):
        find("select")
    with pytest.raises(UsageError, match="--sizes"):
        sizes_of("10k")


def test_every_bench_can_be_loaded() -> None:
    for entry in BENCHES.values():
        assert callable(entry.load())
