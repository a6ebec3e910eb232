"""`tidings watch`: the notifications of a service on stdout."""

from __future__ import annotations

import sys

import typer


def add_to(app: typer.Typer) -> None:
    app.command()(watch)


def watch(
    url: str = typer.Argument(..., metavar="URL", help="The service, such as http://127.0.0.1:8090."),
    id: str = typer.Option("", "--id", help="A subscription that exists."),
    sql: str = typer.Option("", "--sql", help="A query; its subscription is dropped at the end."),
    count: int = typer.Option(0, min=0, help="End after so many lines (default: never)."),
    key: str = typer.Option("", envvar="TIDINGS_KEY", help="An API key or a JWT."),
) -> None:
    """Print the notifications of a subscription as they happen, as lines of out.jsonl: first the whole answer.

    Connects again when the service restarts, and repeats nothing. Ctrl-C ends it.

    Example: tidings watch http://127.0.0.1:8090 --sql "SELECT * FROM stocks WHERE price < 500"
    """
    from tidings.client import Client, NotFound
    from tidings.model.errors import UsageError

    if bool(id) == bool(sql):
        raise UsageError("write --id or --sql, one of them")
    with Client(url, key or None) as client:
        made = client.create(sql, idle_seconds=3600)["id"] if sql else None
        lines = client.lines(made or id)
        try:
            for number, line in enumerate(lines, 1):
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
                if number == count:
                    break
        except KeyboardInterrupt:
            pass
        except NotFound:
            raise UsageError(f"there is no subscription {made or id!r} that this key may read") from None
        finally:
            lines.close()
            if made is not None:
                client.drop(made)
