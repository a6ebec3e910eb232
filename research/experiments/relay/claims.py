"""One number for each claim of the paper, from the results of one seed. Without the experiment a claim is about: None."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from statistics import fmean
from typing import Any

from research.experiments.paper import Results, Rows, Values
from research.experiments.relay.plans import UNLIMITED

Row = dict[str, Any]
_LIMITED = (30, 50, 100)
_CAPACITIES = (*_LIMITED, UNLIMITED)


def values(results: Results) -> Values:
    found: Values = {}
    for figures in (_table_2, _table_3, _latency, _levels, _weights, _wan, _partial):
        found |= figures(results)
    return {f"relay.{claim}": value for claim, value in found.items()}


class _Sets:
    """Rows by set, in the order in which the configuration names sets, then by capacity: the first set of the paper, a smaller
    one like it with every capacity, the second set of the paper."""

    def __init__(self, rows: Rows) -> None:
        by_set: dict[str, dict[Any, Row]] = {}
        for row in rows:
            by_set.setdefault(row["set"], {})[row["capacity"]] = row
        found: list[dict[Any, Row]] = [*by_set.values(), {}, {}, {}]
        self.first, self.small, self.second = found[:3]


def _number(of: Callable[[], float]) -> float | None:
    """None where a row is not there."""
    try:
        return of()
    except (KeyError, IndexError, ValueError):
        return None


def _table_2(results: Results) -> Values:
    rows = results.get("sets", [])
    names = ("predicates_per_view", "predicates_per_node", "nodes_per_view", "return_nodes_per_view")
    found: Values = {
        f"table2.{claim}": _number(lambda name=name: rows[0][name])  # type: ignore[misc]
        for claim, name in zip(("predicates", "predicates_per_node", "nodes", "return_nodes"), names, strict=True)
    }
    columns = {
        "embeddings": "embeddings",
        "cycles": "dropped",
        "embedded": "embedding_share",
        "seconds": "embeddings_and_rewritings_cpu_s",
        "rewritings": "rewritings",
        "edges": "edges",
        "rewritten": "rewritten_views",
        "inputs": "inputs_per_rewriting",
        "fanout": "uses_per_view",
    }
    for claim, name in columns.items():
        for place in (0, 1):
            found[f"table2.{claim}_{place + 1}"] = _number(lambda place=place, name=name: rows[place][name])  # type: ignore[misc]
    return found


def _table_3(results: Results) -> Values:
    sets = _Sets(results.get("plans", []))
    first, small, second = sets.first, sets.small, sets.second

    def fed(rows: dict[Any, Row], capacities: Iterable[Any]) -> float:
        return max(100 - float(rows[capacity]["rewritten_share"]) for capacity in capacities)

    def ratio(name: str, one: Row, other: Row) -> float:
        return float(one[name] / other[name])

    inputs = "inputs_per_rewriting"
    return {
        "table3.rewritten_1": _number(lambda: fed(first, (30, UNLIMITED))),
        "table3.rewritten_2": _number(lambda: fed(second, (100, UNLIMITED))),
        "table3.use": _number(lambda: ratio("use", first[30], first[UNLIMITED])),
        "table3.monotone": _number(
            lambda: min(ratio("use", small[less], small[more]) for less, more in pairwise(_CAPACITIES))
        ),
        "table3.inputs": _number(lambda: max((first[each][inputs] for each in (30, UNLIMITED)), key=_from_1_785)),
        "table3.fewer_inputs": _number(lambda: ratio(inputs, first[30], first[UNLIMITED])),
        "table3.inputs_repeated": _number(lambda: second[UNLIMITED][inputs]),
        "table3.inputs_compared": _number(lambda: ratio(inputs, second[UNLIMITED], first[UNLIMITED])),
        "table3.use_repeated": _number(lambda: ratio("use", second[UNLIMITED], first[UNLIMITED])),
        "text.solver": _number(lambda: first[30]["solve_cpu_s"]),
        "text.solver_unlimited": _number(lambda: ratio("solve_cpu_s", first[UNLIMITED], first[30])),
        "text.infeasible": _number(lambda: float("needed" in second[30])),
        "text.offloaded": _number(lambda: ratio("rewritten_share", first[30], first[UNLIMITED])),
        "text.full_views": _number(lambda: first[30]["full_share"]),
    }


def _from_1_785(inputs: float) -> float:
    """How far from the middle of what is published."""
    return abs(inputs - 1.785)


def _latency(results: Results) -> Values:
    # The row of the last pass is the last of its capacity.
    sets, plans = _Sets(results.get("latency", [])), _Sets(results.get("plans", []))
    graphs = results.get("sets", [])

    def reduction(rows: dict[Any, Row], capacity: Any) -> float:
        return 100 - float(rows[capacity]["latency_share"])

    def seconds() -> float:
        return float(graphs[0]["all_cpu_s"] + plans.first[30]["solve_cpu_s"] + sets.first[30]["seconds"])

    every = [row for rows in (sets.first, sets.small, sets.second) for row in rows.values()]
    return {
        "figure6.reduction": _number(lambda: min(reduction(sets.small, capacity) for capacity in _LIMITED)),
        "figure6.full": _number(lambda: reduction(sets.first, 30)),
        "figure6.seconds": _number(lambda: sets.first[30]["seconds"]),
        "figure7.reduction": _number(lambda: min(reduction(sets.second, capacity) for capacity in _LIMITED)),
        "figure7.compared": _number(lambda: reduction(sets.second, 30) / reduction(sets.first, 30)),
        "text.use_increase": _number(lambda: max(row["use_increase"] for row in every)),
        "text.minutes": _number(seconds),
    }


def _levels(results: Results) -> Values:
    sets = _Sets(results.get("levels", []))

    def ratio(capacity: Any) -> float:
        row = sets.small[capacity]
        return len(row["less_latency"]) / len(row["least_use"])

    def few() -> list[int]:
        found: list[int] = sets.first[30]["less_latency"]
        return found

    def least(capacity: Any) -> int:
        return len(sets.small[capacity]["least_use"])

    return {
        "figure8.levels": _number(lambda: len(sets.first[30]["least_use"])),
        "figure8.less_levels": _number(lambda: len(few())),
        "figure8.two_thirds": _number(lambda: max(map(ratio, _LIMITED))),
        "figure8.deep": _number(lambda: 100 * sum(few()[6:]) / sum(few())),
        "figure8.mean": _number(lambda: sum(n * count for n, count in enumerate(few(), 1)) / sum(few())),
        "figure8.bounds_alone": _number(lambda: least(50) / least(30)),
        "figure8.passes": _number(lambda: len(sets.small[30]["less_latency"]) / least(50)),
    }


def _weights(results: Results) -> Values:
    by_name = {row["weights"]: row for row in results.get("weights", [])}

    def ratio(one: str, other: str, name: str) -> float | None:
        return _number(lambda: by_name[one][name] / by_name[other][name])

    return {
        "text.same_capacity": _number(lambda: by_name["both"]["reduction"]),
        "text.alpha": ratio("alpha alone", "beta alone", "use"),
        "text.beta": ratio("beta alone", "alpha alone", "latency"),
    }


def _wan(results: Results) -> Values:
    rows = results.get("wan", [])
    by_capacity = {row["capacity"]: row for row in rows}
    least = {capacity: _of_plan(row, "least_use") for capacity, row in by_capacity.items()}
    less = {capacity: _of_plan(row, "less_latency") for capacity, row in by_capacity.items()}
    plans = [*least.values(), *less.values()]
    views = sum(rows[0]["least_use_levels"]) if rows else 0
    middle = [least[capacity] for capacity in least if capacity not in (5, UNLIMITED)]

    def mean(of: dict[Any, Row], name: str) -> float:
        return float(fmean(row[name] for row in of.values()))

    def reduction(capacity: Any) -> float:
        return 100 * float(1 - less[capacity]["latency_mean_s"] / least[capacity]["latency_mean_s"])

    def against_middle(capacity: Any) -> float | None:
        return _number(lambda: least[capacity]["delivery_mean_s"] / min(row["delivery_mean_s"] for row in middle))

    def most_latency(capacity: Any) -> float:
        return float(least[capacity]["latency_max_s"])

    others = [capacity for capacity in by_capacity if capacity != 5]
    finite = [capacity for capacity in by_capacity if capacity != UNLIMITED]
    return {
        "figure9.half": _number(lambda: min(len(less[each]["levels"]) / len(least[each]["levels"]) for each in least)),
        "figure9.unlimited": _number(lambda: len(least[UNLIMITED]["levels"])),
        "figure9.publisher": _number(lambda: max(row["publisher_feeds"] for row in rows)),
        "figure9.matched": _number(lambda: rows[0]["matched_share"]),
        "figure10.mean": _number(lambda: mean(less, "latency_mean_s")),
        "figure10.throughput": _number(lambda: views / mean(less, "latency_mean_s")),
        "figure10.first": _number(lambda: least[5]["latency_min_s"]),
        "figure10.spread": _number(lambda: most_latency(5) / least[5]["latency_min_s"]),
        "figure10.reduction": _number(lambda: max(map(reduction, by_capacity))),
        "figure10.smallest": _number(lambda: reduction(5) / max(map(reduction, others))),
        "figure10.unlimited": _number(lambda: most_latency(UNLIMITED) / min(map(most_latency, finite))),
        "figure10.estimates": _number(
            lambda: fmean(reduction(each) / by_capacity[each]["estimated_reduction"] for each in by_capacity)
        ),
        "figure10.alike": _number(lambda: less[30]["latency_mean_s"] / least[50]["latency_mean_s"]),
        "figure11.delivery": _number(lambda: mean(less, "delivery_mean_s")),
        "figure11.ratio": _number(
            lambda: fmean(row["delivery_mean_s"] / row["latency_mean_s"] for row in less.values())
        ),
        "figure11.last": _number(lambda: max(row["latency_max_s"] / row["delivery_max_s"] for row in plans)),
        "figure11.small": against_middle(5),
        "figure11.unlimited": against_middle(UNLIMITED),
        "text.matching": _number(lambda: by_capacity[30]["matching_ms"]),
        "text.less_load": _number(lambda: by_capacity[30]["matching_ms"] / by_capacity[30]["matching_all_ms"]),
    }


def _of_plan(row: Row, plan: str) -> Row:
    return {name.removeprefix(f"{plan}_"): value for name, value in row.items() if name.startswith(f"{plan}_")}


def _partial(results: Results) -> Values:
    by_kind = {row["partial"]: row for row in results.get("partial", [])}
    return {
        f"text.{claim}": _number(lambda name=name: by_kind[True][name] / by_kind[False][name])  # type: ignore[misc]
        for claim, name in (("partial", "steps"), ("partial_bytes", "bytes"))
    }
