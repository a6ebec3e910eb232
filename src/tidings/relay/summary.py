"""A plan in a few lines of text, for whoever made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tidings.relay.load import Loads, histogram, loads_of
from tidings.relay.plan import PUBLISHER, RelayPlan

LEVELS_MAX = 30
"""More are shown by groups."""
_BAR = 30
_EIGHTHS = " ▏▎▍▌▋▊▉"


def summary_lines(plan: RelayPlan, loads: Loads | None = None, *, distinct: int | None = None) -> list[str]:
    """loads: of `loads_of`, with the capacities. distinct: how many different queries the views have.

    Figures that nobody has worked out are left out.
    """
    if loads is None:
        loads = loads_of(plan)
    lines = [*_feeding(plan, distinct), *_figures(plan)]
    if plan.inputs:
        lines += ["", "views per level (1: fed by the publisher; otherwise one more than the highest input)"]
        lines += bars(levels_shown(plan, LEVELS_MAX))
        lines += ["", *_loads(loads)]
    return lines


def level_groups(plan: RelayPlan, most: int) -> list[range]:
    """All levels, as no more than `most` groups of neighbours: level 1 alone, the others by as many as it takes."""
    deepest = max(plan.levels.values(), default=0)
    each = max(1, -(-(deepest - 1) // (most - 1)))
    groups = [range(first, min(first + each, deepest + 1)) for first in range(2, deepest + 1, each)]
    return [range(1, 2), *groups] if deepest else []


def levels_shown(plan: RelayPlan, most: int) -> list[tuple[str, int]]:
    """How many views each group of levels has."""
    counted = Counter(plan.levels.values())
    groups = level_groups(plan, most)
    names = [str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}" for group in groups]
    return [(name, sum(counted[level] for level in group)) for name, group in zip(names, groups, strict=True)]


def bars(rows: Sequence[tuple[str, int]]) -> list[str]:
    """A line per row: what is counted, the count, and a bar."""
    first, second = max(len(name) for name, _ in rows), max(len(f"{count:,}") for _, count in rows)
    greatest = max(1, *(count for _, count in rows))
    return [f"  {name:>{first}}  {count:>{second},}  {_bar(count / greatest)}".rstrip() for name, count in rows]


def mean_inputs(plan: RelayPlan) -> float:
    """Of the views that are computed from others."""
    several = [len(inputs) for inputs in plan.inputs.values() if inputs != (PUBLISHER,)]
    return sum(several) / len(several) if several else 0.0


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


def percent(share: float) -> str:
    return f"{share:.2%}" if 0 < share < 0.01 else f"{share:.1%}"


def counted(count: int, noun: str) -> str:
    """`noun` in plural, without its s for one."""
    return f"{count:,} {noun.removesuffix('s') if count == 1 else noun}"


def _bar(share: float) -> str:
    eighths = round(share * _BAR * 8)
    if share > 0:
        eighths = max(1, eighths)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _feeding(plan: RelayPlan, distinct: int | None) -> list[str]:
    views = len(plan.inputs)
    different = "" if distinct is None else f", {distinct:,} different"
    lines = [_line("views", f"{views:,}{different}")]
    if views:
        others = views - plan.feeds
        part = f", {plan.feeds_in_part:,} of them in part" if plan.feeds_in_part else ""
        rest = f"{others:,} ({others / views:.1%}) are fed by other views"
        fed = f"feeds {counted(plan.feeds, 'views')} ({plan.feeds / views:.1%}){part}"
        lines.append(_line("publisher", f"{fed}; {rest}{' alone' if part else ''}"))
        if others or part:
            lines.append(_line("inputs", f"{mean_inputs(plan):.2f} per view that is fed by other views, on average"))
    return lines


def _figures(plan: RelayPlan) -> list[str]:
    lines = []
    if plan.use is not None:
        name, use = ("use", plan.use) if plan.least_use is None else ("least use", plan.least_use)
        lines.append(_line(name, f"{number(use)} bytes per document, to compute all views"))
    if plan.bound is not None:
        gap = "" if plan.gap is None else f" (gap {percent(plan.gap)})"
        lines.append(_line("bound", f"{number(plan.bound)}: no plan by these rewritings uses less{gap}"))
    if plan.use is not None and plan.least_use is not None:
        more = _change(plan.least_use, plan.use)
        lines.append(_line("use", f"{number(plan.use)} ({more}) after latency was reduced"))
    if plan.latency is not None and plan.inputs:
        views = len(plan.inputs)
        hops = f"{plan.latency / views:.2f} hops"
        if plan.least_use_latency is not None:
            change = _change(plan.least_use_latency, plan.latency)
            hops = f"{plan.least_use_latency / views:.2f} -> {hops} ({change})"
        lines.append(_line("latency", f"{hops} from a document to a view's result, on average"))
    if plan.inputs:
        deepest = max(plan.levels.values())
        lines.append(_line("levels", f"{deepest:,}: so many views does a document pass on its way to the deepest one"))
    return lines


def _loads(loads: Loads) -> list[str]:
    noun, common = loads.noun, loads.common_capacity
    limit = f", up to the capacity of {common:,}" if common is not None else ""
    elsewhere = "views elsewhere" if noun == "sites" else "others"
    lines = [f"{noun} by how many {elsewhere} they feed{limit}", *bars(histogram(loads.fed.values(), common))]
    if loads.capacity:
        full = len(loads.full_sites)
        lines.append(f"  at capacity, with no room for more: {counted(full, noun)} ({percent(full / len(loads.fed))})")
    return lines


def _line(name: str, text: str) -> str:
    return f"{name:<10} {text}"


def _change(before: float, after: float) -> str:
    return f"{after / before - 1:+.1%}" if before > 0 else "+0.0%"
