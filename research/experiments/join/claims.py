"""What the paper says, checked: for each of its claims what was found, and whether that is so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from research.experiments.join.outcome import BEST, LABELS, SKYLINES, STRAWMEN, figures
from research.experiments.paper import Config as Said
from research.experiments.paper import Rows
from tidings.bench.report import shown

_MORE = 1.1
"""Less than so many times as much counts as the same."""


class Found(NamedTuple):
    holds: bool
    measured: str


class Curves:
    """Results by x and strategy."""

    def __init__(self, rows: Rows, x: str) -> None:
        self._rows, self._x = rows, x

    def of(self, name: str, strategy: str) -> list[float]:
        return [found[strategy] for found in figures(self._rows, self._x, name).values()]

    def over(self, name: str, strategy: str, other: str = BEST) -> list[float]:
        """How many times as much a strategy has, for every x."""
        return [a / b for a, b in zip(self.of(name, strategy), self.of(name, other), strict=True)]

    def growth(self, name: str, strategy: str) -> float:
        """What there is at the last x, for what there is at the first."""
        found = self.of(name, strategy)
        return found[-1] / found[0]


def span(values: Iterable[float]) -> str:
    ordered = [shown(value) for value in sorted(values)]
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


def _compared(curves: Curves, name: str, strategies: Iterable[str], least: float, other: str = BEST) -> Found:
    """Whether all of them have at least so many times as much as another, for every x."""
    ratios = {strategy: curves.over(name, strategy, other) for strategy in strategies}
    text = ", ".join(f"{LABELS[strategy]} {span(found)}" for strategy, found in ratios.items())
    return Found(all(min(found) >= least for found in ratios.values()), f"{text} times {LABELS[other]}")


def _grown(curves: Curves, name: str, strategies: Iterable[str], is_so: Callable[[float], bool]) -> Found:
    """Whether what there is at the last x, for what there is at the first, is so for all of them."""
    ratios = {strategy: curves.growth(name, strategy) for strategy in strategies}
    text = ", ".join(f"{LABELS[strategy]} {shown(ratio)}" for strategy, ratio in ratios.items())
    return Found(all(is_so(ratio) for ratio in ratios.values()), f"last for first: {text}")


def _faster(curves: Curves, name: str, strategy: str, other: str) -> Found:
    """Whether what one strategy has grows at least twice as much as what another has."""
    limit = 2 * curves.growth(name, other)
    found = _grown(curves, name, [strategy, other], lambda ratio: True)
    return Found(curves.growth(name, strategy) >= limit, found.measured)


def _growth(rows: Rows, said: Said) -> dict[str, Found]:
    by = Curves(rows, "subscriptions")
    enumerated = _compared(by, "output_us", ["enum-j"], 1.0, "enum-sj")
    all_others = [_compared(by, "output_us", ["enum-sj"], 1.0, name) for name in (*STRAWMEN[2:], *SKYLINES)]
    return {
        "slowest": Found(
            enumerated.holds and all(found.holds for found in all_others),
            f"{enumerated.measured}, {all_others[-1].measured}",
        ),
        "checked": _compared(by, "us", ["ref-j+"], 1.0, "ref-j"),
        "sub": _compared(by, "us", ["ref-sj:sub"], _MORE, "ref-sj:tup"),
        "overhead": _overhead(by),
        "lowest": _compared(by, "carried", [*STRAWMEN, *SKYLINES[:-1]], 1.0),
        "factor": _compared(by, "carried", STRAWMEN, said["factor"]),
        "relaxed": _compared(by, "carried", ["ref-j", "ref-j+"], 1.0, "rel-sel"),
        "grows": _faster(by, "carried", "enum-sj", BEST),
        "hops": _compared(by, "hops", STRAWMEN, said["factor"]),
        "stress": _compared(by, "sent", STRAWMEN, 1.0),
        "enumerated": _compared(by, "sent", ["enum-j", "enum-sj"], 100),
        "compact": _compared(by, "description", SKYLINES[:-1], 2.0),
    }


def _overhead(by: Curves) -> Found:
    """By the processor, and with the output of messages."""
    ratios = {
        (what, name): by.over(what, name, "ref-sj:tup")
        for what in ("us", "output_us")
        for name in ("ref-sj:clu", "ref-sj:clu+")
    }
    names = {"us": "", "output_us": " with output"}
    text = ", ".join(f"{LABELS[name]}{names[what]} {span(found)}" for (what, name), found in ratios.items())
    return Found(all(max(found) < 1.5 for found in ratios.values()), f"{text} times Ref-SJ-Tup")


def _database(rows: Rows, said: Said) -> dict[str, Found]:
    by = Curves(rows, "r_size")
    ratio = 1 / by.growth("carried", BEST)
    return {
        "small": Found(1 < ratio < 2, f"{LABELS[BEST]} {shown(ratio)} times as much with the smallest R"),
        "below": _compared(by, "carried", STRAWMEN, 1.0),
    }


def _output(rows: Rows, said: Said) -> dict[str, Found]:
    by = Curves(rows, "rate")
    few = by.over("output_us", "ref-j")[0]
    joined = by.growth("output_us", "ref-j")
    usual = sorted(min(by.over("carried", name)[i] for name in STRAWMEN) for i in range(len(by.of("carried", BEST))))
    text = (
        f"with the fewest {shown(few)} times {LABELS[BEST]} ({shown(by.over('us', 'ref-j')[0])} without output),"
        f" last for first {shown(joined)}"
    )
    return {
        "join_time": Found(few < _MORE and joined > 10, text),
        "clu_time": _faster(by, "output_us", "ref-j", BEST),
        "join_traffic": _grown(by, "carried", ["ref-j", "ref-j+"], lambda ratio: ratio > 10),
        "tup_traffic": _faster(by, "carried", "ref-sj:tup", BEST),
        "factor": Found(
            usual[len(usual) // 2] >= said["factor"],
            f"the best of the strawmen {span(usual)}, " + _compared(by, "carried", STRAWMEN, 1.0).measured,
        ),
    }


def _stocks(rows: Rows, said: Said) -> dict[str, Found]:
    by, rate = Curves(rows, "subscriptions"), rows[0]["rate"]
    return {
        "rate": Found(abs(rate / said["rate"] - 1) < 0.2, f"{shown(rate)}, so chosen"),
        "factor": _compared(by, "carried", STRAWMEN, said["factor"]),
        "grows": _grown(by, "carried", ["enum-j", "enum-sj"], lambda ratio: ratio > _MORE),
    }


def _payload(rows: Rows, said: Said) -> dict[str, Found]:
    by = Curves(rows, "payload")
    more = [b - a for a, b in zip(by.of("carried", BEST), by.of("carried", "rel-sel"), strict=True)]
    tup = by.over("carried", "ref-sj:tup")
    return {
        "difference": Found(
            more[-1] > 10 * more[0], f"Rel-Sel {shown(more[0])} bytes more at first, {shown(more[-1])} at last"
        ),
        "converge": Found(
            tup[-1] < _MORE < tup[0], f"Ref-SJ-Tup {shown(tup[0])} times at first, {shown(tup[-1])} at last"
        ),
    }


def _overlap(rows: Rows, said: Said) -> dict[str, Found]:
    by = Curves(rows, "overlap")
    falling = ["enum-j", "enum-sj", "ref-j+", *SKYLINES]
    gains = {name: by.growth("carried", name) for name in SKYLINES}
    last = max(by.over("carried", name)[-1] for name in ("ref-sj:sub", "ref-sj:clu"))
    strawmen = [name for name in STRAWMEN if name != "enum-sj"]
    gained = {
        name: [a / b for a, b in zip(by.over("last_hop", name), by.over("carried", name), strict=True)]
        for name in strawmen
    }
    return {
        "falls": _grown(by, "carried", falling, lambda ratio: ratio < 1),
        "joins": _grown(by, "sent", ["ref-j"], lambda ratio: abs(ratio - 1) < 0.01),
        "relaxed": _grown(by, "carried", ["rel-sel"], lambda ratio: ratio > 1),
        "tup": Found(
            gains["ref-sj:tup"] == max(gains.values()), _grown(by, "carried", SKYLINES, lambda ratio: True).measured
        ),
        "converge": Found(last < 1.5, _compared(by, "carried", ["ref-sj:sub", "ref-sj:clu"], 0).measured),
        "last_hop": _compared(by, "last_hop", [*strawmen, *SKYLINES], 1.0, "enum-sj"),
        "slightly": Found(
            max(by.over("last_hop", BEST, "enum-sj")) < 2, span(by.over("last_hop", BEST, "enum-sj")) + " times"
        ),
        "attractive": Found(
            all(min(found) > 1 for found in gained.values()),
            ", ".join(f"{LABELS[name]} {span(found)}" for name, found in gained.items())
            + " times as far above as without",
        ),
    }


def _general(rows: Rows, said: Said) -> dict[str, Found]:
    saved, relaxed, is_best = [], [], []
    for of_width in by_widths(rows):
        ways = [row for row in of_width if row["strategy"] == BEST]
        (chosen,) = (row["carried"] for row in ways if row["is_best_by_numbers"])
        every = [row["carried"] for row in ways]
        is_best.append(chosen == min(every))
        saved.append(1 - chosen / max(every))
        (relax,) = (row["carried"] for row in of_width if row["strategy"] == "rel-sel")
        relaxed.append(relax / min(every))
    costs = {name: next(row[f"cost_{name}"] for row in rows if f"cost_{name}" in row) for name in "RUT"}
    order = ", ".join(f"by {name} {value:.3f}" for name, value in costs.items())
    return {
        "order": Found(costs["R"] > costs["U"] > costs["T"], order),
        "best": Found(is_best[0], _of_widths(rows, ["yes" if best else "no" for best in is_best])),
        "saved": Found(saved[0] > said["saved"] / 2, _of_widths(rows, [f"{100 * share:.0f}%" for share in saved])),
        "relaxed": Found(relaxed[0] >= said["relaxed"], _of_widths(rows, map(shown, relaxed))),
    }


def _star(rows: Rows, said: Said) -> dict[str, Found]:
    free, heavy = (
        [_over_best([row for row in part if row["fact_payload"] == payload]) for part in by_widths(rows)]
        for payload in (min(row["fact_payload"] for row in rows), max(row["fact_payload"] for row in rows))
    )
    found = {
        key: Found(free[0][name] >= said[key], _of_widths(rows, (shown(ratios[name]) for ratios in free)))
        for key, name in (("relaxed", "rel-sel"), ("joined", "ref-j"), ("enumerated", "enum-j"))
    }
    text = "; ".join(
        f"{LABELS[name]} {_of_widths(rows, (shown(ratios[name]) for ratios in heavy))}"
        for name in ("rel-sel", "ref-j", "enum-j")
    )
    is_less = all(heavy[0][name] < free[0][name] for name in ("rel-sel", "ref-j", "enum-j"))
    return found | {"payload": Found(is_less, text)}


def _over_best(rows: Rows) -> dict[str, float]:
    (best,) = (row["carried"] for row in rows if row["strategy"] == BEST)
    return {row["strategy"]: row["carried"] / best for row in rows}


def by_widths(rows: Rows) -> list[Rows]:
    """The rows of each width of ranges: the usual ones first."""
    groups: dict[tuple[Any, Any], Rows] = {}
    for row in rows:
        groups.setdefault((row["width"], _center_width(row)), []).append(row)
    return list(groups.values())


def _of_widths(rows: Rows, texts: Iterable[str]) -> str:
    first, *others = texts
    widths = [f"{group[0]['width']:,} and {_center_width(group[0]):,}" for group in by_widths(rows)][1:]
    return ", ".join([first, *(f"{text} with ranges {width} wide" for text, width in zip(others, widths, strict=True))])


def _center_width(row: dict[str, Any]) -> Any:
    return row.get("center_width", row.get("fact_width"))


_CHECKS: dict[str, Callable[[Rows, Said], dict[str, Found]]] = {
    "growth": _growth,
    "database": _database,
    "output": _output,
    "stocks": _stocks,
    "payload": _payload,
    "overlap": _overlap,
    "general": _general,
    "star": _star,
}


def check(results: dict[str, Rows], published: dict[str, Said]) -> dict[str, dict[str, Found]]:
    """Experiment -> claim -> what was found."""
    return {name: _CHECKS[name](rows, published[name]) for name, rows in results.items()}
