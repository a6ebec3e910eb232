"""A web server as a sink: `webhook:https://..` gets a POST for every notification, signed as Standard Webhooks says.

One request after the other, so that a receiver has them in order. A request that fails is repeated, with the same `webhook-id`,
after 1 s, 2 s, 4 s and so on up to a minute, until it succeeds: the job waits, and nothing is left out. 410 ends the job.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import hashlib
import hmac
import http.client
import os
import ssl
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

from tidings.endpoint import Endpoint
from tidings.model.errors import RunError, UsageError
from tidings.sinks import Unfinished
from tidings.sinks.calls import CallingSink, options_of
from tidings.sinks.messages import NOTIFICATION, Message
from tidings.terminal import say

_SECONDS = 15.0
_WAIT_MAX = 60.0
_ANSWER_BYTES = 4096
_SECRET = "TIDINGS_WEBHOOK_SECRET"
_GONE = 410


def open_sink(sink: Endpoint, run: str) -> CallingSink:
    has_all, options = options_of(sink, ("secret",))
    url = sink.required_path("url")
    secret = secret_of(options.get("secret") or os.environ.get(_SECRET, ""))
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or _has_control(url):
        raise UsageError(f"a webhook is an address such as https://example.com/path, without a password, not {url!r}")
    return CallingSink(lambda asked: Webhook(url, secret, asked), has_all_kinds=has_all)


def secret_of(text: str) -> bytes:
    """The key of signatures. UsageError if the text is no secret."""
    try:
        key = base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        key = b""
    if not text.startswith("whsec_") or not 24 <= len(key) <= 64:
        raise UsageError(
            f"requests are signed with a secret: set {_SECRET} in the environment to whsec_ and 24 to 64 random bytes in "
            "base64, as from: echo whsec_$(openssl rand -base64 32)"
        )
    return key


def signature(key: bytes, id: str, timestamp: int, body: bytes) -> str:
    """As Standard Webhooks defines it."""
    signed = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


class Webhook:
    """One receiver, over one connection that is kept."""

    def __init__(self, url: str, key: bytes, asked: threading.Event) -> None:
        self._asked = asked
        self._parts = urlsplit(url)
        self._key = key
        self._connection: http.client.HTTPConnection | None = None

    def hand_over(self, message: Message) -> None:
        # Only characters that a header and every receiver take.
        id = "".join(sign if sign.isascii() and sign.isalnum() else f"~{ord(sign):02X}" for sign in message.id)
        kind = "snapshot" if '"snapshot": true' in message.value[:400] else "change"
        type = kind if message.kind == NOTIFICATION else message.kind
        made = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        body = f'{{"type": "tidings.{type}", "timestamp": "{made}", "data": {message.value}}}'.encode()
        wait, tries = 1.0, 0
        while (problem := self._send(id, body)) is not None:
            tries += 1
            if tries in (1, 5) or wait == _WAIT_MAX:
                say(f"webhook {self._parts.hostname}: {problem}; trying again in {wait:.0f} s")
            if self._asked.wait(wait):
                raise Unfinished
            wait = min(2 * wait, _WAIT_MAX)

    def _send(self, id: str, body: bytes) -> str | None:
        """What is wrong, or None."""
        now = int(time.time())
        headers = {
            "content-type": "application/json",
            "webhook-id": id,
            "webhook-timestamp": str(now),
            "webhook-signature": signature(self._key, id, now, body),
        }
        path = (self._parts.path or "/") + (f"?{self._parts.query}" if self._parts.query else "")
        try:
            if self._connection is None:
                self._connection = self._connect()
            self._connection.request("POST", path, body, headers)
            answer = self._connection.getresponse()
            answer.read(_ANSWER_BYTES)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return f"{type(error).__name__}: {error}"
        if not answer.isclosed():
            # More than anybody should answer.
            self.close()
        if answer.status == _GONE:
            raise RunError(f"the webhook {self._parts.hostname} is gone (410): give the job another sink")
        return None if 200 <= answer.status < 300 else f"status {answer.status}"

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=_SECONDS)

    def close(self) -> None:
        if self._connection is not None:
            with suppress(OSError):
                self._connection.close()
            self._connection = None


def _has_control(url: str) -> bool:
    return any(sign.isspace() or not sign.isprintable() for sign in url)
