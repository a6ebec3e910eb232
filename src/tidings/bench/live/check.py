"""Whether everybody was told what is right: views against the tables, and every notification against an undisturbed run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

import msgspec

from tidings.bench.live.workload import CATALOG, Subscription
from tidings.engine import Engine
from tidings.pipeline.commits import micro_batches
from tidings.sql import parse_catalog

_BATCH = 10_000


class _Change(msgspec.Struct):
    op: str
    row: dict[str, Any]
    old: dict[str, Any] | None = None


class _Notification(msgspec.Struct):
    subscription: str
    snapshot: bool
    changes: list[_Change]


class _TextChange(msgspec.Struct):
    op: str
    row: msgspec.Raw
    old: msgspec.Raw = msgspec.Raw(b"")


class _TextNotification(msgspec.Struct):
    subscription: str
    snapshot: bool
    changes: list[_TextChange]


class _Place(msgspec.Struct):
    subscription: str
    seq: int
    snapshot: bool
    tx: str | None = None


View = Counter[tuple[Any, ...]]


def views(notifications: Iterable[bytes]) -> dict[str, View]:
    """Subscription -> its rows, as a client has them who applies every notification."""
    decode = msgspec.json.Decoder(_Notification).decode
    found: dict[str, View] = {}
    for line in notifications:
        told = decode(line)
        view = Counter[tuple[Any, ...]]() if told.snapshot else found.setdefault(told.subscription, Counter())
        found[told.subscription] = view
        for change in told.changes:
            if change.op != "insert":
                gone = change.row if change.old is None else change.old
                view[tuple(gone.values())] -= 1
            if change.op != "delete":
                view[tuple(change.row.values())] += 1
    return found


def wrong_views(
    told: dict[str, View], subscriptions: Sequence[Subscription], answers: Iterable[list[tuple[Any, ...]]]
) -> list[str]:
    """Subscriptions whose view is not what their query gives. answers: of those with `recomputed`, in order."""
    compared = [each for each in subscriptions if each.recomputed]
    wrong = []
    for each, rows in zip(compared, answers, strict=True):
        view = {row: count for row, count in told.get(each.id, Counter()).items() if count}
        if view != Counter(rows):
            wrong.append(each.id)
    return wrong


def expected(subscriptions: Sequence[Subscription], begun: dict[str, int], lines: Sequence[bytes]) -> list[bytes]:
    """What an undisturbed engine in process tells for the same records in the same order.

    begun: the seq that each subscription got from the job; records have the numbers that are left.
    """
    engine = Engine(parse_catalog(CATALOG))
    for each in subscriptions:
        engine.door.create(each.id, each.sql, begun[each.id])
    taken = set(begun.values())
    numbers = (number for number in range(1, len(lines) + len(taken) + 1) if number not in taken)
    found: list[str] = []
    numbered = [
        json.dumps({"seq": seq, **json.loads(line)}).encode() for seq, line in zip(numbers, lines, strict=False)
    ]
    for batch in micro_batches(numbered, repeat(_BATCH)):
        found += engine.feed(batch).notifications.lines()
    found += engine.finish().notifications.lines()
    return [line.encode() for line in found]


def unmatched(notifications: Iterable[bytes]) -> int:
    """How many rows are told to go that a client does not have who matches rows by their text."""
    decode = msgspec.json.Decoder(_TextNotification).decode
    found: dict[str, Counter[bytes]] = {}
    wrong = 0
    for line in notifications:
        told = decode(line)
        if told.snapshot:
            found[told.subscription] = Counter()
        view = found.setdefault(told.subscription, Counter())
        for change in told.changes:
            if change.op != "insert":
                gone = bytes(change.old or change.row)
                wrong += view[gone] <= 0
                view[gone] -= 1
            if change.op != "delete":
                view[bytes(change.row)] += 1
    return wrong


def different(a: Iterable[bytes], b: Iterable[bytes]) -> int:
    """How many lines are in one and not in the other."""
    # Hashes take a tenth of the memory of lines.
    first, second = Counter(map(hash, a)), Counter(map(hash, b))
    return (first - second).total() + (second - first).total()


def doubled(notifications: Iterable[bytes]) -> int:
    """How many notifications have the subscription and the transaction of another one, or, without one, its seq."""
    decode = msgspec.json.Decoder(_Place).decode
    places = Counter((told.subscription, told.tx or told.seq, told.snapshot) for told in map(decode, notifications))
    return places.total() - len(places)
