"""One request of a webhook: made, timed, and what came of it. Redirects, cookies, proxies and long answers are not taken."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import NamedTuple, Self

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, InvalidURL, StreamReader
from aiohttp.abc import AbstractResolver

from tidings.server.webhooks.addresses import AddressRefused, UrlRefused, check_url, connector

SECONDS_MAX = 15.0
ANSWER_BYTES_MAX = 4096
RETRY_AFTER_SECONDS_MAX = 3600.0
_GONE = 410


class Outcome(NamedTuple):
    """What came of a request. status: None if there was no answer. problem: None if it was accepted."""

    status: int | None
    problem: str | None
    seconds: float
    retry_after: float | None = None

    @property
    def is_accepted(self) -> bool:
        return self.problem is None

    @property
    def is_gone(self) -> bool:
        return self.status == _GONE


class Sender:
    """Sends requests to addresses on the public internet, or, with allow_private, to any. To be used within one event loop."""

    def __init__(
        self, *, allow_private: bool, resolver: AbstractResolver | None = None, seconds_max: float = SECONDS_MAX
    ) -> None:
        self._allow_private = allow_private
        self._seconds_max = seconds_max
        self._session = ClientSession(
            connector=connector(allow_private, resolver),
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(total=seconds_max),
            headers={"user-agent": "tidings-webhooks"},
            trust_env=False,
            auto_decompress=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Never raises because of the receiver."""
        begun = time.monotonic()
        status, after, problem = None, None, None
        try:
            check_url(url, self._allow_private)
            async with self._session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
                status = answer.status
                after = _seconds(answer.headers.get("retry-after"))
                with suppress(ClientError, TimeoutError):
                    await _skim(answer.content)
                if not answer.content.at_eof():
                    answer.close()
            if not 200 <= status < 300:
                problem = f"status {status}"
        except UrlRefused as error:
            problem = error.reason
        except TimeoutError:
            problem = f"no answer in {self._seconds_max:g} s"
        except (ClientError, InvalidURL, OSError, ValueError) as error:
            problem = _reason(error)
        return Outcome(status, problem, time.monotonic() - begun, after)


async def _skim(content: StreamReader) -> None:
    """Reads an answer, which nobody needs, so that the connection can be used again; but not much of it."""
    left = ANSWER_BYTES_MAX
    while left > 0:
        data = await content.read(left)
        if not data:
            return
        left -= len(data)


def _reason(error: BaseException) -> str:
    """What is said of a failed connection: no address, as tenants need not learn what names resolve to in our network."""
    cause: BaseException | None = error
    while cause is not None:
        for each in (cause, *getattr(cause, "exceptions", ())):
            if isinstance(each, AddressRefused):
                return str(each)
        cause = cause.__cause__ or cause.__context__
    return f"no connection ({type(error).__name__})"


def _seconds(text: str | None) -> float | None:
    """The header retry-after: seconds or a date. At most an hour."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), RETRY_AFTER_SECONDS_MAX)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=dt.UTC)
    return min(max(0.0, until.timestamp() - time.time()), RETRY_AFTER_SECONDS_MAX)
