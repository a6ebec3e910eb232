"""`tidings explain`: what Tidings makes of a query."""

from __future__ import annotations

from pathlib import Path

import typer


def add_to(app: typer.Typer) -> None:
    app.command()(explain)


def explain(
    sql: str = typer.Argument(help="A subscription's SQL."),
    catalog: Path | None = typer.Option(None, help="Tables (catalog.sql); default: the tables of the market workload."),
    strategy: list[str] = typer.Option([], metavar="FAMILY=NAME", help="Explain for this strategy; repeatable."),
) -> None:
    """Show a query's family, its point in the family's space, the strategy and what a change will cost.

    Example: tidings explain "SELECT * FROM stocks WHERE sector = 'tech' AND per BETWEEN 45 AND 70"
    """
    from tidings.families.registry import classify, family_of, parse_strategies
    from tidings.files import read_catalog
    from tidings.sql import Compiler, parse_catalog
    from tidings.workloads.market import CATALOG_SQL

    tables = read_catalog(catalog) if catalog is not None else parse_catalog(CATALOG_SQL)
    statement = Compiler(tables).compile(sql)
    family = classify(statement, tables)
    chosen = parse_strategies(strategy).get(family.name, family.strategies[0])
    placement = family.place(statement.shape, statement.constants, tables)
    form = family_of(placement.form)[1]
    others = ", ".join(name for name in family.strategies if name != chosen)
    lines = [
        ("family", f"{family.name}: {family.summary}"),
        ("form", statement.shape.describe()),
        ("channel", _channels(placement.channels)),
        *family.explain(form, placement, tables, chosen),
        ("strategy", f"{chosen} (others: {others})"),
    ]
    width = max(len(label) for label, _ in lines)
    for label, text in lines:
        typer.echo(f"{label.ljust(width)}  {text}")


def _channels(channels: tuple[tuple[str | int, ...], ...]) -> str:
    if not channels:
        return "none: the predicates contradict each other, the answer is always empty"
    if channels == ((),):
        return "one for all (no equality predicate)"
    shown = ", ".join("/".join(map(str, channel)) for channel in channels[:5])
    return shown if len(channels) <= 5 else f"{shown} and {len(channels) - 5} more"
