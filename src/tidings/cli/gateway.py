"""`tidings gateway`: the service for the subscriptions of one place, on a machine of its own, fed by a live job."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tidings.cli import serving

if TYPE_CHECKING:
    from tidings.model.catalog import Catalog
    from tidings.server.engine.frames import Settings


class Received(StrEnum):
    rows = "rows"
    notices = "notices"


def add_to(app: typer.Typer) -> None:
    app.command()(gateway)


def gateway(
    feed: str = typer.Option(
        ..., metavar="FORMAT:PATH", help="Where the job's sink places: writes: nats:PREFIX or files:FOLDER."
    ),
    feed_option: list[str] = typer.Option(
        [], metavar="NAME=VALUE", help="Option of the feed, as servers=..; repeatable."
    ),
    place: str = typer.Option(..., help="Name of this gateway, one of the job's places: berlin, or eu/berlin."),
    receive: Received | None = typer.Option(
        None, help="What the job is expected to send: rows, evaluated here, or finished notices. Default: either."
    ),
    data: Path | None = typer.Option(
        None, help="Folder for everything that is kept; default: gateway-NAME. One that is lost is asked for again."
    ),
    listen: str = serving.LISTEN,
    registry: str | None = serving.REGISTRY,
    retain: str = serving.RETAIN,
    retain_bytes: str = serving.RETAIN_BYTES,
    no_auth: bool = serving.NO_AUTH,
    quota: list[str] = serving.QUOTA,
    ready_file: Path | None = serving.READY_FILE,
    host: list[str] = serving.HOST,
    jwt_key: Path | None = serving.JWT_KEY,
    jwt_audience: str | None = serving.JWT_AUDIENCE,
    allow_private_webhooks: bool = serving.ALLOW_PRIVATE_WEBHOOKS,
) -> None:
    """Serve the subscriptions of one place over HTTP, on a machine near its users, until stopped (Ctrl-C or SIGTERM).

    The job (tidings run --sink places:..) sends this gateway the rows that its own subscriptions need, and nothing else; the
    gateway evaluates them and streams to its clients as tidings serve does. Subscriptions that clients create here are
    created at the job. Started again, it goes on where it stopped; without its folder it asks the job for everything.

    Example: tidings gateway --feed nats:TIDINGS --place berlin --no-auth

    The job: tidings run --catalog catalog.sql --source nats:CHANGES --subscriptions nats:EVENTS --checkpoint checkpoint
    --sink places:nats:TIDINGS --sink-option stream=TIDINGS --sink-option places=berlin,paris. See docs/edge.md.
    """
    from tidings.durations import bytes_of, seconds_of
    from tidings.edge import open_reader
    from tidings.endpoint import Endpoint
    from tidings.model.errors import UsageError
    from tidings.pipeline.edge.place_tree import check_name

    seconds, size = seconds_of(retain), bytes_of(retain_bytes)
    address = serving.address_of(listen, no_auth=no_auth)
    check_name(place)
    open_reader(Endpoint.parse(feed, feed_option), place).close()
    folder = data or Path(f"gateway-{place.replace('/', '-')}")
    if (folder / "engine").is_dir() or (folder / "spark").is_dir():
        raise UsageError(f"the data folder {folder} is of tidings serve: name another one")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot use {folder}: {error}") from None

    def make() -> tuple[Settings, Catalog]:
        from tidings.model.catalog import Catalog
        from tidings.server.engine.frames import Settings

        settings = Settings(
            str(folder.absolute()),
            "",
            [],
            "",
            seconds,
            size,
            "gateway",
            feed=feed,
            feed_options=feed_option,
            place=place,
            receive="" if receive is None else receive.value,
        )
        return settings, Catalog(())

    serving.run_service(
        folder,
        make,
        "gateway",
        address,
        registry=registry,
        quota=quota,
        jwt_key=jwt_key,
        jwt_audience=jwt_audience,
        no_auth=no_auth,
        allow_private_webhooks=allow_private_webhooks,
        host=host,
        ready_file=ready_file,
    )
