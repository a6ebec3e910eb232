"""Publishing to NATS JetStream with acknowledgements, a bounded number of messages at a time unacknowledged.

What is not acknowledged in time is sent again, with the same id, so that the server stores it once. Messages of a subject that
is in order go one by one: the next is sent when the one before it is stored, so that sending again cannot swap them. Different
subjects do not wait for each other.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from typing import Any, NamedTuple

from tidings.model.errors import TidingsError, UsageError
from tidings.sources.jetstream import Address, Error, JetStream, Msg

_MESSAGES_MAX = 1000
_BYTES_MAX = 16 << 20
_ACK_SECONDS = 5.0
_RETRY_SECONDS = 0.5
_UNAVAILABLE = 503


class Sending(NamedTuple):
    """A message to publish. is_ordered: it is sent when all of its subject before it are stored."""

    subject: str
    id: str
    value: bytes
    is_ordered: bool


class Publisher:
    """A connection that publishes. `send` returns while the last messages are under way; `finish` when all are stored."""

    def __init__(self, address: Address) -> None:
        self._connection = JetStream(address)
        self._patience = address.timeout
        self._sent: dict[str, Sending] = {}
        """Without acknowledgement so far, by the number that the server's answer carries."""
        self._behind: dict[str, deque[Sending]] = {}
        """Messages that wait for one of their subject."""
        self._ready: deque[Sending] = deque()
        """Messages that need not wait any longer, or are to be sent again."""
        self._count = self._bytes = self._number = 0
        self._failure = ""
        self._problem = "no acknowledgement"
        self._progress = self._connection.run(self._listen())
        self._moved_at = time.monotonic()

    async def _listen(self) -> asyncio.Event:
        client = self._connection.client
        self._inbox = client.new_inbox()
        await client.subscribe(f"{self._inbox}.*", cb=self._on_answer)
        return asyncio.Event()

    @property
    def payload_max(self) -> int:
        """Largest message that the server takes, headers included."""
        return int(self._connection.client.max_payload)

    def send(self, messages: list[Sending]) -> None:
        self._run(self._send(messages))

    def finish(self) -> None:
        """Waits until all is stored. UsageError says why something could not be."""
        self._run(self._drain(0, 0))

    def close(self) -> None:
        self._connection.close()

    def _run(self, work: Any) -> None:
        try:
            self._connection.run(work)
        except TidingsError:
            raise
        except (Error, OSError, TimeoutError) as error:
            raise self._connection.explained(error, "publishing") from None

    async def _send(self, messages: list[Sending]) -> None:
        self._moved_at = time.monotonic()
        for message in messages:
            if self._count >= _MESSAGES_MAX or self._bytes >= _BYTES_MAX or self._ready or self._failure:
                await self._drain(_MESSAGES_MAX - 1, _BYTES_MAX - 1)
            self._count += 1
            self._bytes += len(message.value)
            if message.is_ordered:
                behind = self._behind.get(message.subject)
                if behind is not None:
                    behind.append(message)
                    continue
                self._behind[message.subject] = deque()
            await self._publish(message)

    async def _drain(self, messages_max: int, bytes_max: int) -> None:
        """Waits until at most so many messages and bytes are not stored."""
        while True:
            while self._ready:
                await self._publish(self._ready.popleft())
            if self._failure:
                raise UsageError(self._failure)
            if self._count <= messages_max and self._bytes <= bytes_max:
                return
            self._progress.clear()
            try:
                await asyncio.wait_for(self._progress.wait(), _ACK_SECONDS)
            except TimeoutError:
                self._check_patience()
                # Answers to the earlier attempt do not count any more: their numbers are unknown.
                self._ready.extend(self._sent.values())
                self._sent.clear()

    def _check_patience(self) -> None:
        if time.monotonic() > self._moved_at + self._patience:
            subject = next((message.subject for message in (*self._sent.values(), *self._ready)), "")
            raise self._connection.explained(TimeoutError(self._problem), f"publishing to {subject!r}")

    async def _publish(self, message: Sending) -> None:
        self._number += 1
        number = str(self._number)
        self._sent[number] = message
        await self._connection.client.publish(
            message.subject, message.value, f"{self._inbox}.{number}", headers={"Nats-Msg-Id": message.id}
        )

    async def _on_answer(self, msg: Msg) -> None:
        message = self._sent.pop(msg.subject.rpartition(".")[2], None)
        if message is None:
            return
        if not msg.data:
            self._retry(message, f"no stream takes the subject {message.subject!r}")
            return
        error = json.loads(msg.data).get("error")
        if error is None:
            self._moved_at = time.monotonic()
            self._count -= 1
            self._bytes -= len(message.value)
            self._release(message)
        elif error.get("code") == _UNAVAILABLE:
            self._retry(message, str(error.get("description")))
        else:
            size, reason = len(message.value), error.get("description")
            self._failure = f"NATS refuses a message of {size:,} bytes for {message.subject!r}: {reason}"
        self._progress.set()

    def _release(self, message: Sending) -> None:
        """Lets the next message of an ordered subject go."""
        if not message.is_ordered:
            return
        behind = self._behind[message.subject]
        if behind:
            self._ready.append(behind.popleft())
        else:
            del self._behind[message.subject]

    def _retry(self, message: Sending, problem: str) -> None:
        """Sends a message again a little later. It is the only one of its subject under way, so order is kept."""
        self._problem = problem
        if time.monotonic() > self._moved_at + self._patience:
            self._failure = f"publishing to {message.subject!r} failed: {problem}"
            self._progress.set()
            return
        asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._again, message)

    def _again(self, message: Sending) -> None:
        self._ready.append(message)
        self._progress.set()
