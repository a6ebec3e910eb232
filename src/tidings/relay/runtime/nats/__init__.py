"""A relay network over NATS JetStream: views at work in several processes, and one that feeds and watches them."""

from tidings.relay.runtime.nats.relay import NatsRelay, run_relay_nats

__all__ = ["NatsRelay", "run_relay_nats"]
