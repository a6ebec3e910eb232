"""`tidings explain`: what Tidings makes of a query, and where a subscription stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from tidings.model.catalog import Catalog

Lines = list[tuple[str, str]]


def add_to(app: typer.Typer) -> None:
    app.command()(explain)


def explain(
    sql: str | None = typer.Argument(None, help="A subscription's SQL; not with --id."),
    catalog: Path | None = typer.Option(None, help="Tables (catalog.sql); default: the tables of the market workload."),
    strategy: list[str] = typer.Option([], metavar="FAMILY=NAME", help="Explain for this strategy; repeatable."),
    id: str | None = typer.Option(None, help="Explain where this subscription stands; needs the files of a replay."),
    subscriptions: Path | None = typer.Option(None, help="Subscriptions of the replay (subscriptions.jsonl)."),
    changes: Path | None = typer.Option(None, help="Changes of the replay (changes.jsonl)."),
    at: int | None = typer.Option(None, min=0, help="Stop after this seq instead of at the end of the changes."),
) -> None:
    """Show a query's family, its point in the family's space, the strategy and what a change will cost.

    With --id: why was it told what it was told, or why was it not? Shows what the subscription was last told, what the
    row is now, and how far that is from being told again.

    Example: tidings explain "SELECT * FROM stocks WHERE sector = 'tech' AND per BETWEEN 45 AND 70"

    Example: tidings explain --id s4 --catalog catalog.sql --subscriptions subscriptions.jsonl --changes changes.jsonl
    """
    from tidings.families.registry import parse_strategies
    from tidings.files import check_files, check_kinds, read_catalog
    from tidings.model.errors import UsageError
    from tidings.sql import parse_catalog
    from tidings.workloads.market import CATALOG_SQL

    tables = read_catalog(catalog) if catalog is not None else parse_catalog(CATALOG_SQL)
    strategies = parse_strategies(strategy)
    if id is None:
        if sql is None or subscriptions or changes or at is not None:
            raise UsageError("give a query, or --id with --catalog, --subscriptions and --changes")
        _show(_of_query(sql, tables, strategies))
        return
    if sql is not None or catalog is None or subscriptions is None or changes is None:
        raise UsageError("--id needs --catalog, --subscriptions and --changes, and no query")
    check_files((subscriptions, changes), ())
    check_kinds(subscriptions, changes)
    from tidings.standing import find_life, follow

    life = find_life(tables, subscriptions, id, at)
    _show([*_of_query(life.sql, tables, strategies), *follow(tables, life, changes, at)])


_SHARED_COSTS = "one visit of an index that all subscriptions on the table share, and a line for each that is told"

_OF_MESSAGES = ("a change costs", "why", "filters", "several ranges")
"""Lines about messages, of which there are none where rows are shared."""


def _show(lines: Lines) -> None:
    width = max(len(label) for label, _ in lines)
    for label, text in lines:
        typer.echo(f"{label.ljust(width)}  {text}")


def _of_query(sql: str, tables: Catalog, strategies: dict[str, str]) -> Lines:
    from tidings.families.optional import SHARED, ChannellessExplanation
    from tidings.families.registry import classify, family_of, needs_shared_rows, shares_rows, strategies_of
    from tidings.sql import Compiler

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
        own = family.explanation.lines(form, part, tables, family.strategies[0] if is_shared else chosen)
        own = [(label, text) for label, text in own if not (is_shared and label in _OF_MESSAGES)]
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
