"""Brokers, sans I/O: messages in, messages out.

A broker tells the points in its cells, passes copies on along the message's route, and acknowledges when all of that is done;
what is not acknowledged comes again. Of what a broker knows, three things survive a crash: the points in its cells, what each
cell has been told, and the cells that it gave away. All else is forgotten without harm: flights are repeated, and duplicates
fall by what cells have been told.

A cell moves with its points and with what they have been told. From the moment it leaves, its former owner passes messages
for it on; the zone map changes when the new owner has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from tidings.kernels.arrays import I64
from tidings.network.messages import SERVER, Ack, Ask, Body, Event, Frame, Got, Message, Reply, Taken, Transfer
from tidings.network.node import RETRY_MS, Child, Flight, Key, Node, Sent
from tidings.network.payload_cache import PayloadCache, Rules
from tidings.network.zones import Directory, Part, cut_of, is_divisible

Deliver = Callable[[int, Message, I64, bool], None]
"""(broker, message, points, whether the payload is there): tells them, in one transaction with what the cell has been told."""


class Points(Protocol):
    """The index of the points that brokers have."""

    def find(self, event: Event, cell: int) -> I64:
        """Numbers of the points of a cell that an event is for."""
        ...

    def divide(self, cell: int, low: int, high: int, dim: int, cut: int) -> tuple[I64, I64]:
        """Divides the points of a cell between two: those up to `cut` and those behind it."""
        ...

    def coordinates(self, points: I64) -> I64: ...


@dataclass(eq=False, slots=True)
class Cell:
    """A cell in the hands of a broker. Durable."""

    lo: I64
    hi: I64
    points: I64
    told: set[int] = field(default_factory=set)


class Departure:
    """A cell on its way to a new owner. Durable."""

    __slots__ = ("due", "parts", "replaced", "to", "transfer")

    def __init__(self, to: int, transfer: Transfer, replaced: int, parts: list[Part], due: float) -> None:
        self.to, self.transfer, self.replaced, self.parts, self.due = to, transfer, replaced, parts, due


class Broker(Node):
    def __init__(
        self,
        name: int,
        rules: Rules,
        cache: PayloadCache | None,
        directory: Directory,
        points: Points,
        deliver: Deliver,
    ) -> None:
        super().__init__(name, rules, cache)
        self.cells: dict[int, Cell] = {}
        self._given: dict[int, list[tuple[int, int]]] = {}
        """Cell that was here -> the cells that it became, and who got each of them"""
        self._leaving: dict[int, Departure] = {}
        """Number of a transfer that is not confirmed -> what leaves"""
        self._arrived: dict[int, int] = {}
        """Cell -> the last transfer by which it came"""
        self._directory, self._points, self._deliver = directory, points, deliver
        self._finished: set[Key] = set()
        self._low = 0

    @property
    def is_idle(self) -> bool:
        return not self._flights and not self._leaving

    @property
    def is_moving(self) -> bool:
        """Whether a cell is on its way from here: there is one at a time."""
        return bool(self._leaving)

    def restart(self, cache: PayloadCache | None) -> None:
        """Comes back after a crash with what is durable, in a new session."""
        self.session += 1
        self.cache = cache
        self._sessions.clear()
        self._flights.clear()
        self._expected.clear()
        self._finished.clear()

    def tick(self, now: float) -> list[Frame]:
        again: Sent = []
        for departure in self._leaving.values():
            if departure.due <= now:
                departure.due = now + RETRY_MS
                again.append((departure.to, departure.transfer))
        return super().tick(now) + self._framed(again)

    def give(self, cell: int, to: int, now: float, *, is_whole: bool) -> list[Frame]:
        """Gives a cell, or the upper half of its points, to another broker."""
        held = self.cells.pop(cell)
        leaving, lo, points = cell, held.lo, held.points
        parts = [Part(cell, held.lo, held.hi, to)]
        if not is_whole and is_divisible(held.lo, held.hi):
            kept, leaving = self._directory.new_cell(), self._directory.new_cell()
            dim, cut = cut_of(self._points.coordinates(held.points), held.lo, held.hi)
            hi, lo = held.hi.copy(), held.lo.copy()
            hi[dim], lo[dim] = cut, cut + 1
            low, points = self._points.divide(cell, kept, leaving, dim, cut)
            self.cells[kept] = Cell(held.lo, hi, low, set(held.told))
            parts = [Part(kept, held.lo, hi, self.name), Part(leaving, lo, held.hi, to)]
        self._given[cell] = [(part.cell, part.owner) for part in parts]
        number = self._directory.new_transfer()
        transfer = Transfer(number, leaving, lo, held.hi, points, frozenset(held.told))
        self._leaving[number] = Departure(to, transfer, cell, parts, now + RETRY_MS)
        return self._framed([(to, transfer)])

    def _handle(self, body: Body, link: int, now: float) -> Sent:
        if isinstance(body, Message):
            return self._message(body, link, now)
        if isinstance(body, Reply):
            return self._answered(body, link)
        if isinstance(body, Transfer):
            return self._arrive(body, link)
        if isinstance(body, Taken):
            departure = self._leaving.pop(body.number, None)
            if departure is not None:
                self._directory.replace(departure.replaced, departure.parts)
            return []
        return super()._handle(body, link, now)

    def _message(self, message: Message, link: int, now: float) -> Sent:
        key = message.event.seq, message.part
        out: Sent = []
        if self.cache is not None and message.has_payload:
            self.cache.keep(message.event.payload_id, message.event.payload_bytes)
            out.append((link, Got(message.event.payload_id)))
        if key in self._finished:
            return [*out, (link, Ack(*key))]
        flight = self._flights.get(key)
        if flight is not None:
            flight.parents.add(link)
            if message.has_payload and flight.asked is not None:
                flight.has_payload = True
                out += self._go(key, flight)
            return out
        if message.part != SERVER and not self._knows(message.part):
            # It comes again when the cell is here.
            return out
        self._forget(message.low)
        flight = Flight(message, {link}, now + RETRY_MS, message.has_payload)
        self._flights[key] = flight
        return out + self._go(key, flight)

    def _go(self, key: Key, flight: Flight) -> Sent:
        """Tells local points and all children, as soon as the payload is here if it is needed."""
        message, event = flight.message, flight.message.event
        local, children = self._split(message)
        if self._lacks(flight, children, is_needed_here=bool(local)):
            flight.asked = message.source if flight.asked is None else SERVER
            return [(flight.asked, Ask(event.payload_id))]
        flight.asked = None
        for cell, points in local:
            cell.told.add(event.seq)
            self._deliver(self.name, message, points, flight.has_payload)
        if not children:
            return self._finish(key, flight)
        return self._send(key, flight, children)

    def _split(self, message: Message) -> tuple[list[tuple[Cell, I64]], list[Child]]:
        """Cells here with points that have not been told, and who else must get the message."""
        event = message.event
        local: list[tuple[Cell, I64]] = []
        children: list[Child] = []
        if message.part == SERVER:
            todo = list(self._directory.cells_of(self.name, event.version))
            children += [(broker, SERVER) for broker in event.route.children(self.name)]
        else:
            todo = [message.part]
        while todo:
            number = todo.pop()
            cell = self.cells.get(number)
            if cell is None:
                for part, owner in self._given[number]:
                    if owner == self.name:
                        todo.append(part)
                    else:
                        children.append((owner, part))
            elif event.seq not in cell.told:
                points = self._points.find(event, number)
                if len(points):
                    local.append((cell, points))
        return local, children

    def _knows(self, cell: int) -> bool:
        return cell in self.cells or cell in self._given

    def _lacks(self, flight: Flight, children: Iterable[Child], *, is_needed_here: bool) -> bool:
        """Whether a payload must be asked for: it is not here, and needed here or by a child, and may be somewhere."""
        if flight.has_payload or self.cache is None:
            return False
        payload = flight.message.event.payload_id
        flight.has_payload = self.cache.has(payload)
        if flight.has_payload or flight.asked == SERVER or not (self.rules.ask_source and self.rules.stripped_flag):
            return False
        links = self.cache.links(payload)
        return is_needed_here or not all(link in links for link, _ in children)

    def _answered(self, reply: Reply, link: int) -> Sent:
        """A payload that was asked for; if it is nowhere, the message goes on without."""
        out: Sent = []
        is_here = reply.payload_bytes >= 0
        if is_here and self.cache is not None:
            self.cache.keep(reply.payload_id, reply.payload_bytes)
        for key, flight in list(self._flights.items()):
            is_asked = flight.asked == link or (is_here and flight.asked is not None)
            if is_asked and flight.message.event.payload_id == reply.payload_id:
                flight.has_payload = is_here
                # The question and the answer are hops, too.
                flight.message.hops += 2
                out += self._go(key, flight)
        return out

    def _again(self, flight: Flight) -> Sent:
        # A child that has restarted needs the payload, even if nobody did before.
        if flight.asked is None and not self._lacks(flight, flight.waiting, is_needed_here=False):
            return super()._again(flight)
        # The source may be gone: the server never is.
        flight.asked = SERVER
        return [(SERVER, Ask(flight.message.event.payload_id))]

    def _finish(self, key: Key, flight: Flight) -> Sent:
        self._finished.add(key)
        return super()._finish(key, flight)

    def _forget(self, low: int) -> None:
        """What is done everywhere need not be remembered; looked at now and then."""
        if low < self._low + 1_000:
            return
        self._low = low
        self._finished = {key for key in self._finished if key[0] >= low}
        for cell in self.cells.values():
            cell.told = {seq for seq in cell.told if seq >= low}

    def _arrive(self, transfer: Transfer, link: int) -> Sent:
        out: Sent = [(link, Taken(transfer.number))]
        number, cell = transfer.number, transfer.cell
        if number > self._arrived.get(cell, 0):
            self._arrived[cell] = number
            self._given.pop(cell, None)
            self.cells[cell] = Cell(transfer.lo, transfer.hi, transfer.points, set(transfer.told))
            # What was passed on for this cell may have come full circle: it is told here now.
            for key, flight in list(self._flights.items()):
                if any(part == cell for _, part in flight.waiting):
                    flight.waiting.clear()
                    out += self._go(key, flight)
        return out
