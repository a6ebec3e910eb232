"""What a webhook says: ids, bodies and signatures, as Standard Webhooks defines them. Nothing here does I/O.

The id of a notification is `EPOCH_SUBSCRIPTION_SEQ`. Two messages with one id have the same content, at whatever time and by
whatever process they are sent, so a receiver may skip an id that it has had. Two cases need more words for that:

- A snapshot that is not in the log (a subscription was attached to a target, or a message was given up), at a seq at which the
  log has another message for the subscription: `EPOCH_SUBSCRIPTION_SEQ-snapshot`.
- A batch `EPOCH_TARGET_FROM_TO` has everything from one seq to another. If it begins or ends within a seq, because more
  subscriptions were notified at that seq than fit, FROM and TO are `SEQ-SUBSCRIPTION`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from json.encoder import encode_basestring
from typing import NamedTuple

from tidings.server.registry import Target
from tidings.sinks.webhook import secret_of, signature

_KEPT = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-")
_MEDIA_TYPES = {"json": "application/json", "cloudevents": "application/cloudevents+json"}


class Notification(NamedTuple):
    """One notification of one subscription, as it goes into a message.

    kind: change, snapshot or end. line: a line of out.jsonl. is_made: a snapshot that the log does not have.
    """

    subscription: str
    seq: int
    kind: str
    line: bytes
    is_made: bool = False
    collides: bool = False
    """Whether the log has another message of the subscription at this seq."""


class Outgoing(NamedTuple):
    """A message: what is the same in each try."""

    id: str
    body: bytes


def escaped(text: str) -> str:
    """The text with only `[A-Za-z0-9-]` and `~`; different texts stay different."""
    return "".join(sign if sign in _KEPT else "".join(f"~{byte:02X}" for byte in sign.encode()) for sign in text)


def moment(time: float) -> str:
    """Seconds since 1970 as RFC 3339, in UTC."""
    return dt.datetime.fromtimestamp(time, dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def notification_id(epoch: str, notification: Notification) -> str:
    end = "-snapshot" if notification.is_made and notification.collides else ""
    return f"{escaped(epoch)}_{escaped(notification.subscription)}_{notification.seq}{end}"


def batch_id(
    epoch: str, target: str, batch: Sequence[Notification], *, begins_seq: bool = True, ends_seq: bool = True
) -> str:
    """The id of a batch. begins_seq, ends_seq: whether it has all of its first and last seq."""
    first, last = batch[0], batch[-1]
    start = str(first.seq) if begins_seq else f"{first.seq}-{escaped(first.subscription)}"
    end = str(last.seq) if ends_seq else f"{last.seq}-{escaped(last.subscription)}"
    made = sum(notification.is_made for notification in batch)
    if made:
        # Which subscriptions need a snapshot is not in the log: so the id has to say which ones these are.
        end = f"{last.seq}-{escaped(last.subscription)}-snapshot-{made}"
    return f"{escaped(epoch)}_{escaped(target)}_{start}_{end}"


def line_of(subscription: str, tail: bytes) -> bytes:
    """A line of out.jsonl, from the tail that the log has of it."""
    return b'{"subscription": ' + encode_basestring(subscription).encode() + tail


def end_line(subscription: str, seq: int) -> bytes:
    return line_of(subscription, b', "seq": %d, "why": "dropped"}' % seq)


def single(epoch: str, target: Target, notification: Notification, time: float) -> Outgoing:
    """The message of one notification."""
    id = notification_id(epoch, notification)
    source = f"/v1/subscriptions/{notification.subscription}"
    return Outgoing(id, body(target, id, notification.kind, source, time, notification.line))


def batched(
    epoch: str,
    target: Target,
    batch: Sequence[Notification],
    time: float,
    *,
    begins_seq: bool = True,
    ends_seq: bool = True,
) -> Outgoing:
    """The message of several notifications, in order."""
    id = batch_id(epoch, target.id, batch, begins_seq=begins_seq, ends_seq=ends_seq)
    data = b'{"notifications": [' + b", ".join(notification.line for notification in batch) + b"]}"
    return Outgoing(id, body(target, id, "batch", f"/v1/targets/{target.id}", time, data))


def trial(epoch: str, target: Target, token: str, time: float) -> Outgoing:
    """A message that says nothing. token: unlike that of any other."""
    id = f"{escaped(epoch)}_{escaped(target.id)}_test-{escaped(token)}"
    data = b'{"target": ' + encode_basestring(target.id).encode() + b"}"
    return Outgoing(id, body(target, id, "test", f"/v1/targets/{target.id}", time, data))


def body(target: Target, id: str, kind: str, source: str, time: float, data: bytes) -> bytes:
    """A body in the target's format. data: a JSON object."""
    if target.format == "cloudevents":
        words = (
            ("specversion", "1.0"),
            ("id", id),
            ("source", source),
            ("type", f"tidings.{kind}"),
            ("time", moment(time)),
        )
        head = ", ".join(f'"{name}": {encode_basestring(value)}' for name, value in words)
        return f'{{{head}, "datacontenttype": "application/json", "data": '.encode() + data + b"}"
    return f'{{"type": "tidings.{kind}", "timestamp": "{moment(time)}", "data": '.encode() + data + b"}"


def headers(target: Target, message: Outgoing, now: float) -> dict[str, str]:
    """Headers of one try. The old secret signs too, as long as it lasts."""
    secrets = [target.secret]
    if target.old_secret is not None and (target.old_secret_until is None or now < target.old_secret_until):
        secrets.append(target.old_secret)
    timestamp = int(now)
    signed = (signature(secret_of(secret), message.id, timestamp, message.body) for secret in secrets)
    return {
        "content-type": _MEDIA_TYPES[target.format],
        "webhook-id": message.id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signed),
    }
