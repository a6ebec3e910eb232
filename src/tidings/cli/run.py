"""`tidings run`: the live pipeline, on Spark or in this process, from any source to any sink, until it is stopped."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer

from tidings.cli.replay import EngineName, Notify

_MASTER = "local[*]"


def add_to(app: typer.Typer) -> None:
    app.command()(run)


def run(
    catalog: Path = typer.Option(..., help="Tables: CREATE TABLE statements (catalog.sql)."),
    source: str = typer.Option(
        ...,
        metavar="FORMAT[:PATH]",
        help="Changes: files:FOLDER, postgres:DSN, kafka:TOPIC, nats:STREAM, or another of Spark.",
    ),
    source_option: list[str] = typer.Option([], metavar="NAME=VALUE", help="Option of the source; repeatable."),
    subscriptions: str = typer.Option(
        ..., metavar="FORMAT[:PATH]", help="Subscription events, from a source as changes."
    ),
    subscriptions_option: list[str] = typer.Option([], metavar="NAME=VALUE", help="Option of that source; repeatable."),
    sink: str = typer.Option(
        ...,
        metavar="FORMAT[:PATH]",
        help="Notifications: files:FOLDER, kafka:TOPIC, nats:PREFIX, webhook:URL, python:MODULE:FUNCTION, or another of Spark.",
    ),
    sink_option: list[str] = typer.Option([], metavar="NAME=VALUE", help="Option of the sink; repeatable."),
    checkpoint: Path = typer.Option(..., help="Folder from which the job goes on when it is started again."),
    engine: EngineName = typer.Option(
        EngineName.spark, help="Spark, on many cores or machines; or inline: this process alone, without Java."
    ),
    trigger: str = typer.Option("", help="'once': all that is there, then the end; or an interval, as '1 second'."),
    master: str = typer.Option(_MASTER, help="Spark master."),
    shards: int = typer.Option(0, min=0, help="Shares of the subscriptions (0: as many as cores)."),
    metrics: str = typer.Option("", metavar="[HOST:]PORT", help="Serve metrics for Prometheus there."),
    ui: bool = typer.Option(False, help="Let Spark serve its pages (port 4040, or spark.ui.port by --conf)."),
    start: str = typer.Option(
        "", "--from", metavar="WHERE", help="Where a new run begins: earliest, latest or a position of the source."
    ),
    load: Path | None = typer.Option(
        None, help="Rows that are there before the first change: records without seq; a file or a folder. Read once."
    ),
    notify: Notify = typer.Option(Notify.commit, help="Notify once per transaction, or of every record."),
    conf: list[str] = typer.Option([], metavar="NAME=VALUE", help="Setting of Spark, as spark.jars=FILE; repeatable."),
) -> None:
    """Run the live pipeline: changes and subscription events in, notifications out, until stopped (Ctrl-C or SIGTERM).

    A micro-batch that has begun is finished before the end; with sinks other than files only if that takes 10 s at most.
    The same command given again goes on where it stopped, and nothing is lost or doubled. See docs/streaming.md for what
    sources must have, and for the order of changes.

    Example: tidings run --catalog catalog.sql --source files:changes --subscriptions files:subscriptions --sink files:out
    --checkpoint checkpoint
    """
    from tidings.files import only_one, read_catalog
    from tidings.model.errors import UsageError
    from tidings.signals import Stop
    from tidings.terminal import compile_kernels, say

    # The first signal ends a start at once: nothing has begun that would have to be finished.
    with Stop(code=0) as stop:
        say("reading the catalog")
        read_catalog(catalog)
        # A path makes one slash of the two of an address.
        if ":/" in str(checkpoint):
            raise UsageError(f"--checkpoint is a folder that this machine and all executors see, not {checkpoint}")
        from tidings.endpoint import Endpoint, parse_options
        from tidings.live.job import Job
        from tidings.live.progress import Batch, Exporter

        job = Job(
            catalog.read_text(encoding="utf-8-sig"),
            Endpoint.parse(source, source_option),
            Endpoint.parse(subscriptions, subscriptions_option),
            Endpoint.parse(sink, sink_option),
            checkpoint,
            trigger,
            start,
            load,
            notify is Notify.commit,
        )
        # Before anything that takes time.
        if engine is EngineName.spark:
            from tidings.spark import run as on_spark

            settings = on_spark.Run(**vars(job), master=master, shards=shards, config=parse_options(conf), has_ui=ui)
            on_spark.check(settings)
            work = partial(on_spark.run, settings)
        else:
            from tidings.live import run as in_process

            for name, is_given in (("master", master != _MASTER), ("shards", shards), ("conf", conf), ("ui", ui)):
                if is_given:
                    raise UsageError(f"--{name} is for Spark: it has no meaning with --engine inline")
            in_process.check(job)
            work = partial(in_process.run, job)
        exporter = Exporter(*_address(metrics)) if metrics else None
        from tidings.pipeline.warm import STEPS

        compile_kernels(STEPS, say)

        def report(batch: Batch) -> None:
            for line in batch.lines():
                say(line)
            if exporter is not None:
                exporter.add(batch)

        try:
            with only_one(checkpoint / "run"):
                work(stop, report, say)
        finally:
            if exporter is not None:
                exporter.close()


def _address(text: str) -> tuple[str, int]:
    """Host (by default this machine alone) and port."""
    from tidings.model.errors import UsageError

    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65_535:
        raise UsageError(f"--metrics takes PORT or HOST:PORT, not {text!r}")
    return host or "127.0.0.1", int(port)
