"""`tidings workload`: seeded data in the file contract."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from tidings.cli.listing import show_list
from tidings.relay.commands import workload as relay
from tidings.relay.workloads import WORKLOADS as RELAY_WORKLOADS
from tidings.workloads import LINES, find
from tidings.workloads import WORKLOADS as OWN_WORKLOADS

if TYPE_CHECKING:
    from tidings.files import GeneratedFiles

_LINES_PER_WRITE = 5_000
WORKLOADS = {**OWN_WORKLOADS, **RELAY_WORKLOADS}


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Workloads: " + "; ".join(f"{name} ({e.description})" for name, e in WORKLOADS.items()))(
        workload
    )


def workload(
    name: Annotated[str, typer.Argument(help="Which workload; `list` shows them.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for catalog.sql, subscriptions.jsonl and changes.jsonl, or what else is made."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same files.")] = 0,
    subscriptions: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Subscriptions ever created; their drops come on top.",
            show_default=str(LINES),
        ),
    ] = None,
    changes: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Changes, counting the inserts that fill the tables.",
            show_default=str(LINES),
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Rows the main table starts with (0: a number that suits the changes).",
            show_default="0",
        ),
    ] = None,
    views: Annotated[int | None, relay.VIEWS] = None,
    distinct: Annotated[int | None, relay.DISTINCT] = None,
    values: Annotated[int | None, relay.VALUES] = None,
    sites: Annotated[int | None, relay.SITES] = None,
    capacity: Annotated[int | None, relay.CAPACITY] = None,
    documents: Annotated[int | None, relay.DOCUMENTS] = None,
    format: Annotated[relay.DocumentFormat | None, relay.FORMAT] = None,
) -> None:
    """Generate a workload: tables, subscriptions and changes, ready for `tidings replay`; or views and documents of relay.

    Workloads of published work are in the clone: python -m research workload list

    Example: tidings workload market --out data --subscriptions 100000 --changes 1000000

    Example: tidings workload views --out data --views 10000 --distinct 3000 --sites 300; tidings workload documents --out data
    """
    from tidings.model.errors import UsageError

    if name == "list":
        show_list({known: entry.description for known, entry in WORKLOADS.items()})
        return
    entry = find(name, WORKLOADS)
    options = {
        "subscriptions": subscriptions,
        "changes": changes,
        "rows": rows,
        "views": views,
        "distinct": distinct,
        "values": values,
        "sites": sites,
        "capacity": capacity,
        "documents": documents,
        "format": None if format is None else format.value,
    }
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if option not in entry.options:
            known = ", ".join(f"--{each}" for each in (*entry.options, "seed"))
            raise UsageError(f"--{option} means nothing for the workload {name!r}, whose options are {known}")
    write_outputs(entry.outputs(seed, given), out)


def write_outputs(outputs: Collection[GeneratedFiles], out: Path | None) -> None:
    """Writes all files of a workload into a folder."""
    from tidings.files import replacing
    from tidings.model.errors import UsageError
    from tidings.terminal import console, progress

    if out is None:
        raise UsageError("say where the files should go: --out DIR")
    for output in outputs:
        _refuse_others(out, output.files)
    counts = []
    with progress() as display:
        for output in outputs:
            count = 0
            task = display.add_task(output.unit, total=output.total) if output.unit else None
            for path, lines in output.files.items():
                with replacing(out / path) as sink:
                    for written in _write(sink, lines):
                        count += written
                        if output.unit:
                            display.update(task, completed=min(count, output.total))
            if output.unit:
                counts.append(f"{count:,} {output.unit}")
    console().print(f"{' and '.join(counts)} in {out}", soft_wrap=True, highlight=False)


def _refuse_others(out: Path, paths: Iterable[str]) -> None:
    """A folder that a workload fills is read as a whole: UsageError if it has files that this run would not replace."""
    from tidings.model.errors import UsageError

    written = {out / path for path in paths}
    for folder in {path.parent for path in written} - {out}:
        others = sorted(set(folder.iterdir()) - written) if folder.is_dir() else []
        if others:
            raise UsageError(
                f"{folder} has other files, such as {others[0].name}: remove them, or choose another --out"
            )


def _write(sink: IO[bytes], lines: Iterator[bytes]) -> Iterator[int]:
    """Writes all lines, giving the number of lines of every write."""
    from itertools import islice

    while chunk := list(islice(lines, _LINES_PER_WRITE)):
        sink.write(b"\n".join(chunk) + b"\n")
        yield len(chunk)
