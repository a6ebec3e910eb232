"""Errors as clients get them: one shape for all of them, and nothing of the inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidings.model.errors import SqlError, TidingsError

STATUS = {
    "bad_request": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "too_slow": 408,
    "id_taken": 409,
    "no_history": 409,
    "position_expired": 410,
    "version_mismatch": 412,
    "too_large": 413,
    "media_type": 415,
    "sql_refused": 422,
    "url_refused": 422,
    "quota": 429,
    "rate": 429,
    "failed": 500,
    "not_ready": 503,
}


class ApiError(Exception):
    """An answer that is an error. what: one sentence; detail, hint: more of it; at: where in the SQL."""

    def __init__(
        self,
        error: str,
        what: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        at: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(what)
        self.error = error
        self.what = what
        self.detail = detail
        self.hint = hint
        self.at = at
        self.headers = dict(headers or {})

    @property
    def status(self) -> int:
        return STATUS[self.error]

    def body(self, request_id: str) -> dict[str, Any]:
        return {
            "error": self.error,
            "what": self.what,
            "detail": self.detail,
            "hint": self.hint,
            "at": self.at,
            "request_id": request_id,
        }


def refused_query(error: TidingsError) -> ApiError:
    """A query that is not supported."""
    if not isinstance(error, SqlError):
        return ApiError("sql_refused", str(error))
    at = {"line": error.line, "column": error.column, "text": error.construct} if error.line else None
    detail = f"near {error.construct!r} at line {error.line}, column {error.column}" if error.line else None
    return ApiError("sql_refused", error.problem, detail=detail, hint=error.hint or None, at=at)


def not_found(what: str = "there is no such thing here") -> ApiError:
    """Also for what belongs to others: the same words, whether it exists or not."""
    return ApiError("not_found", what)


encode = msgspec.json.Encoder().encode
