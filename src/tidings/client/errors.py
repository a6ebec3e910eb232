"""What a service refuses, as exceptions: one class for each `error` of the HTTP contract, all a `ServiceError`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidings.model.errors import RunError, SqlError, TidingsError


class ServiceError(TidingsError):
    """A request was refused, or got no answer.

    status: of HTTP; 0 if there was no answer. error: a word for programs, such as `not_found`. what, detail, hint: for people.
    at: where in the SQL, with `line`, `column` and `text`. request_id: what the service's log calls the request.
    retry_after_seconds: when to try again, if the service has said so.
    """

    def __init__(
        self,
        status: int,
        error: str,
        what: str,
        *,
        detail: str = "",
        hint: str = "",
        at: Mapping[str, Any] | None = None,
        request_id: str = "",
        retry_after_seconds: float | None = None,
    ) -> None:
        self.status = status
        self.error = error
        self.what = what
        self.detail = detail
        self.hint = hint
        self.at = at
        self.request_id = request_id
        self.retry_after_seconds = retry_after_seconds
        Exception.__init__(self, what + (f" ({detail})" if detail else "") + (f"; {hint}" if hint else ""))


class BadRequest(ServiceError):
    """400: the request is not as the contract wants it."""


class Unauthenticated(ServiceError):
    """401: no key, or one that the service does not know."""


class Forbidden(ServiceError):
    """403: the role of the key does not allow this."""


class NotFound(ServiceError):
    """404: there is no such thing, or it belongs to another tenant."""


class IdTaken(ServiceError):
    """409: another query has this id."""


class NoHistory(ServiceError):
    """409: the service keeps no changes of the past."""


class PositionExpired(ServiceError):
    """410: the service no longer has what came behind this position. Begin anew, with a snapshot."""


class VersionMismatch(ServiceError):
    """412: somebody else has edited it meanwhile."""


class TooLarge(ServiceError):
    """413: the request is larger than the service takes."""


class SqlRefused(ServiceError, SqlError):
    """422: the SQL is not supported. Also a `tidings.SqlError`, with `line` and `column`."""

    def __init__(self, status: int, error: str, what: str, **more: Any) -> None:
        ServiceError.__init__(self, status, error, what, **more)
        at = self.at or {}
        self.problem = what
        self.construct = str(at.get("text") or "")
        self.line = int(at.get("line") or 0)
        self.column = int(at.get("column") or 0)


class UrlRefused(ServiceError):
    """422: webhooks may not be sent to this URL."""


class TooMany(ServiceError):
    """429: a quota is used up, or requests come too fast."""


class NotReady(ServiceError, RunError):
    """503: the service is starting, or cannot work now."""


class Unreachable(ServiceError, RunError):
    """No answer: nobody listens at the URL, or the connection broke. The request may have been carried out."""


_CLASSES: dict[str, type[ServiceError]] = {
    "bad_request": BadRequest,
    "unauthenticated": Unauthenticated,
    "forbidden": Forbidden,
    "not_found": NotFound,
    "id_taken": IdTaken,
    "no_history": NoHistory,
    "position_expired": PositionExpired,
    "version_mismatch": VersionMismatch,
    "too_large": TooLarge,
    "sql_refused": SqlRefused,
    "url_refused": UrlRefused,
    "quota": TooMany,
    "rate": TooMany,
    "not_ready": NotReady,
}
_BY_STATUS: dict[int, type[ServiceError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    410: PositionExpired,
    413: TooLarge,
    429: TooMany,
    503: NotReady,
}


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> ServiceError:
    """The exception for a refusing answer; also for one that a proxy wrote, which is not of the contract's form."""
    try:
        said = msgspec.json.decode(body)
    except msgspec.DecodeError:
        said = None
    if not isinstance(said, dict) or not isinstance(said.get("error"), str):
        text = body[:200].decode("utf-8", "replace").strip()
        said = {"error": "unknown", "what": f"HTTP {status}", "detail": text}
    wait = headers.get("retry-after", "")
    return _CLASSES.get(said["error"], _BY_STATUS.get(status, ServiceError))(
        status,
        said["error"],
        str(said.get("what") or said["error"]),
        detail=str(said.get("detail") or ""),
        hint=str(said.get("hint") or ""),
        at=said.get("at"),
        request_id=str(said.get("request_id") or headers.get("x-request-id", "")),
        retry_after_seconds=float(wait) if wait.isascii() and wait.isdigit() else None,
    )


def unreachable(url: str, cause: Exception) -> Unreachable:
    """No answer came from this URL."""
    said = str(cause) or type(cause).__name__
    return Unreachable(0, "unreachable", f"no answer from {url}", detail=said, hint="is the service running?")
