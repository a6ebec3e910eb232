"""One number for each claim of `claims.toml`, from the rows of one seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import exp, log
from statistics import fmean

from research.experiments.join.multi import SLOW
from research.experiments.join.outcome import BEST, SKYLINES, STRAWMEN, figures
from research.experiments.paper import Results, Rows, Values

_OTHER_SKYLINES = SKYLINES[:-1]
_ENUMERATED = ("enum-j", "enum-sj")
_SIMPLE = ("ref-j", "ref-j+")
_ALIKE = ("ref-sj:sub", "ref-sj:clu", BEST)
"""Skylines said to be alike at high overlap."""


class _Curves:
    """Results by x and strategy; only those x count for which there are results of all strategies asked for."""

    def __init__(self, rows: Rows, x: str) -> None:
        self._rows, self._x = rows, x

    def at(self, name: str, place: int) -> dict[str, float]:
        """By strategy, for the first x (0) or the last (-1)."""
        return list(figures(self._rows, self._x, name).values())[place]

    def over(self, name: str, strategies: Iterable[str], other: str = BEST) -> list[float]:
        """How many times as much each of some strategies has as another, for every x."""
        found = figures(self._rows, self._x, name).values()
        return [of_x[strategy] / of_x[other] for of_x in found for strategy in strategies]

    def growth(self, name: str, strategy: str) -> float:
        """What there is at the last x, for what there is at the first."""
        return self.at(name, -1)[strategy] / self.at(name, 0)[strategy]

    @property
    def span(self) -> float:
        """The last x for the first."""
        return float(self._rows[-1][self._x] / self._rows[0][self._x])


def _growth(results: Results) -> dict[str, float]:
    rows = results["growth"]
    by = _Curves(rows, "subscriptions")
    described = ("rel-sel", *_SIMPLE, *SKYLINES)
    slower = [max(of_x[name] for name in _SIMPLE) for of_x in figures(rows, "subscriptions", "output_us").values()]
    semijoins = [max(of_x[name] for name in SKYLINES) for of_x in figures(rows, "subscriptions", "output_us").values()]
    points = figures(rows, "subscriptions", "points")
    clusters = figures(rows, "subscriptions", "clusters")
    told = figures(rows, "subscriptions", "deliveries")
    overhead = ("ref-sj:clu", BEST)
    return {
        "figure5.enum_j": 1 / max(by.over("output_us", ("enum-sj", *described), "enum-j")),
        "figure5.enum_sj": 1 / max(by.over("output_us", described, "enum-sj")),
        "figure5.checked": min(by.over("output_us", ["ref-j+"], "ref-j")),
        "figure5.checking": min(by.over("us", ["ref-j+"], "ref-j")),
        "figure5.semijoins": max(own / other for own, other in zip(semijoins, slower, strict=True)),
        "figure5.sub": 1 / max(by.over("output_us", SKYLINES[1:], "ref-sj:sub")),
        "figure5.overhead": max(by.over("output_us", overhead, "ref-sj:tup")),
        "figure5.overhead_alone": max(by.over("us", overhead, "ref-sj:tup")),
        "figure5.growth": by.growth("output_us", "enum-sj") / by.growth("output_us", BEST),
        "section8.server": min(by.over("output_us", ["enum-j"])),
        "table3.lowest": min(by.over("sent", STRAWMEN)),
        "table3.enumerated": min(by.over("sent", _ENUMERATED)),
        "table4.bytes": min(by.over("description", ("ref-sj:sub", "ref-sj:tup"))),
        "table4.points": min(by.over("points", _OTHER_SKYLINES)),
        "section3.compressed": max(points[x][BEST] / (2 * clusters[x][BEST]) for x in points),
        "section3.fewest": max(by.over("points", [BEST], "ref-sj:min")),
        "section3.described": max(points[x][BEST] / told[x][BEST] for x in points),
        "figure6.unicast": min(by.over("sent", ["enum-j"], "enum-sj")),
        "figure6.degrades": by.growth("sent", "enum-sj") / by.span,
    }


def _database(results: Results) -> dict[str, float]:
    by = _Curves(results["database"], "r_size")
    sent = figures(results["database"], "r_size", "sent")
    usual = min(sent, key=lambda size: abs(float(size) - 16_000))
    return {
        "figure7.exposed": 1 / by.growth("messages", BEST),
        "figure7.slightly": by.at("sent", 0)[BEST] / sent[usual][BEST],
    }


def _output(results: Results) -> dict[str, float]:
    by = _Curves(results["output"], "rate")
    many = by.at("carried", -1)
    above = [ratio > 10 for ratio in by.over("carried", STRAWMEN)]
    others = ("ref-sj:sub", "ref-sj:clu", BEST)
    tup = by.growth("carried", "ref-sj:tup")
    return {
        "figure8.few": by.over("output_us", ["ref-j"])[0],
        "figure8.many": by.growth("output_us", "ref-j"),
        "figure8.scales": by.growth("output_us", "ref-j") / by.growth("output_us", BEST),
        "figure9.tup": many["ref-sj:tup"] / max(many[name] for name in others),
        "figure9.tup_grows": tup / max(by.growth("carried", name) for name in others),
        "figure9.few": max(by.over("carried", _SIMPLE)[: len(_SIMPLE)]),
        "figure9.many": min(by.growth("carried", name) for name in _SIMPLE),
        "figure9.usually": fmean(above),
    }


def _stocks(results: Results) -> dict[str, float]:
    by = _Curves(results["stocks"], "subscriptions")
    found = {
        "figure10.rate": float(results["stocks"][0]["rate"]),
        "figure10.degrades": min(by.growth("sent", name) for name in _ENUMERATED) / by.span,
    }
    if "growth" in results:
        synthetic = _Curves(results["growth"], "subscriptions").over("sent", ["ref-j+"])[0]
        found["figure10.closer"] = by.over("sent", ["ref-j+"])[0] / synthetic
    return found


def _payload(results: Results) -> dict[str, float]:
    by = _Curves(results["payload"], "payload")
    first, last = by.at("sent", 0), by.at("sent", -1)
    more = [(last[name] - last[BEST]) / (first[name] - first[BEST]) for name in (*_ENUMERATED, *_SIMPLE)]
    return {
        "figure18.grows": min(by.growth("sent", name) for name in first),
        "figure18.difference": min(more),
        "figure18.converge": max(last[name] / last[BEST] for name in _OTHER_SKYLINES),
        "figure18.diminish": min(first[name] / first[BEST] / (last[name] / last[BEST]) for name in _OTHER_SKYLINES),
    }


def _overlap(results: Results) -> dict[str, float]:
    by = _Curves(results["overlap"], "overlap")
    left = {name: by.growth("carried", name) for name in (*STRAWMEN, *SKYLINES)}
    spread = [
        max(of_x[name] for name in _ALIKE) / min(of_x[name] for name in _ALIKE)
        for of_x in (by.at("carried", 0), by.at("carried", -1))
    ]
    gained = [
        after / before
        for name in STRAWMEN
        for after, before in zip(by.over("last_hop", [name]), by.over("carried", [name]), strict=True)
    ]
    return {
        "figure19.told": by.growth("deliveries", "enum-sj"),
        "figure19.joined": by.growth("sent", "ref-j"),
        "figure19.falls": max(left[name] for name in ("ref-j+", *_ENUMERATED, *SKYLINES)),
        "figure19.tup": left["ref-sj:tup"] / max(left[name] for name in _ALIKE),
        "figure19.tup_description": by.growth("description", "ref-sj:tup"),
        "figure19.converge": spread[1],
        "figure19.converging": spread[1] / spread[0],
        "figure19.relaxed": left["rel-sel"],
        "figure19.relaxed_told": by.growth("deliveries", "rel-sel"),
        "figure20.stress": min(by.over("sent", ["enum-sj"])),
        "figure20.gain": min(gained),
    }


def _general(results: Results) -> dict[str, float]:
    rows = by_widths(results["general"])[0]
    ways = [row for row in rows if row["strategy"] == BEST]
    (chosen,) = (row for row in ways if row["is_best_by_numbers"])
    carried = [float(row["carried"]) for row in ways]
    (relaxed,) = (row["carried"] for row in rows if row["strategy"] == "rel-sel")
    messages = min(float(row["messages"]) for row in ways if row["carried"] == min(carried))
    cost = {name: ways[0][f"cost_{name}"] for name in "RUT"}
    return {
        "figure13.order": min(cost["R"] / cost["U"], cost["U"] / cost["T"]),
        "figure13.optimal": chosen["carried"] / min(carried),
        "figure13.good": chosen["carried"] / min(carried),
        "figure13.saved": 1 - chosen["carried"] / max(carried),
        "figure13.relaxed": relaxed / min(carried),
        "figure13.prohibitive": ways[0]["joined_rows"] / messages,
        "appendixE.greedy": chosen["estimated"] / min(row["estimated"] for row in ways),
    }


def _star(results: Results) -> dict[str, float]:
    payloads = sorted({row["fact_payload"] for row in results["star"]})
    free, heavy = (
        [
            _over_best([row for row in part if row["fact_payload"] == payload], "carried")
            for part in by_widths(results["star"])
        ]
        for payload in (payloads[0], payloads[-1])
    )
    plain = [[row for row in part if row["fact_payload"] == payloads[0]] for part in by_widths(results["star"])]
    long = {
        name: [_over_best(part, name)["long-sj"] for part in plain]
        for name in ("deliveries", "description", "us", "messages", "carried")
    }
    others = {"relaxed": "rel-sel", "joined": "ref-j", "enumerated": "enum-j"}
    found = {
        "payload": max(heavy[0][name] / free[0][name] for name in others.values()),
        "margin": min(heavy[0][name] for name in others.values()),
        "margin_chosen": min(heavy[1][name] for name in others.values()),
    }
    for key, name in others.items():
        ratios = [of_width[name] for of_width in free]
        found |= {key: ratios[0], f"{key}_chosen": ratios[1], f"{key}_widths": _geometric(ratios)}
    return {f"figure14.{name}": value for name, value in found.items()} | {
        "appendixF.filter": max(long["deliveries"]),
        "appendixF.description": min(long["description"]),
        "appendixF.processing": min(long["us"]),
        "appendixF.groups": min(long["messages"]),
        "appendixF.attractive": _geometric(long["carried"]),
    }


def _columns(results: Results) -> dict[str, float]:
    one, two = (row for row in results["columns"] if row["strategy"] == BEST)
    found = {
        "skylines": two["description"] / one["description"],
        "processing": two["us"] / one["us"],
        "aggressive": one["delivered"] / two["delivered"],
        "traffic": one["carried"] / two["carried"],
        "envelope": two["late_told"] / two["late_needed"],
        "envelope_box": two["late_boxed"] / two["late_needed"],
    }
    return {f"appendixC.{name}": value for name, value in found.items()}


def _over_best(rows: Rows, name: str) -> dict[str, float]:
    """How many times as much each strategy has as `BEST`, of the same changes."""
    (best,) = (row for row in rows if row["strategy"] == BEST)
    return {row["strategy"]: row[name] / best[f"first_{name}" if row["strategy"] in SLOW else name] for row in rows}


def _geometric(ratios: Sequence[float]) -> float:
    return exp(fmean(map(log, ratios)))


def by_widths(rows: Rows) -> list[Rows]:
    """The rows of each width of ranges, as they come: those of the binary workload first."""
    groups: dict[tuple[int, int | None], Rows] = {}
    for row in rows:
        groups.setdefault((row["width"], row.get("center_width", row.get("fact_width"))), []).append(row)
    return list(groups.values())


_VALUES: dict[str, Callable[[Results], dict[str, float]]] = {
    "growth": _growth,
    "database": _database,
    "output": _output,
    "stocks": _stocks,
    "payload": _payload,
    "overlap": _overlap,
    "general": _general,
    "star": _star,
    "columns": _columns,
}


def values(results: Results) -> Values:
    """The number of each claim that these experiments tell."""
    return {
        f"join.{name}": value for of, tell in _VALUES.items() if of in results for name, value in tell(results).items()
    }
