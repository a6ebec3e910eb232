"""Entry point of the `tidings` command."""

from __future__ import annotations

import gc
import os
import sys

import typer

from tidings import __version__
from tidings.cli import (
    bench,
    broker,
    catalog,
    demo,
    explain,
    gateway,
    key,
    paint,
    replay,
    run,
    serve,
    simulate,
    watch,
    workload,
)
from tidings.relay.commands import plan, relay

app = typer.Typer(
    name="tidings",
    help="Live queries for millions: every subscriber is told exactly the changes to its own answer.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (
    demo,
    serve,
    gateway,
    broker,
    replay,
    run,
    catalog,
    explain,
    paint,
    plan,
    relay,
    simulate,
    workload,
    bench,
    key,
    watch,
):
    command.add_to(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tidings {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", help="Show the version.", callback=_show_version, is_eager=True),
) -> None:
    pass


def main() -> None:
    run_app(app)


def run_app(app: typer.Typer) -> None:
    """Runs the command; mistakes of the user end with one line and exit code 2, failures and bugs with exit code 1."""
    from tidings.model.errors import RunError, TidingsError

    # Modules and kernels make hundreds of thousands of objects, which stay; to look among them for garbage, as often as
    # Python does by default, takes a tenth of a short run.
    gc.set_threshold(100_000)
    try:
        app()
    except TidingsError as error:
        if os.environ.get("TIDINGS_DEBUG"):
            raise
        is_failure = isinstance(error, RunError)
        sys.stderr.write(f"{'failed' if is_failure else 'error'}: {error}\n")
        sys.exit(1 if is_failure else 2)
    except BrokenPipeError:
        # The reader of our output has gone (as in `| head`): nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if os.environ.get("TIDINGS_DEBUG"):
            raise
        if isinstance(error, ModuleNotFoundError) and error.name == "pyspark":
            hint = "; `run`, `serve` and `replay` take --engine inline, which does without"
            sys.stderr.write(f"error: this needs Spark: pip install '.[spark]' in the clone{hint}\n")
            sys.exit(2)
        # Of errors of Spark the first line says what is wrong; the others are Java's trace.
        said = str(error).strip().partition("\n")[0]
        sys.stderr.write(f"failed: {type(error).__name__}: {said}\n(set TIDINGS_DEBUG=1 for the full trace)\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
