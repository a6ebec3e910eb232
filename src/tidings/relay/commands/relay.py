"""`tidings relay run`: documents through a plan, to the results of every view."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tidings.relay.commands import EngineName

if TYPE_CHECKING:
    from tidings.model.catalog import Catalog
    from tidings.relay.files import View
    from tidings.relay.pattern import Row
    from tidings.relay.plan import RelayPlan
    from tidings.relay.runtime.run import Quarantine

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
        ..., help="Folder of documents (.xml, .json; rows: .jsonl), published in the order of names."
    ),
    out: Path = typer.Option(..., help="Where the results go (results.jsonl)."),
    catalog: Path | None = typer.Option(None, help="Tables of views that have SQL (catalog.sql); rows are in .jsonl."),
    quarantine: Path | None = typer.Option(None, help="Where refused documents go (default: OUT.quarantine.jsonl)."),
    engine: EngineName = typer.Option(
        EngineName.inline, help="Where the publisher matches: in this process, or on Spark."
    ),
    master: str = typer.Option("local[*]", help="Spark master, with --engine spark."),
    nats: str | None = typer.Option(
        None, help="Run the views in processes that talk over this NATS server (JetStream)."
    ),
    processes: int = typer.Option(2, min=1, max=64, help="How many, with --nats."),
) -> None:
    """Publish documents through a plan and write what every view is told of each.

    The publisher matches the views it feeds; every other view is computed from what its inputs say. Broken documents go to the
    quarantine file, with the reason, and the rest goes on; where nothing is refused, there is no such file afterwards, unless
    --quarantine names one.

    Example: tidings relay run plan.json --views views.jsonl --documents documents --out results.jsonl
    """
    import json

    from tidings.files import check_files, check_outside, only_one, read_catalog, replacing, write_lines
    from tidings.model.errors import UsageError
    from tidings.relay.files import document_paths, read_plan, read_views
    from tidings.relay.runtime.run import result_line
    from tidings.terminal import announce_compiling, progress

    refused_path = quarantine or out.with_name(out.name + ".quarantine.jsonl")
    check_files([path for path in (plan, views, catalog) if path is not None], (out, refused_path))
    check_outside(documents, (out, refused_path))
    if engine is EngineName.spark and (nats is not None or catalog is not None):
        raise UsageError("--engine spark goes neither with --nats nor with --catalog")
    announce_compiling()
    tables = None if catalog is None else read_catalog(catalog)
    everyone = read_views(views, None, tables)
    planned = read_plan(plan)
    total = len(document_paths(documents))
    refused: list[str] = []

    def refuse(document: str, view: str | None, reason: str) -> None:
        named = {"document": document} if view is None else {"document": document, "view": view}
        refused.append(json.dumps({**named, "reason": reason}))

    results, seen = 0, set()
    with only_one(out), replacing(out) as sink, progress() as display, ExitStack() as stack:
        task = display.add_task("documents", total=total)
        told = _results(stack, planned, everyone, documents, tables, refuse, engine, master, nats, processes)
        for view, document, rows in told:
            sink.write(result_line(view, document, rows))
            results += 1
            if document not in seen:
                seen.add(document)
                display.update(task, advance=1)
    if refused or quarantine is not None:
        with replacing(refused_path) as sink:
            write_lines(sink, refused)
    elif refused_path.is_file():
        refused_path.unlink()
    more = f"; {len(refused):,} refused, see {refused_path}" if refused else ""
    typer.echo(f"{results:,} results of {total:,} documents{more}", err=True)


def _results(
    stack: ExitStack,
    plan: RelayPlan,
    views: list[View],
    documents: Path,
    catalog: Catalog | None,
    refuse: Quarantine,
    engine: EngineName,
    master: str,
    nats: str | None,
    processes: int,
) -> Iterator[tuple[str, str, list[Row]]]:
    from tidings.relay.files import read_contents, read_documents
    from tidings.relay.runtime.run import run_relay

    if engine is EngineName.spark:
        from tidings.relay.spark.run import run_relay_on_spark
        from tidings.spark.session import spark_session

        spark = stack.enter_context(spark_session("tidings relay", master))
        return run_relay_on_spark(spark, plan, views, read_contents(documents), quarantine=refuse)
    published = read_documents(documents, catalog)
    if nats is not None:
        from tidings.relay.runtime.nats import run_relay_nats

        return run_relay_nats(plan, views, published, nats, quarantine=refuse, processes=processes)
    return run_relay(plan, views, published, quarantine=refuse)
