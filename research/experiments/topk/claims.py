"""The number of each claim of `claims.toml`, from the results of one seed."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from research.experiments.paper import Results, Rows, Values

_HERE = Path(__file__).parent
_CLAIMS = tomllib.loads((_HERE / "claims.toml").read_text(encoding="utf-8"))["claim"]
_PUBLISHED = tomllib.loads((_HERE / "published.toml").read_text(encoding="utf-8"))
_APPROXIMATE = ("0.125", "0.25", "0.5", "1")
_MOST = 5_000_000
"""Subscriptions of the single numbers that the paper gives."""
_MANY = 2_000_000


def values(results: Results) -> Values:
    found: Values = dict.fromkeys((claim["claim"] for claim in _CLAIMS), None)
    for names, measure in _MEASURES:
        if all(name in results for name in names):
            found |= {f"topk.{name}": value for name, value in measure(*(results[name] for name in names)).items()}
    return found


def _beside(rows: Rows, experiment: str, ours: str, theirs: str = "", x: str = "k") -> list[tuple[float, float]]:
    """(measured, published) of each row that the paper gives a number for."""
    said = _PUBLISHED[experiment]
    known = dict(zip(said[x], said[theirs or ours], strict=True))
    return [(row[ours], known[row[x]]) for row in rows if row[x] in known]


def _deviation(pairs: Iterable[tuple[float, float]]) -> float:
    return max(abs(own / other - 1) for own, other in pairs)


def _factor(pairs: Iterable[tuple[float, float]]) -> float | None:
    """Greatest factor between two numbers, where the second is not 0; None where it nowhere is."""
    factors = [max(own / other, other / own) if own else math.inf for own, other in pairs if other]
    return max(factors, default=None)


def _span(numbers: Iterable[float]) -> float:
    known = list(numbers)
    return max(known) / min(known)


def _steps(numbers: Sequence[float]) -> list[float]:
    """Each number over the one before."""
    return [after / before for before, after in pairwise(numbers)]


def _by(rows: Rows, key: str) -> dict[Any, Rows]:
    """The rows by a column."""
    return {value: [row for row in rows if row[key] == value] for value in dict.fromkeys(row[key] for row in rows)}


def _calls(rows: Rows) -> Values:
    columns = [[row[name] for row in rows] for name in ("sparse_lookups", "unicast_lookups_mean")]
    sparse = _beside(rows, "calls", "sparse_lookups")
    orders = [row["unicast_lookups_mean"] / (row["sparse_lookups"] + row["sparse_sides"]) for row in rows]
    return {
        "table1.affected": _deviation(_beside(rows, "calls", "affected_mean", "affected")),
        "table3.first": max(row["sparse_sides"] for row in rows),
        "table3.dense": _deviation(_beside(rows, "calls", "dense_lookups_mean", "dense_lookups")),
        "table3.sparse": _deviation(sparse),
        "table3.sparse_more": max(own / other for own, other in sparse),
        "table3.snap": _deviation(_beside(rows, "calls", "sparse_snaps")),
        "table3.unicast": _deviation(_beside(rows, "calls", "unicast_lookups_mean", "unicast_lookups")),
        "table3.below": max(row["sparse_lookups"] / row["dense_lookups"] for row in rows),
        "table3.grows": min(step for column in columns for step in _steps(column)),
        "figure6.calls": min(orders),
        "theorem1.boxes": max(row["dense_boxes"] / row["k"] ** 2 for row in rows),
    }


def _growth(rows: Rows) -> Values:
    said, first, last = _PUBLISHED["growth"], rows[0], rows[-1]
    columns = [[row[name] for row in rows] for name in ("sparse_lookups", "unicast_lookups")]
    beside = {
        name: _beside(rows, "growth", column, x="subscriptions")
        for name, column in (("sparse", "sparse_lookups"), ("snap", "sparse_snaps"), ("unicast", "unicast_lookups"))
    }
    return {
        **{f"table4.{name}": _deviation(pairs) if pairs else None for name, pairs in beside.items()},
        "table4.first": max(row["sparse_sides"] for row in rows),
        "table4.dense": last["dense_lookups"] / said["dense_lookups"],
        "table4.dense_boxes": last["dense_boxes"] / said["dense_boxes"],
        "table4.linear": _span(row["unicast_lookups"] / row["subscriptions"] for row in rows),
        "table4.invariant": _span(row["dense_lookups"] for row in rows),
        "table4.double": first["dense_lookups"] / first["sparse_lookups"],
        "table4.grows": min(step for column in columns for step in _steps(column)),
    }


def _redundancy(rows: Rows) -> Values:
    names = [eps for eps in _APPROXIMATE if f"eps_{eps}" in rows[0]]
    large = [row for row in rows if row["k"] >= 10]
    twice = [pair for pair in pairwise(names) if float(pair[1]) == 2 * float(pair[0])]
    exact = [row[f"eps_{eps}_received"] for row in rows for eps in names if 1 / float(eps) >= row["k"]]
    relax = [
        (row["relax_received"], other)
        for row, (_, other) in zip(rows, _beside(rows, "redundancy", "relax"), strict=True)
    ]
    below = [row["relax_received"] / row["eps_1_received"] for row in rows if row["eps_1_received"]]
    found: Values = {
        "table2.relax": _deviation(_beside(rows, "redundancy", "relax")),
        "table2.relax_all": _factor(relax),
        "table2.zeros": max(map(abs, exact), default=None),
        "table2.order": min((row[f"eps_{b}"] / row[f"eps_{a}"] for row in large for a, b in twice), default=None),
        "table2.below_relax": min(below),
        "figure5.eps": max(
            (row[f"eps_{b}_bytes"] / row[f"eps_{a}_bytes"] for row in large for a, b in twice), default=None
        ),
    }
    for eps in names:
        found[f"table2.eps_{eps}"] = _factor(_beside(rows, "redundancy", f"eps_{eps}"))
        found[f"table2.eps_{eps}_all"] = _factor(_beside(rows, "redundancy", f"eps_{eps}_received", f"eps_{eps}"))
    return found


def _traffic(rows: Rows) -> Values:
    said = _PUBLISHED["traffic"]
    by_k, by_size = _by(rows, "k"), _by(rows, "subscriptions")
    ways = ("unicast", "dense", "sparse", "dense_1", "sparse_1")
    some = [row for row in rows if row["subscriptions"] == _MANY]
    most = [row for row in rows if row["subscriptions"] == _MOST]
    highest = next((row for row in most if row["k"] == 20), None)
    of_size = [[row[f"{way}_bytes"] for row in some] for way in ways]
    per_head = [[row["unicast_bytes"] / row["subscriptions"] for row in of_k] for of_k in by_k.values()]
    most_per_head = [[row["unicast_max"] / row["subscriptions"] for row in of_k] for of_k in by_k.values()]
    gaps = [1 / step for of_k in by_k.values() for step in _steps([row["sparse_bytes"] for row in of_k])]
    rounded = [
        row[f"{way}_1_bytes"] / row[f"{way}_bytes"] for row in rows if row["k"] > 1 for way in ("dense", "sparse")
    ]
    grows = [step for of in by_size.values() for step in _steps([row["unicast_bytes"] for row in of])]
    found: Values = {
        "figure4.invariant": max(_span(row["dense_bytes"] for row in of_k) for of_k in by_k.values()),
        "figure4.unicast_m": max(map(_span, per_head)),
        "figure4.unicast_k": min(grows),
        "figure4.sparse": max(row["sparse_bytes"] / row["dense_bytes"] for row in rows),
        "figure4.never": sum(row["has_more_boxes"] for row in rows),
        "figure4.gap": max(gaps),
        "figure4.eps": max(rounded),
        "figure6.k": max(_span(row["unicast_max"] for row in of) for of in by_size.values()),
        "figure6.m": max(map(_span, most_per_head)),
    }
    if some:
        orders = {way: [math.log10(row["unicast_bytes"] / row[f"{way}_bytes"]) for row in some] for way in ways[1:]}
        found |= {
            "figure5.grows": min(step for column in of_size for step in _steps(column)),
            "figure5.dense": min(orders["dense"]),
            "figure5.least": min(min(orders[way]) for way in ways[2:]),
            "figure5.most": max(orders[way][-1] for way in ways[2:]),
        }
    if highest:
        worst = [(row["unicast_max"] / row["sparse_max"], row["unicast_bytes"] / row["sparse_bytes"]) for row in most]
        found |= {
            "figure4.unicast": highest["unicast_bytes"] / said["unicast_bytes"],
            "figure4.dense": highest["dense_bytes"] / said["dense_bytes"],
            "figure6.unicast": max(row["unicast_max"] for row in most) / said["unicast_max"],
            "figure6.sparse": highest["sparse_max"] / said["sparse_max"],
            "figure6.orders": min(most for most, _ in worst),
            "figure6.wider": min(most / mean for most, mean in worst),
        }
    return found


def _batch(rows: Rows) -> Values:
    found: Values = {}
    for name, column in (("sent", "boxes"), ("received", "received"), ("calls", "lookups")):
        of = [[row[f"{way}_{column}"] for way in ("online", "coalesced", "batch")] for row in rows]
        found[f"figure9.{name}"] = max(step for numbers in of for step in _steps(numbers))
        found[f"figure9.dwarfed_{name}"] = min((online - once) / (once - batch) for online, once, batch in of)
        own = (
            [
                [row[f"sparse_{way}_{column}"] for way in ("online", "coalesced", "batch")]
                for row in rows
                if "sparse_batch_boxes" in row
            ]
            if name != "received"
            else []
        )
        if own:
            found[f"figure9.sparse_{name}"] = max(step for numbers in own for step in _steps(numbers))
    return found | {"figure9.sorting": min(row["coalesced_received"] / row["batch_received"] for row in rows)}


def _spread(rows: Rows) -> Values:
    ratios = {(row["case"], row["subscriptions"]): row["ratio"] for row in rows}
    sizes = [size for case, size in ratios if case.endswith("ranges around them")]
    steps = []
    for places in ("rows anywhere", "rows in clusters"):
        clustered = [case for case, _ in ratios if case.startswith(f"{places}, ranges in clusters")]
        anywhere = "rows and ranges anywhere" if places == "rows anywhere" else f"{places}, ranges anywhere"
        for size in sizes:
            steps += _steps([ratios[case, size] for case in (anywhere, *dict.fromkeys(clustered))])
    skipped = {
        (row["case"], row["subscriptions"]): row["dense_lookups"] - row["sparse_lookups"]
        for row in rows
        if row["case"].endswith(("around them", "between them"))
    }
    around, between = (f"rows in clusters, ranges {where} them" for where in ("around", "between"))
    return {
        "figure8.uniform": ratios["rows and ranges anywhere", max(size for _, size in ratios)],
        "figure8.clustered": max(steps),
        "figure8.anti": min(skipped[between, size] / skipped[around, size] for size in sizes),
    }


def _steps_of_scores(rows: Rows) -> Values:
    volatile, calm = (of for _, of in sorted(_by(rows, "volatility").items(), reverse=True))
    pairs = list(zip(calm, volatile, strict=True))
    return {
        "figure8.steps": max(own["dense_bytes"] / other["dense_bytes"] for own, other in pairs),
        "figure8.steps_unicast": _factor((own["unicast_bytes"], other["unicast_bytes"]) for own, other in pairs),
    }


def _stocks(rows: Rows) -> Values:
    last = rows[-1]
    return {
        "table5.eps_1": _factor(_beside(rows, "stocks", "eps_1")),
        "table5.eps_1_all": _factor(_beside(rows, "stocks", "eps_1_received", "eps_1")),
        "table5.below": max(row["eps_1"] for row in rows),
        "table5.below_all": max(row["eps_1_received"] for row in rows),
        "table5.relax": _factor(_beside(rows, "stocks", "relax")),
        "table5.relax_all": _factor(_beside(rows, "stocks", "relax_received", "relax")),
        "table5.digits": min(row["relax_received"] for row in rows),
        "table6.sparse": _factor(_beside(rows, "stocks", "sparse_lookups")),
        "table6.first": max(row["sparse_sides"] for row in rows),
        "table6.snap": _factor(_beside(rows, "stocks", "sparse_snaps")),
        "table6.unicast": _factor(_beside(rows, "stocks", "unicast_lookups")),
        "table6.orders": min(row["unicast_lookups"] / row["sparse_lookups"] for row in rows),
        "stocks.idle": last["idle"],
        "stocks.exposed": last["dense_lookups"],
    }


def _stocks_and_traffic(stocks: Rows, traffic: Rows) -> Values:
    uniform = {row["k"]: row for row in traffic if row["subscriptions"] == _MANY}
    ratios = [
        row[f"{way}_bytes"] / uniform[row["k"]][f"{way}_bytes"]
        for row in stocks
        if row["k"] in uniform
        for way in ("sparse", "sparse_1")
    ]
    return {"stocks.bytes": max(ratios, default=None)}


def _sketch(rows: Rows) -> Values:
    cases = list(_by(rows, "case").values())
    # The first row of a case is dense, the last one sparse.
    return {
        "sketch.messages": max(step for of in cases for step in _steps([row["boxes"] for row in of[1:-1]])),
        "sketch.size": min(
            (of[-1]["bytes"] / row["bytes"] for of in cases for row in of if row["rectangles"] == 1_024), default=None
        ),
        "sketch.dense": max(of[1]["boxes"] / of[0]["boxes"] for of in cases),
        "sketch.close": max(of[-2]["boxes"] / of[-1]["boxes"] for of in cases),
    }


def _several(rows: Rows, n: int = 200) -> Values:
    saved = [
        row["dense_boxes"] / row["sparse_boxes"] * row["one_sparse_boxes"] / row["one_dense_boxes"] for row in rows
    ]
    rounded = [
        row[f"{way}_1_boxes"] / row[f"{way}_boxes"] for row in rows if row["k"] > 1 for way in ("dense", "sparse")
    ]
    return {
        "theorem5.boxes": max(row["dense_boxes"] / (row["k"] * math.log(n)) ** 3 for row in rows),
        "several.sparse": min(saved),
        "several.deliveries": max(row["sparse_received"] / row["dense_received"] for row in rows),
        "several.eps": max(rounded, default=None),
    }


_MEASURES: list[tuple[tuple[str, ...], Callable[..., Values]]] = [
    (("calls",), _calls),
    (("growth",), _growth),
    (("redundancy",), _redundancy),
    (("traffic",), _traffic),
    (("batch",), _batch),
    (("spread",), _spread),
    (("steps",), _steps_of_scores),
    (("stocks",), _stocks),
    (("stocks", "traffic"), _stocks_and_traffic),
    (("sketch",), _sketch),
    (("several",), _several),
]
