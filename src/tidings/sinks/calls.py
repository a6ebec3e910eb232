"""Sinks that hand over one message after the other: to a Python function, or to a web server.

In order, and at least once: when a micro-batch is repeated after a failure its messages come again, with the same ids. They
get notifications; with the option `kinds=all` also answers to subscription events, refused records and warnings.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.pipeline.live import Output
from tidings.sinks.messages import NOTIFICATION, RUN_CHARACTERS, Message, messages_of

_KINDS = ("notifications", "all")


class Receiver(Protocol):
    def hand_over(self, message: Message) -> None:
        """Returns when the receiver has it."""
        ...

    def close(self) -> None: ...


def options_of(sink: Endpoint, names: Iterable[str]) -> tuple[bool, Mapping[str, str]]:
    """(whether messages of all kinds are wanted, the other options). names: of these. UsageError if one is unknown."""
    kinds = sink.options.get("kinds", _KINDS[0])
    known = [*names, "kinds"]
    unknown = next((name for name in sink.options if name not in known), None)
    if unknown is not None:
        raise UsageError(f"the sink {sink.format} has no option {unknown!r}; it has {', '.join(known)}")
    if kinds not in _KINDS:
        raise UsageError(f"the option kinds is {' or '.join(_KINDS)}, not {kinds!r}")
    return kinds == "all", {name: value for name, value in sink.options.items() if name != "kinds"}


class CallingSink:
    """open_receiver: called when the first message is there, with an event that is set when the job is asked to stop."""

    def __init__(self, open_receiver: Callable[[threading.Event], Receiver], *, has_all_kinds: bool) -> None:
        self._open = open_receiver
        self._asked = threading.Event()
        self._has_all = has_all_kinds
        self._receiver: Receiver | None = None
        self._run = ""

    def prepare(self, run: str, asked: threading.Event) -> None:
        self._run, self._asked = run[:RUN_CHARACTERS], asked

    def write(self, batch: int, found: Output, metrics: Mapping[str, Any]) -> None:
        self.hand_over(messages_of(self._run, found))

    def hand_over(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if self._has_all or message.kind == NOTIFICATION:
                if self._receiver is None:
                    self._receiver = self._open(self._asked)
                self._receiver.hand_over(message)

    def close(self) -> None:
        if self._receiver is not None:
            self._receiver.close()
