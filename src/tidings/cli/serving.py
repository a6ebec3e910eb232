"""What the commands that serve HTTP have in common: `serve` and `gateway`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tidings.model.errors import UsageError

if TYPE_CHECKING:
    from tidings.model.catalog import Catalog
    from tidings.server.engine.frames import Settings

LISTEN = typer.Option("127.0.0.1:8090", metavar="HOST:PORT", help="Where to listen; port 0: any free one.")
REGISTRY = typer.Option(
    None,
    metavar="URL",
    help="Tenants, keys and subscriptions, as postgresql://..; default: SQLite in the data folder.",
)
RETAIN = typer.Option("24h", help="How long a client may be away and still resume.")
RETAIN_BYTES = typer.Option("4GiB", help="How large the log of notifications may become.")
NO_AUTH = typer.Option(False, "--no-auth", help="Everybody may do everything. Only on this machine.")
QUOTA = typer.Option([], metavar="NAME=N", help="Quota of each tenant; repeatable.")
READY_FILE = typer.Option(None, help="Written when the service is ready: url, pid, engine_pid, epoch.")
HOST = typer.Option([], help="Name by which clients call the service; default: any; repeatable.")
JWT_KEY = typer.Option(None, help="Public key (PEM) of JWTs; or TIDINGS_JWT_SECRET in the environment.")
JWT_AUDIENCE = typer.Option(None, help="Audience that JWTs must name.")
ALLOW_PRIVATE_WEBHOOKS = typer.Option(False, help="Let webhooks go to private addresses, and by http.")


def address_of(listen: str, *, no_auth: bool) -> tuple[str, int]:
    """Host and port. UsageError if the service cannot run there, or not here at all."""
    host, _, port = listen.rpartition(":")
    if not port.isdigit() or int(port) > 65_535:
        raise UsageError(f"--listen takes HOST:PORT, not {listen!r}")
    address = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if no_auth and address not in ("127.0.0.1", "::1", "localhost"):
        raise UsageError(f"--no-auth serves this machine alone: listen at 127.0.0.1, not at {address}")
    for name in ("starlette", "uvicorn", "aiohttp", "jwt", "sqlalchemy"):
        if find_spec(name) is None:
            raise UsageError(f"the service needs the package {name}: pip install '.[server]' in the clone")
    return address, int(port)


def run_service(
    data: Path,
    make: Callable[[], tuple[Settings, Catalog]],
    engine: str,
    address: tuple[str, int],
    *,
    registry: str | None,
    quota: Sequence[str],
    jwt_key: Path | None,
    jwt_audience: str | None,
    no_auth: bool,
    allow_private_webhooks: bool,
    host: Sequence[str],
    ready_file: Path | None,
) -> None:
    """Serves until stopped. make: what the engine is told, and the tables. The options are those of the commands."""
    from tidings.files import only_one

    with only_one(data / "serve"):
        from tidings.server.engine.spawn import spawn

        # Both processes load their libraries at the same time.
        spawned = spawn(engine)
        try:
            from tidings.server.front import ServiceOptions
            from tidings.server.jwt_settings import JwtSettings
            from tidings.server.limits import Quotas
            from tidings.server.registry import registry_url
            from tidings.server.serve import listen as bind
            from tidings.server.serve import serve as run

            settings, catalog = make()
            options = ServiceOptions(
                settings,
                catalog,
                registry_url(data, registry),
                Quotas.parse(quota),
                JwtSettings.of(os.environ, jwt_key, jwt_audience),
                no_auth,
                allow_private_webhooks,
                (*host, "localhost") if host or no_auth else (),
            )
            run(options, bind(*address), ready_file, spawned)
        finally:
            spawned.connection.close()
            spawned.process.wait()
