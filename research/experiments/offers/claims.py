"""One number for each claim of `claims.toml`, from the results of a seed. Without PostgreSQL most are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import exp, log
from statistics import fmean
from typing import Any

from research.experiments.offers.memory import SUPPORTED
from research.experiments.paper import Results, Rows, Values

_CASES = ("fixed", "proportional", "conjunctions", "geometric")
_FEW = 15
"""Publications at a time that are few."""
Row = Mapping[str, Any]


def values(results: Results) -> Values:
    found: Values = {}
    makers: dict[str, Callable[[Rows], Values]] = {
        "breakdown": _breakdown,
        "subscriptions": _subscriptions,
        "batches": _batches,
        "language": _language,
        "memory": _memory,
        "penalty": _penalty,
    }
    for name, make in makers.items():
        if name in results:
            found |= make(results[name])
    if "subscriptions" in results and "batches" in results:
        found |= _best([*results["subscriptions"], *results["batches"]])
    return {f"offers.{claim}": value for claim, value in found.items()}


def _over(row: Row, other: Row, key: str, per: str = "") -> float | None:
    """How many times as much the row has as the other, each a unit of `per`."""
    if key not in row or key not in other:
        return None
    return float(row[key] / other[key] / (row[per] / other[per] if per else 1))


def _exponent(row: Row, other: Row, key: str, of: str) -> float | None:
    """The power of `of` by which the key grows."""
    times = _over(row, other, key)
    return None if times is None else log(times) / log(row[of] / other[of])


def _ratio(row: Row, key: str, other: str) -> float | None:
    return row[key] / row[other] if key in row and other in row else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _most(values: Iterable[float | None]) -> float | None:
    return max(_known(values), default=None)


def _least(values: Iterable[float | None]) -> float | None:
    return min(_known(values), default=None)


_STEPS = ("match", "generation", "copy", "index", "histogram", "preprocessing", "publication")


def _breakdown(rows: Rows) -> Values:
    small, large = rows[0], rows[-1]
    found: Values = {f"figure4.{step}": _over(large, small, f"postgres_{step}_s") for step in _STEPS}
    found["section4.store"] = _over(large, small, "postgres_copy_s", "subscriptions")
    found["figure4.stages"] = _ratio(large, "postgres_aggregation_s", "postgres_intermediate_s")
    if "postgres_match_s" not in small:
        return found | dict.fromkeys(("figure4.milliseconds", "figure4.dominant", "section4.indexing"))
    prepared = [row["postgres_preprocessing_s"] - row["postgres_publication_s"] for row in rows]
    matched = [row["postgres_match_s"] for row in rows]
    indexed = [(row["postgres_index_s"] + row["postgres_histogram_s"]) / row["subscriptions"] for row in rows]
    return found | {
        "figure4.milliseconds": 1e3 * max(matched),
        "figure4.dominant": min(part / match for part, match in zip(prepared, matched, strict=True)),
        "section4.indexing": indexed[-1] / indexed[0],
    }


def _subscriptions(rows: Rows) -> Values:
    small, large = rows[0], rows[-1]
    found: Values = {}
    for way, prefix in (("postgres", "figure5"), ("index", "figure5.index")):
        for case in ("fixed", "geometric"):
            found[f"{prefix}.{case}"] = _over(large, small, f"{case}_{way}_ms")
        for case in ("proportional", "conjunctions"):
            found[f"{prefix}.{case}"] = _exponent(large, small, f"{case}_{way}_ms", f"{case}_subscriptions")
    dear = _least(large.get(f"{case}_postgres_ms") for case in ("proportional", "conjunctions"))
    cheap = _most(large.get(f"{case}_postgres_ms") for case in ("fixed", "geometric"))
    found["figure5.higher"] = None if dear is None or cheap is None else dear / cheap
    found["figure5.spike"] = _ratio(large, "conjunctions_tight_ms", "conjunctions_roomy_ms")
    found["figure5.overhead"] = _least(
        _ratio(large, f"{case}_stranger_ms", f"{case}_met_ms") for case in ("fixed", "geometric")
    )
    for case in _CASES:
        each = [row[f"{case}_matches"] for row in rows]
        if case == "proportional":
            shares = [count / row[f"{case}_subscriptions"] for count, row in zip(each, rows, strict=True)]
            found[f"section5.{case}"] = max(shares, key=lambda share: abs(share - 0.01))
        else:
            found[f"section5.{case}"] = max(each, key=lambda count: abs(count - 5))
    found["section5.used"] = _most(
        _ratio(row, f"{case}_every_ms", f"{case}_used_ms") for row in rows for case in _CASES
    )
    found["section5.or"] = _exponent(large, small, "fixed_or_ms", "fixed_subscriptions")
    found["section4.empty"] = _least(row.get(f"{case}_unused_share") for row in rows for case in _CASES)
    return found


def _rates(rows: Rows, case: str, way: str) -> dict[int, float]:
    """Batch size -> publications/s."""
    key = f"{case}_{way}_rate"
    return {row["batch"]: row[key] for row in rows if key in row}


def _batches(rows: Rows) -> Values:
    found: Values = {}
    firsts = []
    for case in _CASES:
        for way, prefix in (("postgres", "figure7"), ("index", "figure7.index")):
            rates = _rates(rows, case, way)
            found[f"{prefix}.{case}"] = max(rates.values()) / rates[1] if 1 in rates else None
        rates = _rates(rows, case, "postgres")
        most = max(rates, default=0)
        if most <= 1:
            found[f"figure6.{case}"] = None
        elif case in ("fixed", "proportional"):
            found[f"figure6.{case}"] = most * rates[1] / rates[most]
        else:
            found[f"figure6.{case}"] = rates[1] / rates[most]
        if _FEW in rates and most > _FEW:
            firsts.append(rates[_FEW] / rates[1] / (rates[most] / rates[_FEW]))
    rates = _rates(rows, "geometric", "postgres")
    best = max(rates, key=lambda count: rates[count], default=None)
    found["figure7.peak"] = best
    found["figure7.decrease"] = None if best is None else rates[max(rates)] / rates[best]
    found["figure7.first"] = min(firsts, default=None)
    return found


def _best(rows: Rows) -> Values:
    """Of all sizes and batches."""
    single = [row[f"{case}_postgres_ms"] for row in rows for case in _CASES if f"{case}_postgres_ms" in row]
    rates = [row[f"{case}_postgres_rate"] for row in rows for case in _CASES if f"{case}_postgres_rate" in row]
    return {"section9.milliseconds": min(single, default=None), "section9.thousands": max(rates, default=None)}


def _language(rows: Rows) -> Values:
    counts, integers, types = rows
    by_operators, by_types = counts["queries_of_operators"], counts["queries_of_types"]
    return {
        "section4.operators": log(by_operators[-1] / by_operators[0]) / log(len(by_operators)),
        "section4.types": log(by_types[-1] / by_types[0]) / log(len(by_types)),
        "section4.cost": _over(types, integers, "postgres_ms"),
        "section4.classic": _over(types, integers, "index_ms"),
        "section5.half": counts["half"],
    }


def _memory(rows: Rows) -> Values:
    *timed, held = rows

    def faster(row: Row) -> float | None:
        ratios = _known(_ratio(row, f"{case}_postgres_ms", f"{case}_memory_ms") for case in SUPPORTED)
        return exp(fmean(map(log, ratios))) if ratios else None

    return {
        "memory.small": faster(timed[0]),
        "memory.slightly": faster(timed[-1]),
        "memory.all": _ratio(held, "held_bytes", "touched_bytes"),
    }


def _penalty(rows: Rows) -> Values:
    found: Values = {}
    for way, prefix in (("postgres", "section9"), ("index", "section9.index")):
        penalties = _known(_ratio(row, f"constraints_{way}_ms", f"constants_{way}_ms") for row in rows)
        found[f"{prefix}.depends"] = max(penalties) / min(penalties) if penalties else None
        found[f"{prefix}.some"] = min(penalties, default=None)
    return found
