"""Tidings: live queries for millions. Every subscriber is told exactly the changes to its own answer.

Inside a Python process:

>>> from tidings import Engine
>>> engine = Engine("CREATE TABLE stocks (symbol TEXT PRIMARY KEY, price DOUBLE)")
>>> cheap = engine.subscribe("cheap", "SELECT symbol FROM stocks WHERE price < 500", on_change=print)
Change(subscription='cheap', seq=1, snapshot=True, changes=[], tx=None)
>>> engine.insert("stocks", {"symbol": "GOOG", "price": 480.0})
Change(subscription='cheap', seq=2, snapshot=False, changes=[{'op': 'insert', 'row': {'symbol': 'GOOG'}}], tx=None)
>>> cheap.rows
[{'symbol': 'GOOG'}]

`help(Engine)` says more, and so does docs/python.md. As a job that follows PostgreSQL, NATS or files: `tidings run --help`.
A service (`tidings serve`) from Python: `help(tidings.Client)`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.client import AsyncClient as AsyncClient
    from tidings.client import Client as Client
    from tidings.embedded import Change as Change
    from tidings.embedded import Engine as Engine
    from tidings.embedded import Fed as Fed
    from tidings.embedded import RefusedError as RefusedError
    from tidings.embedded import View as View
    from tidings.model.errors import CatalogError as CatalogError
    from tidings.model.errors import RecordError as RecordError
    from tidings.model.errors import SqlError as SqlError
    from tidings.model.errors import TidingsError as TidingsError
    from tidings.model.errors import UsageError as UsageError

__version__ = "0.1.0"
_EMBEDDED = ("Change", "Engine", "Fed", "RefusedError", "View")
_CLIENTS = ("AsyncClient", "Client")
_ERRORS = ("CatalogError", "RecordError", "SqlError", "TidingsError", "UsageError")
__all__ = [
    "AsyncClient",
    "CatalogError",
    "Change",
    "Client",
    "Engine",
    "Fed",
    "RecordError",
    "RefusedError",
    "SqlError",
]
__all__ += ["TidingsError", "UsageError", "View"]


def __getattr__(name: str) -> Any:
    """What users import is loaded when it is asked for: commands import this package too, and start at once."""
    from importlib import import_module

    if name in _EMBEDDED:
        return getattr(import_module("tidings.embedded"), name)
    if name in _CLIENTS:
        return getattr(import_module("tidings.client"), name)
    if name in _ERRORS:
        return getattr(import_module("tidings.model.errors"), name)
    raise AttributeError(f"module 'tidings' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
