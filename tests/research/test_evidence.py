"""Every claim has a bound that can be read, a value for each seed, and the verdict that anybody computes from these."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from statistics import fmean, stdev

import pytest

from research import evidence
from research.evidence import Bound, everything, interval_of, judge, page

RESEARCH = Path(__file__).parents[2] / "research"
RECORDS = json.loads((RESEARCH / "results.json").read_text())
BOUND = re.compile(r"(>=|>|<=|<) (-?[\d.]+)|(-?[\d.]+) \.\. (-?[\d.]+)")


def satisfies(bound, value):
    sign, limit, low, high = BOUND.fullmatch(bound).groups()
    if sign is None:
        return float(low) <= value <= float(high)
    return {
        ">=": value >= float(limit),
        ">": value > float(limit),
        "<=": value <= float(limit),
        "<": value < float(limit),
    }[sign]


def test_verdicts_follow_from_the_values():
    for record in RECORDS:
        values = record["values"]
        if not values:
            assert record["verdict"] == "cannot be told" and record["reason"], record["claim"]
            continue
        half = 2.776 * stdev(values) / 5**0.5
        interval = [fmean(values) - half, fmean(values) + half]
        assert len(values) == 5 and record["interval"] == pytest.approx(interval), record["claim"]
        # An interval reaches over a bound with two ends if an end, or a value between, satisfies it.
        low, high = record["interval"]
        inside = [satisfies(record["bound"], low + part * (high - low) / 1_000) for part in range(1_001)]
        expected = "holds" if inside[0] and inside[-1] else "cannot be told" if any(inside) else "does not"
        assert record["verdict"] == expected, record["claim"]


def test_every_claim_of_every_paper_is_there():
    papers = Counter(record["paper"] for record in RECORDS)
    assert set(papers) == set(evidence.PAPERS) and len(RECORDS) >= 120
    assert len({record["claim"] for record in RECORDS}) == len(RECORDS)
    named = [
        claim["claim"]
        for file in RESEARCH.glob("experiments/*/claims.toml")
        for claim in tomllib.loads(file.read_text())["claim"]
    ]
    assert sorted(named) == sorted(record["claim"] for record in RECORDS)


def test_what_does_not_hold_has_a_reason():
    assert [record["claim"] for record in RECORDS if record["verdict"] != "holds" and not record["reason"]] == []


def test_the_page_is_made_of_the_results():
    assert (RESEARCH / "CLAIMS.md").read_text() == page(everything())


@pytest.mark.parametrize(
    ("bound", "values", "verdict"),
    [
        (">= 10", [12, 13, 12], "holds"),
        (">= 10", [1, 2, 1], "does not"),
        (">= 10", [8, 12, 10], "cannot be told"),
        ("< 1", [1.0, 1.0], "does not"),
        ("<= 1", [1.0, 1.0], "holds"),
        ("1 .. 2", [1.5, 1.6, 1.4], "holds"),
        ("1 .. 2", [3.5, 3.6, 3.4], "does not"),
        ("1 .. 2", [0.0, 3.0, 1.5], "cannot be told"),
        ("1 .. 2", [2.0, 2.1, 1.9], "cannot be told"),
        ("> 3", [], "cannot be told"),
        ("> 3", [None, 5.0], "holds"),
    ],
)
def test_verdicts(bound, values, verdict):
    assert judge({"bound": bound}, values).verdict == verdict


def test_intervals_are_students():
    assert interval_of([4.0]) == (4.0, 4.0)
    low, high = interval_of([1.0, 2.0, 3.0, 4.0, 5.0])
    # 2.776 times 1.5811 over the root of five.
    assert low == pytest.approx(3 - 1.963, abs=1e-3) and high == pytest.approx(3 + 1.963, abs=1e-3)
    assert Bound("0.5 .. 1").admits(0.5) and not Bound("< 2").admits(2)
