"""`tidings key`: API keys of the service."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from tidings.server.registry import Registry

key = typer.Typer(help="API keys of `tidings serve`.", no_args_is_help=True)

_DATA = typer.Option(..., help="The data folder of `tidings serve`.")
_REGISTRY = typer.Option(None, metavar="URL", help="The registry, if `tidings serve` was given one.")


class RoleName(StrEnum):
    """What a key may do; each role may do what those before it may."""

    read = "read"
    write = "write"
    admin = "admin"
    operator = "operator"


def add_to(app: typer.Typer) -> None:
    app.add_typer(key, name="key")


@key.command()
def create(
    data: Path = _DATA,
    registry: str | None = _REGISTRY,
    tenant: str = typer.Option(..., help="Whose key it is; a new tenant is added."),
    role: RoleName = typer.Option(..., help="What the key may do."),
    expires: str = typer.Option("", metavar="TIME", help="Until when, such as 12h or 30d (default: until revoked)."),
) -> None:
    """Make a key and print it, alone. It is kept as a hash: nobody can show it again.

    Example: tidings key create --data data --tenant acme --role write --expires 30d
    """
    import time

    from tidings.durations import seconds_of
    from tidings.model.errors import UsageError

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,127}", tenant, re.ASCII):
        raise UsageError(f"{tenant!r} is no id of a tenant: use letters, digits and . _ ~ - (at most 128)")
    expires_at = time.time() + seconds_of(expires) if expires else None
    with _open(data, registry, is_new_allowed=True) as opened:
        opened.ensure_tenant(tenant)
        _, secret = opened.create_key(tenant, role.value, expires_at)
    typer.echo(secret)


@key.command(name="list")
def list_keys(
    data: Path = _DATA,
    registry: str | None = _REGISTRY,
    tenant: str | None = typer.Option(None, help="Only keys of this tenant."),
) -> None:
    """Print the keys, one a line: id, tenant, role, when it was made, and whether it still holds.

    Example: tidings key list --data data
    """
    import time

    now = time.time()
    with _open(data, registry) as opened:
        keys = opened.list_keys(tenant)
    for each in keys:
        if each.revoked_at is not None:
            state = f"revoked {_shown(each.revoked_at)}"
        elif each.expires_at is None:
            state = "valid"
        else:
            state = f"{'valid until' if each.is_valid(now) else 'expired'} {_shown(each.expires_at)}"
        typer.echo(f"{each.id}  {each.tenant}  {each.role}  {_shown(each.created_at)}  {state}")


@key.command()
def revoke(
    id_: str = typer.Argument(..., metavar="ID", help="The key's id, as `tidings key list` shows it."),
    data: Path = _DATA,
    registry: str | None = _REGISTRY,
) -> None:
    """Revoke a key. A running service refuses it within ten seconds.

    Example: tidings key revoke 5f2a9c0d1e3b4a67 --data data
    """
    from tidings.model.errors import UsageError

    with _open(data, registry) as opened:
        if not opened.revoke(None, id_):
            raise UsageError(f"there is no key {id_!r} to revoke; `tidings key list` shows all")


def _open(data: Path, url: str | None, *, is_new_allowed: bool = False) -> Registry:
    from tidings.model.errors import UsageError

    try:
        from tidings.server.registry import Registry, registry_url
    except ModuleNotFoundError as error:
        raise UsageError(f"keys need the package {error.name}: pip install '.[server]' in the clone") from None
    if url is None:
        if is_new_allowed:
            try:
                data.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(f"the data folder {data} cannot be made: {error.strerror}") from None
        elif not (data / "registry.db").exists():
            raise UsageError(f"{data} has no registry: `tidings key create` makes one")
    return Registry.open(registry_url(data, url))


def _shown(moment: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
