"""Running a plan: views that feed views, document by document.

`run_relay` runs a plan over documents in one process; `tidings.relay.runtime.nats` does so in several. `RelayNetwork` is for
those who want to see messages on their way, change plans or lose nodes.
"""

from tidings.relay.message import Part, Parts, ViewMessage, decode_message, encode_message
from tidings.relay.runtime.network import RelayNetwork
from tidings.relay.runtime.pattern_query import PatternQuery, pattern_matching
from tidings.relay.runtime.run import Switch, result_line, run_relay

__all__ = [
    "Part",
    "Parts",
    "PatternQuery",
    "RelayNetwork",
    "Switch",
    "ViewMessage",
    "decode_message",
    "encode_message",
    "pattern_matching",
    "result_line",
    "run_relay",
]
