"""What Tidings makes of a query, in words: its family, its point in the family's space, and what a change will cost."""

from __future__ import annotations

from collections.abc import Mapping

from tidings.families.optional import REGION, SHARED, ChannellessExplanation
from tidings.families.registry import classify, family_of, is_regional, strategies_of
from tidings.model.catalog import Catalog
from tidings.sql import Compiler

Lines = list[tuple[str, str]]

_SHARED_COSTS = "one visit of an index that all subscriptions on the table share, and a line for each that is told"
_REGION_COSTS = (
    "a look at which gateways have a point in the row's region; each that has evaluates the row, as with `shared`"
)


def explain_query(sql: str, tables: Catalog, strategies: Mapping[str, str]) -> Lines:
    """Family, form, points, cost and strategy of a query, as (label, text). SqlError if it is not supported."""
    statement = Compiler(tables).compile(sql)
    family = classify(statement, tables)
    placement = family.place(statement.shape, statement.constants, tables)
    is_regional_form = is_regional(placement.form)
    names = [name for name in strategies_of(family) if is_regional_form or name != REGION]
    asked = strategies.get(family.name, SHARED)
    chosen = asked if asked in names else SHARED
    others = [name for name in names if name != chosen]
    own_words = family.explanation if isinstance(family.explanation, ChannellessExplanation) else None
    lines: Lines = [
        ("family", f"{family.name}: {family.explanation.summary}"),
        ("form", statement.shape.describe()),
    ]
    parts = (placement, *placement.others)
    for number, part in enumerate(parts, 1):
        form = family_of(part.form)[1]
        if len(parts) > 1:
            lines.append((f"disjunct {number}", form.shape.describe()))
        if own_words is None:
            lines.append(("channel", _channels(part.channels)))
        lines += family.explanation.lines(form, part, tables)
    costs = _SHARED_COSTS if own_words is None else own_words.costs
    lines.append(("a change costs", _REGION_COSTS if chosen == REGION else costs))
    return [*lines, ("strategy", f"{chosen} (others: {', '.join(others)})" if others else chosen)]


def _channels(channels: tuple[tuple[str | int, ...], ...]) -> str:
    if not channels:
        return "none: the predicates contradict each other, the answer is always empty"
    if channels == ((),):
        return "one for all (no equality predicate)"
    shown = ", ".join("/".join(map(str, channel)) for channel in channels[:5])
    return shown if len(channels) <= 5 else f"{shown} and {len(channels) - 5} more"
