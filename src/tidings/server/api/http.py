"""What all requests have in common: bodies within limits, callers that are known, answers that are JSON."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tidings.server.api.errors import ApiError, encode
from tidings.server.auth import Action, Authenticator, Identity, Unauthenticated, bearer_of
from tidings.server.limits import BODY_BYTES_PER_SECOND_MIN, JSON_BODY_BYTES_MAX, LINE_BYTES_MAX, QuotaError

T = TypeVar("T")
_GRACE_SECONDS = 10.0
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
JSON, NDJSON = "application/json", "application/x-ndjson"
NUMBER_MAX = 10**15
"""Of records and letters: behind all there are."""


def new_request_id() -> str:
    return secrets.token_hex(8)


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encode(value), status, headers, JSON)


def quota_error(error: QuotaError) -> ApiError:
    return ApiError(error.code, str(error), headers={"retry-after": str(error.retry_after)})


async def chunks(request: Request, bytes_max: int) -> AsyncIterator[bytes]:
    """The body as it comes. ApiError if it is too large, or comes too slowly."""
    size, began = 0, time.monotonic()
    stream = request.stream().__aiter__()
    while True:
        left = _GRACE_SECONDS + size / BODY_BYTES_PER_SECOND_MIN - (time.monotonic() - began)
        try:
            chunk = await asyncio.wait_for(anext(stream), max(left, 0.01))
        except StopAsyncIteration:
            return
        except TimeoutError:
            close = {"connection": "close"}
            raise ApiError("too_slow", "the body comes too slowly: at least 1 kB a second", headers=close) from None
        size += len(chunk)
        if size > bytes_max:
            raise ApiError("too_large", f"the body has more than {bytes_max:,} bytes")
        yield chunk


def _compact(data: bytes) -> bytes:
    try:
        return msgspec.json.format(data, indent=-1)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError("bad_request", f"the body cannot be used: {error}") from None


def check_media(request: Request, *allowed: str) -> str:
    found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if found not in allowed:
        raise ApiError("media_type", f"the body must be {' or '.join(allowed)}, not {found or 'nothing'}")
    return found


async def body_of(request: Request, kind: type[T]) -> T:
    """The body of a request, as a value of its type."""
    check_media(request, JSON)
    data = b"".join([chunk async for chunk in chunks(request, JSON_BODY_BYTES_MAX)])
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        found: T = decoder.decode(data)
        return found
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError("bad_request", f"the body cannot be used: {error}") from None


async def text_of(request: Request, bytes_max: int) -> bytes:
    """A body of lines. One that is JSON is one line, however it is laid out."""
    if check_media(request, NDJSON, JSON) == JSON:
        return _compact(b"".join([chunk async for chunk in chunks(request, JSON_BODY_BYTES_MAX)]))
    found: list[bytes] = []
    size = 0
    async for chunk in chunks(request, bytes_max):
        found.append(chunk)
        first = chunk.find(b"\n")
        if first >= 0:
            _check_line(size + first)
            size = -1 - chunk.rfind(b"\n")
        size += len(chunk)
        _check_line(size)
    return b"".join(found)


def parts_of(text: bytes, lines_max: int) -> Iterator[list[bytes]]:
    """Lines of a text, so many at a time; blank ones are left out, so there may be fewer, or none."""
    at = 0
    while at < len(text):
        found = []
        for _ in range(lines_max):
            end = text.find(b"\n", at)
            line = text[at:] if end < 0 else text[at:end]
            if line and not line.isspace():
                found.append(line)
            at = len(text) if end < 0 else end + 1
            if at == len(text):
                break
        yield found


def _check_line(size: int) -> None:
    if size > LINE_BYTES_MAX:
        raise ApiError("too_large", f"a line has more than {LINE_BYTES_MAX:,} bytes")


def number_of(request: Request, name: str, default: float, least: float, most: float) -> float:
    """A number of the query string."""
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise ApiError("bad_request", f"{name} is a number from {least:g} to {most:g}")
    return value


def whole_of(request: Request, name: str, default: int, least: int, most: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 18 or not least <= int(text) <= most:
        raise ApiError("bad_request", f"{name} is a whole number from {least} to {most}")
    return int(text)


class Callers:
    """Tells who calls, and whether they may."""

    def __init__(self, authenticator: Authenticator, in_thread: Any) -> None:
        self.authenticator = authenticator
        self._in_thread = in_thread

    async def identify(self, bearer: str | None, token: str | None) -> Identity:
        try:
            found = self.authenticator.identify_at_once(bearer, token)
            if found is None:
                found = await self._in_thread(lambda: self.authenticator.identify(bearer, token))
            return found
        except Unauthenticated as error:
            raise ApiError("unauthenticated", str(error), headers={"www-authenticate": "Bearer"}) from None

    async def caller(self, request: Request, action: Action, subscription: str | None = None) -> Identity:
        try:
            bearer = bearer_of(request.headers.get("authorization"))
        except Unauthenticated as error:
            raise ApiError("unauthenticated", str(error), headers={"www-authenticate": "Bearer"}) from None
        found = await self.identify(bearer, request.query_params.get("token"))
        if not found.may(action, subscription):
            if found.subscriptions is not None and action == "stream":
                raise ApiError("not_found", "there is no such thing here")
            raise ApiError("forbidden", f"this key may not do that: it has the role {found.role}")
        return found
