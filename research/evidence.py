"""`python -m research.evidence`: a verdict on every claim of the five papers, from the results of the experiments.

A claim is one number with a bound that was written down before it was measured (`claims.toml` of an experiment's folder).
Its values, one per seed, are in `results/results.json` beside it. The verdict compares the 95% confidence interval of their
mean with the bound: wholly inside, the claim holds; wholly outside, it does not; else it cannot be told. Written are
`research/results.json`, from which anybody can compute the verdicts again, and the page `research/CLAIMS.md`.
"""

from __future__ import annotations

import json
import operator
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from research.experiments.page import number, table

HERE = Path(__file__).parent
PAPERS = {
    "000": "Select-join subscriptions",
    "001": "Symmetric publish/subscribe",
    "002": "Value-based notification conditions",
    "003": "Delta: views fed by other views",
    "004": "Range top-k subscriptions",
}
HOLDS, FAILS, UNKNOWN = "holds", "does not", "cannot be told"
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""Quantiles 0.975 of Student's t, for 1, 2, .. degrees of freedom; 1.96 is close enough beyond twice as many."""
_LIMIT = 2.131
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}


class Bound(NamedTuple):
    """What a number must be: `>= 10`, `< 2`, or `0.8 .. 1.2` with both ends."""

    text: str

    def admits(self, value: float) -> bool:
        low, dots, high = self.text.partition("..")
        if dots:
            return float(low) <= value <= float(high)
        sign, limit = self.text.split()
        return _OPERATORS[sign](value, float(limit))

    def verdict(self, interval: tuple[float, float]) -> str:
        low, high = interval
        if self.admits(low) and self.admits(high):
            return HOLDS
        if self.admits(low) or self.admits(high) or self._is_within(low, high):
            return UNKNOWN
        return FAILS

    def _is_within(self, low: float, high: float) -> bool:
        """Whether the interval reaches over the bound on both sides."""
        start, dots, stop = self.text.partition("..")
        return bool(dots) and low < float(start) and high > float(stop)


def interval_of(values: Sequence[float]) -> tuple[float, float]:
    """The 95% confidence interval of the mean."""
    mean = fmean(values)
    if len(values) == 1:
        return mean, mean
    freedom = len(values) - 1
    quantile = _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else _LIMIT
    half = quantile * stdev(values) / len(values) ** 0.5
    return mean - half, mean + half


class Judged(NamedTuple):
    """A claim of a `claims.toml`, with its values and the verdict."""

    said: dict[str, Any]
    values: list[float]
    interval: tuple[float, float] | None
    verdict: str

    def record(self) -> dict[str, Any]:
        return {
            **{key: self.said[key] for key in ("claim", "paper", "bound", "published")},
            "values": self.values,
            "interval": self.interval,
            "verdict": self.verdict,
            "reason": self.said.get("reason", ""),
            **{key: self.said[key] for key in ("figure", "says", "measures")},
            "chosen": self.said.get("chosen", False),
        }


def judge(said: dict[str, Any], values: Iterable[float | None]) -> Judged:
    known = [value for value in values if value is not None]
    if not known:
        return Judged(said, [], None, UNKNOWN)
    interval = interval_of(known)
    return Judged(said, known, interval, Bound(said["bound"]).verdict(interval))


def judged_in(folder: Path) -> list[Judged]:
    """All claims of one folder of experiments."""
    claims = tomllib.loads((folder / "claims.toml").read_text(encoding="utf-8"))["claim"]
    file = folder / "results" / "results.json"
    measured = json.loads(file.read_text(encoding="utf-8"))["claims"] if file.exists() else {}
    return [judge(said, measured.get(said["claim"], [])) for said in claims]


def everything(folder: Path = HERE / "experiments") -> list[Judged]:
    found = [claim for file in sorted(folder.glob("*/claims.toml")) for claim in judged_in(file.parent)]
    return sorted(found, key=lambda claim: claim.said["paper"])


_OPENING = """# What the papers claim, and what was found

Written by `python -m research.evidence` from the results of `python -m research.experiments.NAME`; all numbers are in
[results.json](results.json). Each claim is one number, with a bound that was fixed before it was measured: the paper's own
figure where it has one, else what its words mean at least (slightly: within twice; an order of magnitude: ten times; orders
of magnitude: a hundred times). *Ours* is the mean over the seeds with its 95% confidence interval. A claim *holds* if all of
the interval satisfies the bound, *does not* if none of it does; else, or if what it is about is lost or missing here, it
*cannot be told*. Where a parameter that a paper does not give was chosen such that a claim holds, it is marked *chosen*, and
counted apart.

"""


def page(claims: Sequence[Judged]) -> str:
    parts = [_OPENING, _counts(claims)]
    failed = [claim for claim in claims if claim.verdict == FAILS]
    if failed:
        lines = [[_said(claim), claim.said["bound"], _ours(claim), claim.said.get("reason", "")] for claim in failed]
        parts += ["## What does not hold, and why\n\n", table(["claim", "bound", "ours", "why"], lines)]
    for paper, title in PAPERS.items():
        own = [claim for claim in claims if claim.said["paper"] == paper]
        if own:
            head = ["claim", "published", "measured", "bound", "ours", "verdict", "to know"]
            parts += [f"## Paper {paper}: {title}\n\n", table(head, map(_line, own))]
    return "".join(parts).rstrip() + "\n"


def _counts(claims: Sequence[Judged]) -> str:
    lines = []
    for paper, title in PAPERS.items():
        own = [claim for claim in claims if claim.said["paper"] == paper]
        lines.append([f"{paper}: {title}", *_numbers(own)])
    return table(["paper", "claims", HOLDS, "of these chosen", FAILS, UNKNOWN], [*lines, ["all", *_numbers(claims)]])


def _numbers(claims: Sequence[Judged]) -> list[str]:
    counts = Counter(claim.verdict for claim in claims)
    chosen = sum(claim.verdict == HOLDS and claim.said.get("chosen", False) for claim in claims)
    return [str(count) for count in (len(claims), counts[HOLDS], chosen, counts[FAILS], counts[UNKNOWN])]


def _line(claim: Judged) -> list[str]:
    said = claim.said
    chosen = " (chosen)" if said.get("chosen", False) else ""
    verdict = f"**{claim.verdict}**" if claim.verdict == FAILS else claim.verdict
    reason = "" if claim.verdict == FAILS else said.get("reason", "")
    return [
        _said(claim),
        str(said["published"]),
        said["measures"],
        said["bound"],
        _ours(claim),
        verdict + chosen,
        reason,
    ]


def _said(claim: Judged) -> str:
    return f"{claim.said['figure']}: {claim.said['says']}"


def _ours(claim: Judged) -> str:
    if claim.interval is None:
        return ""
    low, high = claim.interval
    mean = number(fmean(claim.values))
    return mean if low == high else f"{mean} ({number(low)} to {number(high)})"


def main() -> None:
    claims = everything()
    lines = ",\n".join(json.dumps(claim.record()) for claim in claims)
    (HERE / "results.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    (HERE / "CLAIMS.md").write_text(page(claims), encoding="utf-8")


if __name__ == "__main__":
    main()
