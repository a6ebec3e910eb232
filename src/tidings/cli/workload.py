"""`tidings workload`: seeded data in the file contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated

import typer

from tidings.workloads import WORKLOADS, find

_LINES_PER_WRITE = 5_000


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Workloads: " + "; ".join(f"{name} ({e.description})" for name, e in WORKLOADS.items()))(
        workload
    )


def workload(
    name: Annotated[str, typer.Argument(help="Which workload; `list` shows them.")],
    out: Annotated[
        Path | None, typer.Option(help="Directory for catalog.sql, subscriptions.jsonl and changes.jsonl.")
    ] = None,
    subscriptions: Annotated[
        int, typer.Option(min=0, help="Subscriptions ever created; their drops come on top.")
    ] = 100_000,
    changes: Annotated[int, typer.Option(min=0, help="Changes, counting the inserts that fill the tables.")] = 100_000,
    rows: Annotated[
        int, typer.Option(min=0, help="Rows the main table starts with (0: a number that suits the changes).")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same files.")] = 0,
) -> None:
    """Generate a workload: tables, subscriptions and changes, ready for `tidings replay`.

    Example: tidings workload market --out data --subscriptions 100000 --changes 1000000
    """
    from tidings.files import replacing
    from tidings.model.errors import UsageError
    from tidings.terminal import console, progress

    if name == "list":
        width = max(len(known) for known in WORKLOADS)
        for known, entry in WORKLOADS.items():
            typer.echo(f"{known.ljust(width)}  {entry.description}")
        return
    generate = find(name).load()
    if out is None:
        raise UsageError("say where the files should go: --out DIR")
    made = generate(seed=seed, rows=rows, subscriptions=subscriptions, changes=changes)
    counts = {}
    with progress() as display:
        with replacing(out / "catalog.sql") as sink:
            sink.write(made.catalog_sql.encode())
        for kind, lines, total in (
            ("subscriptions", made.subscriptions, subscriptions),
            ("changes", made.changes, changes),
        ):
            task = display.add_task(kind, total=total)
            with replacing(out / f"{kind}.jsonl") as sink:
                counts[kind] = 0
                for written in _write(sink, lines):
                    counts[kind] += written
                    display.update(task, completed=min(counts[kind], total))
    summary = " and ".join(f"{count:,} lines of {kind}" for kind, count in counts.items())
    console().print(f"{summary} in {out}", soft_wrap=True, highlight=False)


def _write(sink: IO[bytes], lines: Iterator[bytes]) -> Iterator[int]:
    """Writes all lines, giving the number of lines of every write."""
    from itertools import islice

    while chunk := list(islice(lines, _LINES_PER_WRITE)):
        sink.write(b"\n".join(chunk) + b"\n")
        yield len(chunk)
