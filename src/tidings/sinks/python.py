"""A Python function as a sink: `python:module:function` calls it with every notification.

The function gets a dict: a line of output as it is documented, with `kind` and `message_id` besides. It is called at
least once for each `message_id`: one that it has seen before it may pass over. If it raises, the job ends, and goes on with the
same micro-batch when it is started again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec

from tidings.endpoint import Endpoint
from tidings.model.errors import RunError, UsageError
from tidings.sinks.calls import CallingSink, options_of
from tidings.sinks.messages import Message

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def open_sink(sink: Endpoint, run: str) -> CallingSink:
    has_all, _ = options_of(sink, ())
    path = sink.required_path("module:function")
    function = _function(path)
    return CallingSink(lambda _: _Called(path, function), has_all_kinds=has_all)


def _function(path: str) -> Callable[[dict[str, Any]], object]:
    """UsageError if there is no such function. Modules are also looked for in the current folder."""
    module, _, name = path.partition(":")
    if not name:
        raise UsageError(f"a function is named MODULE:FUNCTION, not {path!r}")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = import_module(module)
    except Exception as error:
        raise UsageError(f"cannot import the module {module!r}: {type(error).__name__}: {error}") from error
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise UsageError(f"the module {module!r} has no function {name!r}")
    function: Callable[[dict[str, Any]], object] = found
    return function


class _Called:
    def __init__(self, path: str, function: Callable[[dict[str, Any]], object]) -> None:
        self._path = path
        self._function = function

    def hand_over(self, message: Message) -> None:
        try:
            self._function({"message_id": message.id, "kind": message.kind, **_decode(message.value)})
        except Exception as error:
            raise RunError(
                f"the function {self._path} failed for the message {message.id!r}: {type(error).__name__}: {error}. Started "
                "again, the job calls it with this micro-batch once more"
            ) from error

    def close(self) -> None:
        """There is nothing to be closed."""
