"""What a target is to be sent next, read from the notice log.

A *round* is what the log has behind the target's position, up to a seq `high`. Its items are in the order of seq, then of the
subscription's id; snapshots that are owed are as of `high` and come last. The same bounds give the same items, so a round whose
bounds are stored can be repeated by another process, message for message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tidings.model.notification import snapshot_tail
from tidings.server.log.reader import LogReader
from tidings.server.log.view import net
from tidings.server.webhooks.messages import Notification, end_line, line_of

ITEMS_MAX = 4096
"""A round has about so many items, but at least all of one seq."""
_TURN = 512
"""So many subscriptions are looked at before others get their turn."""


class Item(NamedTuple):
    """Something to say about a subscription. Small: its text is read from the log when it is sent."""

    seq: int
    is_made: bool
    """A snapshot as of the end of the round, which the log does not have."""
    subscription: str
    number: int


class Round(NamedTuple):
    """Items behind `low`, up to `high`. expired: numbers of subscriptions of which the log does not go back to `low`."""

    low: int
    high: int
    items: list[Item]
    expired: list[int]


class Expired(Exception):
    """The log has no longer what an item is made of."""


async def gather(
    log: LogReader, prefix: int, numbers: Iterable[int], owed: set[int], low: int, high: int, *, is_net: bool
) -> Round:
    """The next round. prefix: length of what stands before the id in the log's names. is_net: one item per subscription."""
    wanted = sorted({*numbers, *owed})
    most = max(1, ITEMS_MAX // max(1, len(wanted)))
    found: list[tuple[int, int]] = []
    made, expired = [], []
    for count, number in enumerate(wanted):
        if count % _TURN == _TURN - 1:
            await asyncio.sleep(0)
        records = log.since(number, low)
        if records is None:
            if not log.is_ended(number):
                expired.append(number)
                made.append(number)
            elif log.head_seq(number) > low:
                found.append((log.head_seq(number), number))
            continue
        records = [record for record in records if record.seq <= high]
        if number in owed:
            begin = next((at for at, each in enumerate(records) if each.is_snapshot or each.is_end), None)
            if begin is None:
                made.append(number)
                continue
            records = records[begin:]
        if is_net:
            found += [(record.seq, number) for record in records[-1:]]
            continue
        if len(records) > most:
            high = records[most - 1].seq
        found += [(record.seq, number) for record in records[:most]]
    if not is_net and len(found) > ITEMS_MAX:
        high = min(high, sorted(found)[ITEMS_MAX - 1][0])
    items = [Item(seq, False, _name(log, number, prefix), number) for seq, number in found if seq <= high]
    for number in made:
        # One that is younger than `high` begins with a snapshot of its own, in a later round.
        if not log.is_ended(number) and log.view(number, high) is not None:
            items.append(Item(high, True, _name(log, number, prefix), number))
    return Round(low, high, sorted(items), expired)


def _name(log: LogReader, number: int, prefix: int) -> str:
    try:
        return log.name(number)[prefix:]
    except KeyError:
        return ""


def chunk(items: Sequence[Item], begin: int, batch: int) -> int:
    """Where the batch ends that begins at an item: with the last whole seq that fits; or, if none does, when it is full."""
    end = min(begin + batch, len(items))
    if end == len(items) or items[end - 1].seq != items[end].seq:
        return end
    cut = end - 1
    while cut > begin and items[cut - 1].seq == items[end].seq:
        cut -= 1
    return end if cut == begin else cut


def compose(
    log: LogReader, item: Item, low: int, high: int, key: Sequence[str], *, is_net: bool
) -> Notification | None:
    """The notification of an item; None if there is nothing to say. Expired if the log has it no longer."""
    number, name = item.number, item.subscription
    if item.is_made:
        return _made(log, item, high)
    if log.is_ended(number) and log.head_seq(number) == item.seq:
        return Notification(name, item.seq, "end", end_line(name, item.seq))
    records = log.since(number, low if is_net else item.seq - 1, None if is_net else 1)
    records = [record for record in records or () if record.seq <= item.seq]
    if not records:
        raise Expired
    last = records[-1]
    if len(records) == 1 or last.is_snapshot:
        kind = "snapshot" if last.is_snapshot else "change"
        return Notification(name, item.seq, kind, line_of(name, last.tail))
    after = log.view(number, item.seq)
    if after is None:
        raise Expired
    before = None if any(record.is_snapshot for record in records) else log.view(number, low)
    if before is None:
        tail = snapshot_tail(item.seq, [row.decode() for row in after.rows()]).encode()
        return Notification(name, item.seq, "snapshot", line_of(name, tail))
    changes = ", ".join(net(before, after, key))
    if not changes:
        return None
    text = f', "seq": {item.seq}, "snapshot": false, "net_from": {low}, "changes": [{changes}]}}'
    return Notification(name, item.seq, "change", line_of(name, text.encode()))


def _made(log: LogReader, item: Item, high: int) -> Notification:
    name = item.subscription
    newest = log.since(item.number, high - 1, 1) or []
    if newest and newest[0].seq == high and newest[0].is_snapshot:
        # The log's own: the same message, so it has the same id.
        return Notification(name, high, "snapshot", line_of(name, newest[0].tail))
    bag = log.view(item.number, high)
    if bag is None:
        raise Expired
    tail = snapshot_tail(high, [row.decode() for row in bag.rows()]).encode()
    collides = bool(newest) and newest[0].seq == high
    return Notification(name, high, "snapshot", line_of(name, tail), True, collides)
