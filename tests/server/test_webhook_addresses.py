"""Webhooks do not lead into the network of the service: each rule, over real sockets where there is a connection at all."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from tidings.server.webhooks.addresses import AddressRefused, GlobalResolver, connector
from tidings.server.webhooks.sending import ANSWER_BYTES_MAX, SECONDS_MAX, Outcome, Sender

PUBLIC, PRIVATE = "93.184.215.14", "10.0.0.1"


class Names(AbstractResolver):
    """Answers with the given addresses, one list a question."""

    def __init__(self, *answers: list[str]) -> None:
        self.asked: list[str] = []
        self._answers = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        found = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=0,
            )
            for address in found
        ]

    async def close(self) -> None:
        """Nothing to close."""


class Heard:
    """A receiver: what it was asked, and the bytes it could write."""

    def __init__(self) -> None:
        self.requests: list[web.Request] = []
        self.url = ""
        self.port = 0


@asynccontextmanager
async def receiving(answer: Any) -> AsyncIterator[Heard]:
    heard = Heard()

    async def handle(request: web.Request) -> web.StreamResponse:
        await request.read()
        heard.requests.append(request)
        found: web.StreamResponse = await answer(request)
        return found

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    heard.port = runner.addresses[0][1]
    heard.url = f"http://127.0.0.1:{heard.port}/"
    try:
        yield heard
    finally:
        await runner.cleanup()


async def ok(request: web.Request) -> web.Response:
    return web.Response()


async def sent(url: str, **options: Any) -> Outcome:
    async with Sender(**{"allow_private": True, **options}) as sender:
        return await sender.post(url, {}, b"{}")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://example.com/", "https only"),
        ("https://user:secret@example.com/", "user or password"),
        ("https://example.com:8080/", "ports"),
        ("https://example.com:80/", "ports"),
        ("https://127.0.0.1/", "public internet"),
        ("https://[::1]/", "public internet"),
        ("https://10.0.0.1:8443/", "public internet"),
        ("https://localhost/", "public internet"),
        ("https://example.com/\r\nx: y", "control characters"),
    ],
)
def test_urls_are_checked_at_every_request_too(url: str, why: str) -> None:
    """A target that was registered when more was allowed."""
    names = Names([PUBLIC])
    outcome = asyncio.run(sent(url, allow_private=False, resolver=names))
    assert outcome.status is None and why in (outcome.problem or "")
    assert names.asked == []


@pytest.mark.parametrize(
    "addresses",
    [[PRIVATE], [PUBLIC, PRIVATE], [PRIVATE, PUBLIC], [PUBLIC, "::1"], ["169.254.169.254"], ["::ffff:10.0.0.1"], []],
)
def test_every_address_of_a_name_must_be_global(addresses: list[str]) -> None:
    outcome = asyncio.run(sent("https://example.com/", allow_private=False, resolver=Names(addresses)))
    assert outcome.status is None
    assert outcome.problem == "the host has an address that is not on the public internet"
    assert not any(address in outcome.problem for address in addresses)


def test_a_name_that_is_rebound_is_looked_at_again() -> None:
    """Public when it was registered, and private when the request is made."""

    async def scenario() -> None:
        names = Names([PUBLIC], ["127.0.0.1"])
        assert [found["host"] for found in await GlobalResolver(names).resolve("example.com", 443)] == [PUBLIC]
        outcome = await sent("https://example.com/", allow_private=False, resolver=names)
        assert outcome.status is None and "public internet" in (outcome.problem or "")
        assert len(names.asked) == 2

    asyncio.run(scenario())


def test_the_socket_itself_is_checked() -> None:
    """Whatever led to an address: right before a connection is made it is looked at, and names are not cached."""

    async def scenario() -> None:
        made = connector(allow_private=False)
        try:
            assert made._socket_factory is not None
            info: Any = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 443))
            with pytest.raises(AddressRefused):
                made._socket_factory(info)
            assert not made.use_dns_cache
        finally:
            await made.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    async def scenario() -> None:
        async def elsewhere(request: web.Request) -> web.Response:
            return web.Response(status=status, headers={"location": "/elsewhere"})

        async with receiving(elsewhere) as heard:
            outcome = await sent(heard.url)
        assert (outcome.status, outcome.problem) == (status, f"status {status}")
        assert [request.path for request in heard.requests] == ["/"]

    asyncio.run(scenario())


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with receiving(ok) as proxy, receiving(ok) as heard:
            for name in ("http_proxy", "https_proxy", "all_proxy"):
                monkeypatch.setenv(name, proxy.url)
                monkeypatch.setenv(name.upper(), proxy.url)
            monkeypatch.delenv("no_proxy", raising=False)
            monkeypatch.delenv("NO_PROXY", raising=False)
            assert (await sent(heard.url)).is_accepted
            assert (len(heard.requests), len(proxy.requests)) == (1, 0)

    asyncio.run(scenario())


def test_cookies_are_not_kept() -> None:
    async def scenario() -> None:
        async def cookie(request: web.Request) -> web.Response:
            return web.Response(headers={"set-cookie": "a=b"})

        async with receiving(cookie) as heard, Sender(allow_private=True) as sender:
            for _ in range(2):
                assert (await sender.post(heard.url, {}, b"{}")).is_accepted
        assert ["cookie" in request.headers for request in heard.requests] == [False, False]

    asyncio.run(scenario())


def test_of_an_answer_without_end_four_kibibytes_are_read() -> None:
    """And then the connection is closed: the receiver cannot write for long."""
    assert ANSWER_BYTES_MAX == 4096

    async def scenario() -> None:
        written = 0
        closed = asyncio.Event()

        async def endless(request: web.Request) -> web.StreamResponse:
            nonlocal written
            found = web.StreamResponse()
            await found.prepare(request)
            try:
                while True:
                    await found.write(b"x" * 1024)
                    written += 1024
            except (ConnectionError, asyncio.CancelledError):
                closed.set()
                raise

        async with receiving(endless) as heard:
            outcome = await sent(heard.url)
            assert (outcome.status, outcome.is_accepted) == (200, True)
            async with asyncio.timeout(10):
                await closed.wait()
        # What fits into the buffers of both ends, and no more.
        assert written < 64 << 20

    asyncio.run(scenario())


@pytest.mark.parametrize("part", ["nothing", "headers"])
def test_an_answer_that_takes_too_long(part: str) -> None:
    """Fifteen seconds in all; here a fifth of one."""
    assert SECONDS_MAX == 15.0

    async def scenario() -> None:
        release = asyncio.Event()

        async def slow(request: web.Request) -> web.StreamResponse:
            found = web.StreamResponse()
            if part == "headers":
                await found.prepare(request)
            await release.wait()
            return found

        async with receiving(slow) as heard:
            began = time.monotonic()
            outcome = await sent(heard.url, seconds_max=0.2)
            assert time.monotonic() - began < 5
            release.set()
        if part == "nothing":
            assert (outcome.status, outcome.problem) == (None, "no answer in 0.2 s")
        else:
            # The status has come; nobody needs the rest.
            assert (outcome.status, outcome.is_accepted) == (200, True)

    asyncio.run(scenario())
