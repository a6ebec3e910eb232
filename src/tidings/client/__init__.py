"""The service from Python: create subscriptions, follow their answers, feed changes.

    from tidings.client import Client

    client = Client("http://127.0.0.1:8090", key="tk_...")
    with client.subscribe("SELECT symbol, price FROM stocks WHERE price < 500") as changes:
        for change in changes:
            print(change.seq, change.changes)

`AsyncClient` is the same for asyncio, and `client.js` beside this file for browsers and Node. Inside one process, without a
service: `tidings.Engine`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.client.async_client import AsyncClient as AsyncClient
    from tidings.client.calls import CurrentAnswer as CurrentAnswer
    from tidings.client.calls import Feedback as Feedback
    from tidings.client.client import Client as Client
    from tidings.client.errors import BadRequest as BadRequest
    from tidings.client.errors import Forbidden as Forbidden
    from tidings.client.errors import IdTaken as IdTaken
    from tidings.client.errors import NoHistory as NoHistory
    from tidings.client.errors import NotFound as NotFound
    from tidings.client.errors import NotReady as NotReady
    from tidings.client.errors import PositionExpired as PositionExpired
    from tidings.client.errors import ServiceError as ServiceError
    from tidings.client.errors import SqlRefused as SqlRefused
    from tidings.client.errors import TooLarge as TooLarge
    from tidings.client.errors import TooMany as TooMany
    from tidings.client.errors import Unauthenticated as Unauthenticated
    from tidings.client.errors import Unreachable as Unreachable
    from tidings.client.errors import UrlRefused as UrlRefused
    from tidings.client.errors import VersionMismatch as VersionMismatch
    from tidings.client.followers import AsyncFollower as AsyncFollower
    from tidings.client.followers import AsyncLiveView as AsyncLiveView
    from tidings.client.followers import Follower as Follower
    from tidings.client.followers import LiveView as LiveView

_ERRORS: tuple[str, ...] = (
    "BadRequest",
    "Forbidden",
    "IdTaken",
    "NoHistory",
    "NotFound",
    "NotReady",
    "PositionExpired",
    "ServiceError",
)
_ERRORS += ("SqlRefused", "TooLarge", "TooMany", "Unauthenticated", "Unreachable", "UrlRefused", "VersionMismatch")
_FOLLOWERS = ("AsyncFollower", "AsyncLiveView", "Follower", "LiveView")
_PLACES = {"AsyncClient": "async_client", "Client": "client", "CurrentAnswer": "calls", "Feedback": "calls"}
_PLACES |= dict.fromkeys(_ERRORS, "errors") | dict.fromkeys(_FOLLOWERS, "followers")
__all__ = ["AsyncClient", "AsyncFollower", "AsyncLiveView", "BadRequest", "Client", "CurrentAnswer", "Feedback"]
__all__ += ["Follower", "Forbidden", "IdTaken", "LiveView", "NoHistory", "NotFound", "NotReady", "PositionExpired"]
__all__ += ["ServiceError", "SqlRefused", "TooLarge", "TooMany", "Unauthenticated", "Unreachable", "UrlRefused"]
__all__ += ["VersionMismatch"]


def __getattr__(name: str) -> Any:
    """Loaded when asked for: `tidings watch` needs a client, but nothing of an engine."""
    if name not in _PLACES:
        raise AttributeError(f"module 'tidings.client' has no attribute {name!r}")
    try:
        return getattr(import_module(f"tidings.client.{_PLACES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "httpx2":
            raise
        raise ModuleNotFoundError(
            "the client needs httpx2: pip install '.[client]' in the clone", name="httpx2"
        ) from None


def __dir__() -> list[str]:
    return __all__
