"""What brokers and the server have in common: sessions with others, flights, and payloads that cross a link once."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidings.network.messages import SERVER, Ack, Ask, Body, Event, Frame, Got, Hello, Message, Reply
from tidings.network.payload_cache import PayloadCache, Rules

RETRY_MS = 1_000.0
"""How long to wait for an acknowledgement or an answer before asking again; twice as long each time, up to `RETRY_MS_MAX`."""
RETRY_MS_MAX = 8_000.0
Sent = list[tuple[int, Body]]
"""Messages to send: (to whom, what)."""
Child = tuple[int, int]
"""A broker that must acknowledge, and for which cell (`SERVER`: for all)."""
Key = tuple[int, int]
"""A flight: number of the event, and for which cell."""


@dataclass(eq=False, slots=True)
class Flight:
    """A message that is not done yet."""

    message: Message
    parents: set[int]
    due: float
    has_payload: bool
    waiting: set[Child] = field(default_factory=set)
    """Children that have not acknowledged."""
    asked: int | None = None
    """Whom the payload was asked of; nothing goes on before the answer."""
    wait_ms: float = RETRY_MS


class Node:
    """A node sends a message again until it is acknowledged, and a payload only where the other end lacks it."""

    def __init__(self, name: int, rules: Rules, cache: PayloadCache | None) -> None:
        """Without a cache every message has its payload."""
        self.name = name
        self.session = 0
        self.rules = rules
        self.cache = cache
        self._sessions: dict[int, int] = {}
        self._flights: dict[Key, Flight] = {}
        self._expected: dict[tuple[int, int, int], list[Key]] = {}
        """(number of an event, child) -> the flights that wait for it"""

    @property
    def is_idle(self) -> bool:
        """Whether no tick is needed."""
        return not self._flights

    def receive(self, frame: Frame, now: float) -> list[Frame]:
        """Handles what came over a link. What was sent in an earlier session is refused."""
        if self.rules.link_session:
            known = self._sessions.get(frame.sender, 0)
            if frame.session < known:
                return []
            if frame.session > known:
                self._begin(frame.sender, frame.session)
            if frame.to_session < self.session:
                return self._framed([(frame.sender, Hello())])
        body = frame.body
        if isinstance(body, Ack):
            return self._framed(self._acknowledged(body, frame.sender))
        return self._framed(self._handle(body, frame.sender, now))

    def tick(self, now: float) -> list[Frame]:
        """What to send again, as nobody has answered."""
        out: Sent = []
        for flight in self._flights.values():
            if flight.due <= now:
                flight.wait_ms = min(2 * flight.wait_ms, RETRY_MS_MAX)
                flight.due = now + flight.wait_ms
                out += self._again(flight)
        return self._framed(out)

    def _begin(self, link: int, session: int) -> None:
        """The other end of a link has restarted: it has no payload any more."""
        self._sessions[link] = session
        if self.cache is not None:
            self.cache.forget_link(link)

    def _handle(self, body: Body, link: int, now: float) -> Sent:
        if isinstance(body, Got) and self.cache is not None:
            self.cache.mark(body.payload_id, link)
        elif isinstance(body, Ask):
            return [(link, Reply(body.payload_id, self._held(body.payload_id)))]
        return []

    def _held(self, payload_id: int) -> int:
        """The size of a payload that is here; -1: it is not."""
        return -1 if self.cache is None else self.cache.size(payload_id)

    def _again(self, flight: Flight) -> Sent:
        return [self._copy(flight, child) for child in sorted(flight.waiting)]

    def _send(self, key: Key, flight: Flight, children: list[Child]) -> Sent:
        """Copies for all children, who are expected to acknowledge."""
        flight.waiting.update(children)
        for link, part in children:
            self._expected.setdefault((key[0], link, part), []).append(key)
        return [self._copy(flight, child) for child in children]

    def _copy(self, flight: Flight, child: Child) -> tuple[int, Message]:
        """The message for a child, stripped if the payload has crossed the link."""
        message, event, (link, part) = flight.message, flight.message.event, child
        has_payload, source = flight.has_payload, message.source
        if self.cache is not None:
            if self._held(event.payload_id) >= 0:
                source = self.name
            links = self.cache.links(event.payload_id)
            if link in links:
                has_payload = False
            elif not self.rules.neighbour_ack:
                links.add(link)
        copies = event.route.copies.get(link, 1)
        return link, Message(event, has_payload, source, part, message.hops + 1, message.low, copies)

    def _acknowledged(self, ack: Ack, link: int) -> Sent:
        out: Sent = []
        for key in self._expected.pop((ack.seq, link, ack.part), ()):
            flight = self._flights.get(key)
            if flight is not None and (link, ack.part) in flight.waiting:
                flight.waiting.discard((link, ack.part))
                if not flight.waiting:
                    out += self._finish(key, flight)
        return out

    def _finish(self, key: Key, flight: Flight) -> Sent:
        """All is done, here and beyond."""
        del self._flights[key]
        return [(parent, Ack(*key)) for parent in flight.parents]

    def _framed(self, sent: Sent) -> list[Frame]:
        known = self._sessions.get
        return [Frame(self.name, to, self.session, known(to, 0), body) for to, body in sent]


class Server(Node):
    """Publishes events. Its messages and payloads survive crashes, and so does it: it never restarts here."""

    def __init__(self, rules: Rules, cache: PayloadCache | None) -> None:
        super().__init__(SERVER, rules, cache)
        self._payloads: dict[int, tuple[int, int]] = {}
        """Payload id -> size, and how many messages under way have it."""
        self._just_finished: list[int] = []

    def publish(self, event: Event, now: float) -> list[Frame]:
        """Starts an event on its route."""
        children: list[Child] = [(broker, SERVER) for broker in event.route.children(SERVER)]
        if not children:
            return []
        key = (event.seq, SERVER)
        low = next(iter(self._flights), key)[0]
        flight = Flight(Message(event, True, SERVER, hops=0, low=low), set(), now + RETRY_MS, True)
        self._flights[key] = flight
        if self.rules.server_keeps:
            size, uses = self._payloads.get(event.payload_id, (event.payload_bytes, 0))
            self._payloads[event.payload_id] = size, uses + 1
        return self._framed(self._send(key, flight, children))

    def finished(self) -> list[int]:
        """Numbers of events that are done since this was last asked."""
        found, self._just_finished = self._just_finished, []
        return found

    def _held(self, payload_id: int) -> int:
        return self._payloads.get(payload_id, (-1, 0))[0]

    def _finish(self, key: Key, flight: Flight) -> Sent:
        payload = flight.message.event.payload_id
        size, uses = self._payloads.pop(payload, (0, 0))
        if uses > 1:
            self._payloads[payload] = size, uses - 1
        self._just_finished.append(key[0])
        return super()._finish(key, flight)
