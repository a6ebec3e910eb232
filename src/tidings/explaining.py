"""What Tidings makes of a query, in words: its family, its point in the family's space, and what a change will cost."""

from __future__ import annotations

from collections.abc import Mapping

from tidings.families.optional import SHARED, ChannellessExplanation
from tidings.families.registry import classify, family_of, needs_shared_rows, shares_rows, strategies_of
from tidings.model.catalog import Catalog
from tidings.sql import Compiler

Lines = list[tuple[str, str]]

_SHARED_COSTS = "one visit of an index that all subscriptions on the table share, and a line for each that is told"

_OF_MESSAGES = ("a change costs", "why", "filters")
"""Lines about messages of the family's own strategy."""


def explain_query(sql: str, tables: Catalog, strategies: Mapping[str, str]) -> Lines:
    """Family, form, points, cost and strategy of a query, as (label, text). SqlError if it is not supported."""
    statement = Compiler(tables).compile(sql)
    family = classify(statement, tables)
    placement = family.place(statement.shape, statement.constants, tables)
    is_shared = shares_rows(placement.form, strategies)
    asked = strategies.get(family.name, SHARED)
    chosen = asked if not is_shared or not needs_shared_rows(placement.form) else SHARED
    others = "others: " + ", ".join(name for name in strategies_of(family) if name != chosen)
    own_words = family.explanation if isinstance(family.explanation, ChannellessExplanation) else None
    if needs_shared_rows(placement.form):
        only = "several disjuncts and IS NULL" if own_words is None else own_words.shared_only
        others = f"the only one for {only}, whatever is asked for"
    lines: Lines = [
        ("family", f"{family.name}: {family.explanation.summary}"),
        ("form", statement.shape.describe()),
    ]
    parts = (placement, *placement.others)
    for number, part in enumerate(parts, 1):
        form = family_of(part.form)[1]
        own = family.explanation.lines(form, part, tables)
        if chosen not in family.strategies:
            own = [(label, text) for label, text in own if label not in _OF_MESSAGES]
        if len(parts) > 1:
            lines.append((f"disjunct {number}", form.shape.describe()))
        if own_words is None:
            lines.append(("channel", _channels(part.channels)))
        lines += own
    if is_shared:
        lines.append(("a change costs", _SHARED_COSTS if own_words is None else own_words.shared_costs))
    return [*lines, ("strategy", f"{chosen} ({others})")]


def _channels(channels: tuple[tuple[str | int, ...], ...]) -> str:
    if not channels:
        return "none: the predicates contradict each other, the answer is always empty"
    if channels == ((),):
        return "one for all (no equality predicate)"
    shown = ", ".join("/".join(map(str, channel)) for channel in channels[:5])
    return shown if len(channels) <= 5 else f"{shown} and {len(channels) - 5} more"
