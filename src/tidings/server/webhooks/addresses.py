"""Where webhooks may go: addresses that tenants write down must not lead into the network of the service (SSRF).

A URL is checked when it is registered and at every request. That is not enough, as a name may resolve to anything, and to
something else a moment later: so the address of every connection is checked again, right before it is made.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any
from urllib.parse import urlsplit

from aiohttp import TCPConnector, ThreadedResolver
from aiohttp.abc import AbstractResolver, ResolveResult

from tidings.model.errors import UsageError

PORTS = (443, 8443)
URL_CHARACTERS_MAX = 2048

_RELAYS = IPv4Network("192.88.99.0/24")
_UNICAST = IPv6Network("2000::/3")
"""All that is assigned of IPv6. NAT64, IPv4-mapped and IPv4-compatible, unique local and link-local addresses lie outside."""
_TUNNELS = (IPv6Network("2001::/23"), IPv6Network("2002::/16"))
"""Teredo and 6to4 carry an IPv4 address, which may be any; the rest of 2001::/23 is for protocols, not for servers."""


class UrlRefused(UsageError):
    """A URL to which no webhook is sent."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AddressRefused(OSError):
    """A name led to an address to which no webhook is sent."""


def is_global(address: str) -> bool:
    """Whether an IP address is that of a server on the public internet."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv4Address):
        return _is_public(found) and found not in _RELAYS
    return found in _UNICAST and not any(found in tunnel for tunnel in _TUNNELS) and _is_public(found)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and not (address.is_multicast or address.is_private or address.is_reserved)


def check_url(url: str, allow_private: bool) -> None:
    """UrlRefused unless webhooks may be sent there. allow_private: for development; http, any port and any address are fine."""
    if len(url) > URL_CHARACTERS_MAX:
        raise UrlRefused(f"the URL is longer than {URL_CHARACTERS_MAX} characters")
    if any(sign.isspace() or not sign.isprintable() for sign in url) or "\\" in url:
        raise UrlRefused("the URL has spaces, backslashes or control characters")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise UrlRefused("this is no URL: write https://HOST/PATH") from None
    if parts.scheme != "https" and not (allow_private and parts.scheme == "http"):
        raise UrlRefused("webhooks are sent over https only")
    if not host:
        raise UrlRefused("the URL has no host: write https://HOST/PATH")
    if "@" in parts.netloc:
        raise UrlRefused("the URL has a user or password: receivers know requests by their signature")
    if parts.fragment:
        raise UrlRefused("the URL has a fragment, which is never sent")
    if port == 0:
        raise UrlRefused("there is no port 0")
    if allow_private:
        return
    if port is not None and port not in PORTS:
        raise UrlRefused(f"webhooks are sent to the ports {' and '.join(map(str, PORTS))} only")
    if _is_literal(host) and not is_global(host):
        raise UrlRefused("the address is not on the public internet")
    if host.rstrip(".").rpartition(".")[2] == "localhost":
        raise UrlRefused("localhost is not on the public internet")


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class GlobalResolver(AbstractResolver):
    """Asks another resolver, and refuses a name of which any address is not global."""

    def __init__(self, inner: AbstractResolver) -> None:
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if not found or not all(is_global(result["host"]) for result in found):
            raise AddressRefused("the host has an address that is not on the public internet")
        return found

    async def close(self) -> None:
        await self._inner.close()


def connector(allow_private: bool, resolver: AbstractResolver | None = None) -> TCPConnector:
    """Makes connections for webhooks. There is no limit on them, so targets that hang do not hold up others.

    resolver: asked for addresses; the system's by default.
    """
    inner = resolver or ThreadedResolver()
    if allow_private:
        return TCPConnector(resolver=inner, use_dns_cache=False, limit=0)
    return TCPConnector(resolver=GlobalResolver(inner), use_dns_cache=False, limit=0, socket_factory=_global_socket)


def _global_socket(info: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket.socket:
    """The socket of a connection that is about to be made. Addresses written into a URL come here without a resolver."""
    family, kind, protocol, _, address = info
    if not is_global(str(address[0])):
        raise AddressRefused("the address is not on the public internet")
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    return made
