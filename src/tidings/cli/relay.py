"""`tidings relay run`: documents through a plan, to the results of every view."""

from __future__ import annotations

from pathlib import Path

import typer

relay = typer.Typer(help="Views that feed each other, by a plan of `tidings plan`.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    app.add_typer(relay, name="relay")


@relay.callback()
def _relay() -> None:
    """Keeps `run` a command of its own, as long as it is the only one."""


@relay.command()
def run(
    plan: Path = typer.Argument(..., help="The plan (plan.json)."),
    views: Path = typer.Option(..., help="The views it was made for (views.jsonl)."),
    documents: Path = typer.Option(
        ..., help="Folder of documents (.xml, .json), published in the order of their names."
    ),
    out: Path = typer.Option(..., help="Where the results go (results.jsonl)."),
    quarantine: Path | None = typer.Option(None, help="Where refused documents go (default: OUT.quarantine.jsonl)."),
) -> None:
    """Publish documents through a plan and write what every view is told of each.

    The publisher matches the views it feeds; every other view is computed from what its inputs say. Broken documents go to the
    quarantine file, with the reason, and the rest goes on.

    Example: tidings relay run plan.json --views views.jsonl --documents documents --out results.jsonl
    """
    import json

    from tidings.files import check_files, only_one, replacing, write_lines
    from tidings.relay.files import read_documents, read_views
    from tidings.relay.plan import parse_plan
    from tidings.relay.runtime.run import result_line, run_relay
    from tidings.terminal import announce_compiling, progress

    refused_path = quarantine or out.with_name(out.name + ".quarantine.jsonl")
    check_files((plan, views), (out, refused_path))
    announce_compiling()
    everyone = read_views(views)
    planned = parse_plan(plan.read_bytes())
    published = read_documents(documents)
    refused: list[str] = []

    def refuse(document: str, view: str | None, reason: str) -> None:
        named = {"document": document} if view is None else {"document": document, "view": view}
        refused.append(json.dumps({**named, "reason": reason}, ensure_ascii=False))

    results = 0
    with only_one(out), replacing(out) as sink, progress() as display:
        task = display.add_task("results", total=None)
        for view, document, rows in run_relay(planned, everyone, published, quarantine=refuse):
            sink.write(result_line(view, document, rows))
            results += 1
            display.update(task, advance=1)
    if refused or quarantine is not None:
        with replacing(refused_path) as sink:
            write_lines(sink, refused)
    elif refused_path.is_file():
        refused_path.unlink()
    told = f"; {len(refused):,} refused, see {refused_path}" if refused else ""
    typer.echo(f"{results:,} results{told}", err=True)
