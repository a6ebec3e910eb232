"""`tidings broker`: an inner node of a tree of gateways, which takes each row once for all gateways behind it."""

from __future__ import annotations

from pathlib import Path

import typer


def add_to(app: typer.Typer) -> None:
    app.command()(broker)


def broker(
    feed: str = typer.Option(
        ..., metavar="FORMAT:PATH", help="Where the job's sink places: writes: nats:PREFIX or files:FOLDER."
    ),
    feed_option: list[str] = typer.Option(
        [], metavar="NAME=VALUE", help="Option of the feed, as servers=..; repeatable."
    ),
    place: str = typer.Option(..., help="Name of this broker: eu, if there are gateways eu/berlin and eu/paris."),
    sink: str = typer.Option(
        "",
        metavar="places:FORMAT:PATH",
        help="Another place to write to, as places:nats:PREFIX. Default: where the feed is, beside what is read.",
    ),
    sink_option: list[str] = typer.Option(
        [], metavar="NAME=VALUE", help="Option of the sink, as stream=.. or keep=..; repeatable."
    ),
    data: Path | None = typer.Option(
        None, help="Folder for everything that is kept; default: broker-NAME. One that is lost is asked for again."
    ),
) -> None:
    """Stand between a job and many gateways: take each row once, and give it to those below that need it, until stopped.

    A gateway eu/berlin is reached by the broker eu: the job (tidings run --sink places:..) sends the rows that the
    subscriptions of all eu/.. need to the broker, each once, and the broker sends each gateway its own. Brokers may stand
    behind brokers: eu/de for eu/de/berlin. Started again, a broker goes on where it stopped; nothing is lost or doubled.

    With another --sink gateways need to reach nothing but that: what they ask for is passed on to the job.

    Example: tidings broker --feed nats:TIDINGS --place eu

    The job: tidings run .. --sink places:nats:TIDINGS --sink-option stream=TIDINGS --sink-option places=eu/berlin,eu/paris.
    The gateways: tidings gateway --feed nats:TIDINGS --place eu/berlin, and so on. See docs/edge.md.
    """
    from tidings.edge.broker import run
    from tidings.endpoint import Endpoint
    from tidings.files import only_one
    from tidings.model.errors import UsageError
    from tidings.pipeline.edge.place_tree import check_name
    from tidings.signals import Stop
    from tidings.sinks.places import below
    from tidings.terminal import compile_kernels, say

    with Stop(code=0) as stop:
        check_name(place)
        source = Endpoint.parse(feed, feed_option)
        if sink_option and not sink:
            raise UsageError("--sink-option is for another --sink: without one the options of the feed hold")
        target = below(Endpoint.parse(sink, sink_option), source) if sink else None
        folder = data or Path(f"broker-{place.replace('/', '-')}")
        from tidings.pipeline.warm import STEPS

        compile_kernels(STEPS, say)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot use {folder}: {error}") from None
        with only_one(folder / "run"):
            run(source, place, target, folder, stop, say, typer.echo)
