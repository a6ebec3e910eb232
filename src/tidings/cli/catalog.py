"""`tidings catalog`: the tables of a database as CREATE TABLE statements."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    app.command()(catalog)


def catalog(
    source: str = typer.Argument(..., metavar="postgres:DSN", help="The database, as for `tidings run --source`."),
    schema: str = typer.Option("public", help="The schema of the tables."),
    tables: str = typer.Option("", help="Names of tables, such as orders,customers (default: all)."),
) -> None:
    """Print the tables of a PostgreSQL database as a catalog: a start for catalog.sql.

    Types become those that values are kept as; where that is another one, a comment names the database's own. What is left out
    is said on stderr.

    Example: tidings catalog "postgres:dbname=shop" > catalog.sql
    """
    from tidings.endpoint import Endpoint
    from tidings.model.errors import UsageError
    from tidings.terminal import say

    endpoint = Endpoint.parse(source, [])
    if endpoint.format != "postgres":
        raise UsageError(f"the tables of {endpoint.format!r} are not known: write postgres:DSN")
    from tidings.sources.postgres import options_of
    from tidings.sources.postgres.tables import describe

    wanted = [name.strip() for name in tables.split(",") if name.strip()]
    found = describe(options_of(endpoint, "")["dsn"], schema, wanted)
    for line in found.left_out:
        say(f"left out: {line}")
    if not found.statements:
        raise UsageError(f"schema {schema!r} has no table that can be followed")
    typer.echo("\n".join(found.statements))
