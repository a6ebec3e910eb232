"""What a run costs: bytes and messages by node and by link, hops, and what was delivered wrongly."""

from __future__ import annotations

from typing import Any

from tidings.kernels.arrays import I64
from tidings.network.messages import SERVER, Event, Frame, Message, Reply, Transfer


class Metrics:
    def __init__(self, brokers: int, ip_hops: I64) -> None:
        self._hops = ip_hops.tolist()
        self.messages = self.bytes = self.server_bytes = self.ip_bytes = self.ip_messages = 0
        self.stripped = self.asks = self.payload_bytes = 0
        self.control_messages = self.control_bytes = 0
        self.reorganisation_bytes = 0
        self.out = [0] * (brokers + 1)
        self.stress_max = 0
        self._stress: dict[int, dict[int, int]] = {}
        """Event under way -> node -> bytes that left it"""
        self.delivered_after = [0]
        """Deliveries by the hops that the message made."""
        self.last_hop_bytes = 0
        self.brokers_reached = self.brokers_needed = 0

    def sent(self, frame: Frame, size: int) -> None:
        """So many bytes leave a node, whether or not they arrive."""
        body, sender = frame.body, frame.sender
        if isinstance(body, Message):
            copies = body.copies
            self.messages += copies
            self.bytes += size
            path = self._hops[sender][frame.to]
            self.ip_messages += path * copies
            self.ip_bytes += path * size
            self.out[sender] += size
            if sender == SERVER:
                self.server_bytes += size
            if body.has_payload:
                self.payload_bytes += copies * body.event.payload_bytes
            else:
                self.stripped += copies
            of_event = self._stress.get(body.event.seq)
            if of_event is not None:
                of_event[sender] = of_event.get(sender, 0) + size
        elif isinstance(body, Reply):
            # Answers to brokers that lack a payload are part of what it costs to tell.
            self.asks += 1
            self.messages += 1
            self.bytes += size
            self.payload_bytes += max(body.payload_bytes, 0)
            self.ip_bytes += self._hops[sender][frame.to] * size
            self.out[sender] += size
            if sender == SERVER:
                self.server_bytes += size
        elif isinstance(body, Transfer):
            self.reorganisation_bytes += size
        else:
            self.control_messages += 1
            self.control_bytes += size

    def begin(self, event: Event) -> None:
        self._stress[event.seq] = {}

    def end(self, event: Event) -> None:
        of_event = self._stress.pop(event.seq)
        if of_event:
            self.stress_max = max(self.stress_max, *of_event.values())

    def delivered(self, message: Message, count: int) -> None:
        """So many points of a broker were told."""
        while len(self.delivered_after) <= message.hops:
            self.delivered_after.append(0)
        self.delivered_after[message.hops] += count
        self.last_hop_bytes += count * (message.event.size + message.event.payload_bytes)
        self.brokers_needed += 1

    def result(self, points: int, events: int) -> dict[str, Any]:
        """Figures by name; means are per event, or per delivery."""
        each, deliveries = max(events, 1), sum(self.delivered_after)
        hops = sum(number * count for number, count in enumerate(self.delivered_after))
        return {
            "deliveries": deliveries,
            "received_per_point": deliveries / max(points, 1),
            "server_bytes": self.server_bytes,
            "overlay_messages": self.messages,
            "overlay_bytes": self.bytes,
            "overlay_bytes_with_last_hop": self.bytes + self.last_hop_bytes,
            "overlay_messages_with_last_hop": self.messages + deliveries,
            "ip_messages": self.ip_messages,
            "ip_bytes": self.ip_bytes,
            "payload_bytes": self.payload_bytes,
            "stripped_messages": self.stripped,
            "asked_payloads": self.asks,
            "control_messages": self.control_messages,
            "control_bytes": self.control_bytes,
            "reorganisation_bytes": self.reorganisation_bytes,
            "stress_max": self.stress_max,
            "stress_mean": sum(self.out) / len(self.out) / each,
            "hops_mean": hops / max(deliveries, 1),
            "hops_max": len(self.delivered_after) - 1,
            "brokers_reached": self.brokers_reached,
            "broker_redundancy": self.brokers_reached / max(self.brokers_needed, 1) - 1,
        }
