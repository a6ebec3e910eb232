"""Outputs as messages of a queue: whom they are for, and an id that is the same whenever a micro-batch is run again.

A queue stores a message again when a micro-batch is sent again after a failure. Readers tell it by its id, and so does the
queue itself where it can. Ids of different runs differ: each run counts from 1, and one may follow another on the same queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b, sha256
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from tidings.model.notification import NotificationBatch
from tidings.pipeline import live
from tidings.pipeline.live import Output

NOTIFICATION, ANSWER, REFUSED, WARNING = "notification", "answer", "refused", "warning"
KINDS = {live.NOTIFICATIONS: NOTIFICATION, live.ANSWERS: ANSWER, live.REFUSED: REFUSED, live.WARNINGS: WARNING}
_TOKEN_MAX = 200
RUN_CHARACTERS = 8
"""Ids of messages begin with so many of the run's identity."""


class Message(NamedTuple):
    """key: the subscription's id, empty where there is none."""

    kind: str
    key: str
    id: str
    value: str


class _Placed(msgspec.Struct):
    """An answer or a refused record. id: of an answer, null where it could not be read."""

    partition: str = ""
    offset: int = 0
    id: str | None = None


_placed = msgspec.json.Decoder(_Placed).decode


def notifications(run: str, told: NotificationBatch) -> list[Message]:
    """The messages of notifications. run: a name of the run."""
    ids, lives = told.subscriptions().to_pylist(), ("change", "snapshot")
    return [
        Message(NOTIFICATION, id, f"{run}/{token(id)}/{seq}/{lives[is_snapshot]}", line)
        for id, seq, is_snapshot, line in zip(
            ids, told.seq.tolist(), told.is_snapshot.tolist(), told.lines(), strict=True
        )
    ]


def placed(run: str, kind: str, line: str) -> Message:
    """The message of an answer, a refused record or a warning."""
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


def messages_of(run: str, found: Output) -> list[Message]:
    """The messages of a micro-batch. run: a name of the run."""
    messages = notifications(run, found.told) if len(found.told) else []
    return messages + messages_of_reports(run, found.reports())


def messages_of_reports(run: str, reports: Mapping[str, bytes]) -> list[Message]:
    """Those of answers, refused records and warnings, given as lines by kind."""
    return [placed(run, KINDS[kind], line) for kind, data in reports.items() for line in data.decode().split("\n")[:-1]]
