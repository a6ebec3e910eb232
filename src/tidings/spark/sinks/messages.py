"""Outputs as messages of a queue: whom they are for, and an id that is the same whenever a micro-batch is run again.

A queue stores a message again when a micro-batch is sent again after a failure. Readers tell it by its id, and so does the
queue itself where it can. Ids of different runs differ: each run counts from 1, and one may follow another on the same queue.
"""

from __future__ import annotations

from hashlib import blake2b, sha256
from typing import NamedTuple
from urllib.parse import quote

import msgspec
from pyspark import TaskContext

from tidings.spark.stream import ANSWER, NOTIFICATION

_TOKEN_MAX = 200
_QUERY_ID = "sql.streaming.queryId"


class Message(NamedTuple):
    """key: the subscription's id, empty where there is none."""

    kind: str
    key: str
    id: str
    value: str


class _Notification(msgspec.Struct):
    subscription: str
    seq: int
    snapshot: bool


class _Placed(msgspec.Struct):
    """An answer or a refused record. id: of an answer, null where it could not be read."""

    partition: str = ""
    offset: int = 0
    id: str | None = None


_notification = msgspec.json.Decoder(_Notification).decode
_placed = msgspec.json.Decoder(_Placed).decode


def message(run: str, kind: str, line: str) -> Message:
    """The message of an output (`tidings.spark.outputs`). run: `run_name`."""
    if kind == NOTIFICATION:
        told = _notification(line)
        life = "snapshot" if told.snapshot else "change"
        return Message(kind, told.subscription, f"{run}/{token(told.subscription)}/{told.seq}/{life}", line)
    place = _placed(line)
    # A record may have several lines, which share their place.
    digest = blake2b(line.encode(), digest_size=8).hexdigest()
    id = f"{run}/{kind}/{token(place.partition)}/{place.offset}/{digest}"
    return Message(kind, (place.id or "") if kind == ANSWER else "", id, line)


def token(text: str) -> str:
    """A text as one token of a subject: percent-encoded, as in an address of the web, but for letters, digits, - and _.

    A token that would be too long is `~` and the text's SHA-256 in hexadecimal.
    """
    found = quote(text, safe="").replace(".", "%2E").replace("~", "%7E")
    return found if len(found) <= _TOKEN_MAX else f"~{sha256(text.encode()).hexdigest()}"


def run_name() -> str:
    """A name of the running query that it keeps for as long as its checkpoint lives."""
    task = TaskContext.get()
    id = None if task is None else task.getLocalProperty(_QUERY_ID)
    return (id or "")[:8]
