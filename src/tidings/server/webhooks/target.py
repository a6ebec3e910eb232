"""The delivery to one target: rounds of the notice log, one request at a time, tries, and what is given up.

A message that fails is tried again after each of the schedule's delays. After the last one it becomes a dead letter, and its
subscriptions are owed a snapshot. From then on, until a message is accepted, every other message of the log gets one try
before it is given up too: with all their tries, a hundred thousand of them would take years. A subscription that is owed
a snapshot needs no other message, so this ends when each was given up once. Owed snapshots are not given up a second time: they
are tried, as of then, after each last delay of the schedule.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import msgspec

from tidings.server.log.reader import LogReader
from tidings.server.registry import Attempt, DeadLetter, Registry, Target
from tidings.server.webhooks.messages import Notification, Outgoing, batched, headers, single
from tidings.server.webhooks.rounds import Expired, Item, Round, chunk, compose, gather
from tidings.server.webhooks.sending import Outcome, Sender

SCHEDULE = (5.0, 30.0, 120.0, 600.0, 3600.0, 10800.0)
"""Delays in seconds before a message is tried again."""
_SPREAD = 0.2
_SAVE_SECONDS = 1.0
_UNSAVED_MAX = 100
"""So many attempts or dead letters are kept in memory before they are stored."""

T = TypeVar("T")


class RegistryCall(Protocol):
    """Runs work that calls the registry, which blocks, elsewhere than in the event loop."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class Delivery:
    """How far a target has got, and which of its subscriptions have something new: small integers."""

    def __init__(
        self,
        log: LogReader,
        registry: Registry,
        call: RegistryCall,
        sender: Sender,
        target: Target,
        *,
        clock: Callable[[], float],
        schedule: Sequence[float],
    ) -> None:
        self._log, self._registry, self._call, self._sender = log, registry, call, sender
        self._clock, self._schedule = clock, schedule
        self.target = target
        self.numbers: set[int] = set()
        """Subscriptions that name the target, and are in the log."""
        self.dirty: set[int] = set()
        """Those that have a head behind the position."""
        self.owed: set[int] = set()
        """Those that must begin with a snapshot."""
        self.task: asyncio.Task[None] | None = None
        self.is_removed = False
        self.kick = asyncio.Event()
        self._one = asyncio.Lock()
        self._done: Item | None = None
        """The last item of the round that needs no further try."""
        self._high = target.flight_to
        """Where the round ends, once that must not change."""
        self._made_at: float | None = None
        """The time that the message in flight says."""
        self._round_at = float("-inf")
        self._fields: dict[str, Any] = {}
        self._held: set[str] = set()
        self._lost: set[str] = set()
        self._letters: list[DeadLetter] = []
        self._attempts: list[Attempt] = []
        self._saved_at = 0.0

    @property
    def has_work(self) -> bool:
        return self._is_on and bool(self.dirty or self.owed)

    @property
    def _is_on(self) -> bool:
        return not self.is_removed and self.target.state in ("active", "failing")

    @property
    def _prefix(self) -> int:
        return len(self.target.tenant) + 1

    def link(self, number: int, *, is_owed: bool) -> None:
        """Begins to deliver a subscription."""
        self.numbers.add(number)
        if is_owed and not self._log.is_ended(number):
            self.owed.add(number)
        if self._log.head_seq(number) > self.target.position:
            self.dirty.add(number)

    def unlink(self, number: int) -> None:
        for numbers in (self.numbers, self.dirty, self.owed):
            numbers.discard(number)

    def replace(self, target: Target) -> None:
        """Takes over what was changed by others. How far the target has got is known best here."""
        own = self.target
        self.target = msgspec.structs.replace(
            target, position=own.position, flight_from=own.flight_from, flight_to=own.flight_to
        )
        if target.batch != own.batch or target.every_seconds != own.every_seconds:
            self._round_at = float("-inf")
        self.kick.set()

    async def run(self) -> None:
        """Delivers until nothing is left, or the target is paused, gone or removed."""
        while self.has_work:
            if await self._wait():
                self._round_at = self._clock()
                await self._deliver()
        await self.save()

    async def _wait(self) -> bool:
        """Waits until something may be sent; False if it was woken earlier."""
        due = max(
            self.target.retry_at or 0.0, self._round_at + self.target.every_seconds if self._high is None else 0.0
        )
        delay = due - self._clock()
        if delay <= 0:
            return True
        self.kick.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.kick.wait(), delay)
        return False

    # Rounds

    async def _deliver(self) -> None:
        """One round, or as much of it as the target takes."""
        target, is_net = self.target, self.target.every_seconds > 0
        high = self._log.passed if self._high is None else min(self._high, self._log.passed)
        found = await gather(self._log, self._prefix, self.dirty, self.owed, target.position, high, is_net=is_net)
        self.owed.update(found.expired)
        self._lost.update(item.subscription for item in found.items if item.number in found.expired)
        items = [item for item in found.items if self._done is None or item > self._done]
        if self._high is None and items and (is_net or target.batch > 1 or items[-1].is_made):
            self._high = found.high
            self._set(flight_from=found.low + 1, flight_to=found.high)
            await self.save()
        begin = 0
        while begin < len(items):
            if not self._is_on:
                return
            end = chunk(items, begin, self.target.batch)
            if not await self._say(found, items, begin, end, is_net=is_net):
                return
            begin, self._done = end, items[end - 1]
            if not is_net and begin < len(items):
                last = items[begin - 1].seq
                self._set(position=max(found.low, last if items[begin].seq > last else last - 1))
            if self._is_time_to_save():
                await self.save()
        await self._finish(found.high)

    async def _finish(self, high: int) -> None:
        """Ends a round: everything up to `high` is delivered, given up, or owed as a snapshot."""
        self._high = self._done = self._made_at = None
        if high > self.target.position or self.target.flight_to is not None:
            self._set(position=max(high, self.target.position), flight_from=None, flight_to=None)
        self.dirty = {number for number in self.dirty if self._log.head_seq(number) > high}
        if not self.has_work or self._is_time_to_save() or self.target.every_seconds or self._held or self._lost:
            await self.save()

    async def _say(self, found: Round, items: Sequence[Item], begin: int, end: int, *, is_net: bool) -> bool:
        """Sends a message with some items of a round. False: the round cannot go on now."""
        told, numbers = await self._composed(found, items[begin:end], is_net=is_net)
        if not told:
            return True
        target = self.target
        if self._made_at is None:
            self._made_at = self._clock()
        if target.batch == 1:
            message = single(self._log.epoch, target, told[0], self._made_at)
        else:
            before = items[begin - 1] if begin else self._done
            message = batched(
                self._log.epoch,
                target,
                told,
                self._made_at,
                begins_seq=before is None or before.seq != items[begin].seq,
                ends_seq=end == len(items) or items[end].seq != items[end - 1].seq,
            )
        outcome = await self.send(message)
        if outcome.is_accepted:
            self._accepted(told, numbers)
            return True
        return await self._failed(found, message, told, numbers, outcome)

    async def _composed(
        self, found: Round, items: Sequence[Item], *, is_net: bool
    ) -> tuple[list[Notification], list[int]]:
        """Notifications of items, and the numbers of their subscriptions."""
        tenant, names = self.target.tenant, [item.subscription for item in items]
        rows = await self._call(lambda: self._registry.get_many(tenant, names)) if is_net else {}
        told, numbers = [], []
        begun: set[int] = set()
        for item in items:
            try:
                key = rows[item.subscription].key or () if item.subscription in rows else ()
                one = compose(self._log, item, found.low, found.high, key, is_net=is_net)
            except Expired:
                self._owe(item.number, item.subscription)
                continue
            if one is not None and one.kind == "change" and item.number in self.owed and item.number not in begun:
                continue
            if one is not None and item.number in self.numbers:
                told.append(one)
                numbers.append(item.number)
                begun |= {item.number} if one.kind == "snapshot" else set()
        return told, numbers

    def _owe(self, number: int, name: str) -> None:
        self.owed.add(number)
        self._held.discard(name)
        self._lost.add(name)

    # Requests

    async def send(self, message: Outgoing) -> Outcome:
        """One try. Only one is under way at a time."""
        async with self._one:
            now, target = self._clock(), self.target
            outcome = await self._sender.post(target.url, headers(target, message, now), message.body)
            problem, seconds = outcome.problem, outcome.seconds
            self._attempts.append(Attempt(target.tenant, target.id, now, outcome.status, problem, message.id, seconds))
            return outcome

    @property
    def last_attempt(self) -> Attempt:
        return self._attempts[-1]

    def _accepted(self, told: Sequence[Notification], numbers: Sequence[int]) -> None:
        self._made_at = None
        if self.target.failures or self.target.state == "failing":
            self._set(failures=0, retry_at=None, last_error=None, state="active")
        for one, number in zip(told, numbers, strict=True):
            if one.kind == "snapshot":
                self.owed.discard(number)
                self._lost.discard(one.subscription)
                self._held.add(one.subscription)
            elif one.kind == "end":
                self._end(number, one.subscription)

    def _end(self, number: int, name: str) -> None:
        self.unlink(number)
        self._held.discard(name)
        self._lost.add(name)

    async def _failed(
        self, found: Round, message: Outgoing, told: Sequence[Notification], numbers: Sequence[int], outcome: Outcome
    ) -> bool:
        """Decides what becomes of a message that was not accepted. False: the round cannot go on now."""
        if outcome.is_gone:
            self._set(state="gone", last_error=outcome.problem)
            await self.save()
            return False
        failures, last = self.target.failures + 1, len(self._schedule)
        self._set(failures=failures, last_error=outcome.problem, state="failing")
        is_made = all(one.is_made for one in told)
        if failures <= last or (is_made and failures > last + 1):
            delay = self._schedule[min(failures, last) - 1] * random.uniform(1 - _SPREAD, 1 + _SPREAD) if last else 1.0
            self._set(retry_at=self._clock() + (delay if outcome.retry_after is None else outcome.retry_after))
            if failures > last:
                await self._finish(found.high)
            await self.save()
            return False
        own = self.target
        only = told[0].subscription if own.batch == 1 else None
        reason, now, body = outcome.problem or "", self._clock(), message.body.decode()
        self._letters.append(DeadLetter(own.tenant, own.id, only, message.id, told[-1].seq, body, reason, now))
        self._set(retry_at=None)
        self._made_at = None
        for one, number in zip(told, numbers, strict=True):
            if one.kind == "end":
                self._end(number, one.subscription)
            else:
                self._owe(number, one.subscription)
        return True

    # The registry

    def _set(self, **fields: Any) -> None:
        if self.target.state not in ("active", "failing"):
            fields.pop("state", None)
        self.target = msgspec.structs.replace(self.target, **fields)
        self._fields.update(fields)

    def _is_time_to_save(self) -> bool:
        if len(self._attempts) + len(self._letters) >= _UNSAVED_MAX:
            return True
        return abs(self._clock() - self._saved_at) >= _SAVE_SECONDS

    async def save(self) -> None:
        """Stores what has happened since it was stored last."""
        self._saved_at = self._clock()
        fields, held, lost = self._fields, self._held, self._lost
        letters, attempts = self._letters, self._attempts
        if not (fields or held or lost or letters or attempts) or self.is_removed:
            return
        self._fields, self._held, self._lost, self._letters, self._attempts = {}, set(), set(), [], []
        tenant, target, registry = self.target.tenant, self.target.id, self._registry

        def work() -> bool:
            if not registry.settle_target(tenant, target, fields, held=held, lost=lost, letters=letters):
                return False
            registry.add_attempts(attempts)
            return True

        try:
            is_there = await self._call(work)
        except BaseException:
            # Not stored, or perhaps: storing it again, except for attempts, does no harm.
            self._fields = {**fields, **self._fields}
            self._held, self._lost = (held - self._lost) | self._held, (lost - self._held) | self._lost
            self._letters = letters + self._letters
            raise
        self.is_removed = self.is_removed or not is_there
