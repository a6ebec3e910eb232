"""`tidings serve`: the service, in front of an engine of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tidings.cli import serving
from tidings.cli.replay import EngineName

if TYPE_CHECKING:
    from tidings.model.catalog import Catalog
    from tidings.server.engine.frames import Settings

_MASTER = "local[*]"


def add_to(app: typer.Typer) -> None:
    app.command()(serve)


def serve(
    catalog: Path = typer.Option(..., help="Tables: CREATE TABLE statements (catalog.sql)."),
    data: Path = typer.Option(..., help="Folder for everything that is kept. Made if it is not there."),
    engine: EngineName = typer.Option(
        EngineName.inline, help="inline: a process of the service, without Java; or Spark, on many cores or machines."
    ),
    master: str = typer.Option(_MASTER, help="Spark master."),
    shards: int = typer.Option(0, min=0, help="Shares of the subscriptions on Spark (0: as many as cores)."),
    source: list[str] = typer.Option(
        [],
        metavar="FORMAT:PATH",
        help="Changes beside those by HTTP: postgres:DSN, nats:STREAM, files:FOLDER; repeatable. Spark: one, without HTTP.",
    ),
    source_option: list[str] = typer.Option([], metavar="NAME=VALUE", help="Option of the one source; repeatable."),
    listen: str = serving.LISTEN,
    registry: str | None = serving.REGISTRY,
    retain: str = serving.RETAIN,
    retain_bytes: str = serving.RETAIN_BYTES,
    no_auth: bool = serving.NO_AUTH,
    quota: list[str] = serving.QUOTA,
    load: Path | None = typer.Option(None, help="Rows that are there before the first change: a file or a folder."),
    ready_file: Path | None = serving.READY_FILE,
    host: list[str] = serving.HOST,
    jwt_key: Path | None = serving.JWT_KEY,
    jwt_audience: str | None = serving.JWT_AUDIENCE,
    allow_private_webhooks: bool = serving.ALLOW_PRIVATE_WEBHOOKS,
) -> None:
    """Serve subscriptions over HTTP: create them, stream their changes, post changes, until stopped (Ctrl-C or SIGTERM).

    Everything that was acknowledged is on disk; the same command given again goes on where it stopped. Callers need a key
    (tidings key create), unless --no-auth is given.

    Example: tidings serve --catalog catalog.sql --data data --no-auth

    Then: curl -N localhost:8090/v1/subscriptions/cheap/stream. See docs/service.md.
    """
    from importlib.util import find_spec

    from tidings.durations import bytes_of, seconds_of
    from tidings.files import load_files
    from tidings.model.errors import UsageError

    seconds, size = seconds_of(retain), bytes_of(retain_bytes)
    address = serving.address_of(listen, no_auth=no_auth)
    is_spark = engine is EngineName.spark
    if not is_spark:
        for name, is_given in (("master", master != _MASTER), ("shards", shards)):
            if is_given:
                raise UsageError(f"--{name} is for Spark: say --engine spark")
    elif find_spec("pyspark") is None:
        raise UsageError("--engine spark needs the package pyspark: pip install '.[spark]' in the clone")
    elif len(source) > 1:
        raise UsageError("the job on Spark has one source: give --source once, or without it post changes by HTTP")
    if (data / ("engine" if is_spark else "spark")).is_dir():
        other = "inline" if is_spark else "spark"
        raise UsageError(f"the data folder {data} is of a service with --engine {other}: say so, or name another one")
    if source_option and len(source) != 1:
        raise UsageError("--source-option is for a service with one --source")
    if load is not None:
        load_files(load)
    try:
        catalog_sql = catalog.read_text(encoding="utf-8-sig")
        data.mkdir(parents=True, exist_ok=True)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot use {catalog} and {data}: {error}") from None

    def make() -> tuple[Settings, Catalog]:
        from tidings.server.engine.frames import Settings
        from tidings.sql import parse_catalog

        loaded = "" if load is None else str(load.absolute())
        folder = str(data.absolute())
        settings = Settings(
            folder, catalog_sql, source, loaded, seconds, size, engine.value, master, shards, source_option
        )
        return settings, parse_catalog(catalog_sql)

    serving.run_service(
        data,
        make,
        engine.value,
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
