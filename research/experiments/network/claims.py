"""One number for each claim on networks (`claims.toml`), from the results of one seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

import numpy as np

from research.experiments.paper import Results, Rows, Values

BEST = "ref-sj:clu+"
STRAWMEN = ("enum-j", "enum-sj", "rel-sel", "ref-j", "ref-j+")
SKYLINES = ("ref-sj:sub", "ref-sj:tup", "ref-sj:clu", BEST)
_JOINED = ("ref-j", "ref-j+")


class Curves:
    """Results by x and strategy."""

    def __init__(self, rows: Rows, x: str, by: str = "strategy") -> None:
        self._values = {(row[x], row[by]): row for row in rows}
        self.xs = sorted({row[x] for row in rows})
        self.names = list(dict.fromkeys(row[by] for row in rows))

    def at(self, x: object, name: str, column: str = "bytes") -> float:
        return float(self._values[x, name][column])

    def over(self, names: Iterable[str], other: str, column: str = "bytes", xs: Sequence[object] = ()) -> list[float]:
        """Ratios of all these to another, for every x."""
        known = [name for name in names if name in self.names]
        return [self.at(x, name, column) / self.at(x, other, column) for name in known for x in xs or self.xs]

    def growth(self, name: str, column: str = "bytes") -> float:
        """What there is at the last x over what there is at the first."""
        return self.at(self.xs[-1], name, column) / self.at(self.xs[0], name, column)


def values(results: Results) -> Values:
    """Only of what was run."""
    found: Values = {}
    for names, numbers in _NUMBERS.items():
        if all(name in results for name in names):
            found |= {f"network.{claim}": value for claim, value in numbers(*(results[name] for name in names)).items()}
    return found


def _growth(rows: Rows) -> Values:
    by = Curves(rows, "subscriptions")
    others = [name for name in by.names if name != BEST]
    enumerated = min(by.over(["enum-j"], name) for name in by.names if name != "enum-j")
    hops = [[by.at(x, name, "messages") for name in SKYLINES if name in by.names] for x in by.xs]
    return {
        "figure6.lowest": min(by.over(others, BEST)),
        "figure6.factor": min(by.over(STRAWMEN, BEST)),
        "figure6.relaxed": min(by.over(_JOINED, "rel-sel")),
        "figure6.worst": min(enumerated),
        "figure6.grows": by.growth("enum-sj") / by.growth(BEST),
        "table3.lowest": min(by.over(STRAWMEN, BEST, "server_bytes")),
        "table3.enumeration": min(by.over(["enum-j", "enum-sj"], BEST, "server_bytes")),
        "figure17.factor": min(by.over(STRAWMEN, BEST, "messages")),
        "figure17.equal": max(max(of_x) / min(of_x) for of_x in hops),
    }


def _database(rows: Rows) -> Values:
    by = Curves(rows, "r_size")
    return {
        "figure7.small": by.at(by.xs[0], BEST) / by.at(16_000, BEST) if 16_000 in by.xs else None,
        "figure7.best": min(by.over(STRAWMEN, BEST)),
    }


def _output(rows: Rows) -> Values:
    by = Curves(rows, "s_size")
    least, most = [by.xs[0]], [by.xs[-1]]
    return {
        "figure9.factor": median(min(by.over(STRAWMEN, BEST, xs=[x])) for x in by.xs),
        "figure9.tup": by.growth("ref-sj:tup") / by.growth(BEST),
        "figure9.few": max(by.over(_JOINED, BEST, xs=least)),
        "figure9.many": min(by.over(_JOINED, BEST, xs=most)),
    }


def _stocks(rows: Rows, synthetic: Rows) -> Values:
    by, other = Curves(rows, "subscriptions"), Curves(synthetic, "subscriptions")
    (closer,) = by.over(["ref-j+"], BEST, xs=by.xs[:1])
    (usual,) = other.over(["ref-j+"], BEST, xs=other.xs[:1])
    return {"figure10.factor": min(by.over(STRAWMEN, BEST)), "figure10.closer": closer / usual}


def _payload(rows: Rows) -> Values:
    by = Curves(rows, "payload")
    gaps = [abs(by.at(x, "rel-sel") - by.at(x, BEST)) for x in by.xs]
    (tup,) = by.over(["ref-sj:tup"], BEST, xs=by.xs[-1:])
    return {"figure18.converge": tup, "figure18.gap": gaps[-1] / gaps[0]}


def _overlap(rows: Rows) -> Values:
    by = Curves(rows, "overlap")
    skylines = [name for name in SKYLINES if name in by.names]
    others = [name for name in by.names if name != "enum-sj"]
    return {
        "figure19.joins": by.growth("ref-j"),
        "figure19.falls": max(by.growth(name) for name in ("enum-j", "enum-sj", "ref-j+", *skylines)),
        "figure19.tup": by.growth("ref-sj:tup") / max(by.growth(name) for name in skylines if name != "ref-sj:tup"),
        "figure19.relaxed": by.growth("rel-sel"),
        "figure20.enumeration": min(by.over(others, "enum-sj", "last_hop_bytes")),
        "figure20.slightly": max(by.over([BEST], "enum-sj", "last_hop_bytes")),
    }


def _repository(rows: Rows) -> Values:
    by = Curves(rows, "entries")
    both = ("ref-j+", BEST)

    def left(name: str, entries: str, column: str = "bytes") -> float:
        """What is left of the cost without caching."""
        return by.at(entries, name, column) / by.at("none", name, column)

    return {
        "figure11.small": max(left(name, "100") for name in both),
        "figure11.gain": (1 - left("ref-j+", "400")) / (1 - left(BEST, "400")),
        "figure11.lower": min(by.over(["ref-j+"], BEST)),
        "figure11.directory": max(left(name, "0") for name in both),
        "figure11.join_stress": 1 / left("ref-j+", "400", "server_bytes"),
        "figure11.semijoin_stress": 1 / left(BEST, "400", "server_bytes"),
    }


def _latency(rows: Rows) -> Values:
    by = Curves(rows, "entries")
    rise = {name: by.at("100", name, "hops") / by.at("none", name, "hops") for name in ("ref-j+", BEST)}
    (relaxed,) = by.over(["rel-sel"], BEST, "hops", ["none"])
    return {
        "figure12.latency": max(rise.values()),
        "figure12.least": rise["ref-j+"] - rise[BEST],
        "figure12.relaxed": relaxed,
    }


_STRESS_SIZE = 10_000


def _radii(rows: Rows) -> Values:
    by = Curves(rows, "subscriptions", "way")
    return {
        "notify7.radii": by.at(by.xs[-1], "unicast") / by.at(by.xs[-1], "r"),
        "notify7.ends": min(by.over(["lr"], "unicast")),
        **_stress(by, "notify7", {"ends": "lr", "unicast": "unicast", "radii": "r"}),
        "notify7.calm": by.at(_STRESS_SIZE, "r", "calm"),
    }


def _same(rows: Rows) -> Values:
    by = Curves(rows, "subscriptions", "way")
    return {
        "notify9.labels": max(by.at(x, "lid") for x in by.xs),
        "notify9.centres": min(by.over(["c"], "unicast")),
        "notify9.ends": min(by.over(["lr"], "c")),
        **_stress(by, "notify9", {"ends": "lr", "centres": "c", "unicast": "unicast", "labels": "lid"}),
    }


def _stress(by: Curves, figure: str, ways: dict[str, str]) -> Values:
    return {f"{figure}.stress_{name}": by.at(_STRESS_SIZE, way, "stress_max") for name, way in ways.items()}


def _arrivals(rows: Rows) -> Values:
    by = Curves(rows, "rate", "way")
    (apart,) = by.over(["unicast"], "lid", "operation_bytes", by.xs[-1:])
    return {
        "notify10.labels": by.growth("lid", "operation_bytes"),
        "notify10.others": max(by.growth(way, "operation_bytes") for way in ("unicast", "c")),
        "notify10.apart": apart,
    }


def _mixed(figure: str) -> Callable[[Rows], Values]:
    def numbers(rows: Rows) -> Values:
        by = Curves(rows, "subscriptions", "way")
        (factor,) = by.over(["unicast"], "r,lid", "operation_bytes", by.xs[-1:])
        return {f"{figure}.factor": factor, f"{figure}.ends": min(by.over(["lr"], "unicast", "operation_bytes"))}

    return numbers


def _rankings(rows: Rows) -> Values:
    by = Curves(rows, "k", "way")
    relaxed = [by.at(k, "relax") for k in by.xs]
    return {
        "topk7.worst": min(ratio for name in by.names if name != "unicast" for ratio in by.over(["unicast"], name)),
        "topk7.factor": min(by.over(["unicast"], "sparse")),
        "topk7.approximate": max(by.over(["sparse_1"], "sparse", xs=[k for k in by.xs if k >= 5])),
        "topk7.flat": max(relaxed) / min(relaxed),
        "topk7.relaxed": max(by.over(["relax"], "sparse", xs=[k for k in by.xs if k >= 15])),
        "topk7.levels": _rank_correlation(
            *([by.at(k, name, column) for k in by.xs for name in by.names] for column in ("bytes", "ip_bytes"))
        ),
    }


def _ranking_stocks(rows: Rows) -> Values:
    by = Curves(rows, "k", "way")
    return {
        "topk10.factor": min(by.over(["unicast"], "sparse")),
        "topk10.approximate": min(by.over(["unicast"], "sparse_1")),
        "topk10.relaxed": by.over(["relax"], "sparse", xs=[10])[0],
    }


def _rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    first, second = (np.argsort(np.argsort(values)) for values in (a, b))
    return float(np.corrcoef(first, second)[0, 1])


_NUMBERS: dict[tuple[str, ...], Callable[..., Values]] = {
    ("growth",): _growth,
    ("database",): _database,
    ("output",): _output,
    ("join_stocks", "growth"): _stocks,
    ("payload",): _payload,
    ("overlap",): _overlap,
    ("repository",): _repository,
    ("latency",): _latency,
    ("radii",): _radii,
    ("same",): _same,
    ("arrivals",): _arrivals,
    ("all",): _mixed("notify11"),
    ("stocks",): _mixed("notify12"),
    ("rankings",): _rankings,
    ("ranking_stocks",): _ranking_stocks,
}
