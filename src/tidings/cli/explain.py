"""`tidings explain`: what Tidings makes of a query, and where a subscription stands."""

from __future__ import annotations

from pathlib import Path

import typer


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
    from tidings.explaining import explain_query
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
        _show(explain_query(sql, tables, strategies))
        return
    if sql is not None or catalog is None or subscriptions is None or changes is None:
        raise UsageError("--id needs --catalog, --subscriptions and --changes, and no query")
    check_files((subscriptions, changes), ())
    check_kinds(subscriptions, changes)
    from tidings.standing import find_life, follow

    life = find_life(tables, subscriptions, id, at)
    _show([*explain_query(life.sql, tables, strategies), *follow(tables, life, changes, at)])


def _show(lines: list[tuple[str, str]]) -> None:
    width = max(len(label) for label, _ in lines)
    for label, text in lines:
        typer.echo(f"{label.ljust(width)}  {text}")
