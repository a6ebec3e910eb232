"""What one view tells another of a document: where its matches are, and what it knows of them.

A message has one part for each node of a view's pattern (a view over rows has a single part), or nothing if the view matches
nothing: this is said as well, since who waits for several inputs must know that one has nothing to say.
"""

from __future__ import annotations

import msgspec


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Matches of one node. ids: in order, each once. columns: for each thing that is told of a match, a text per id."""

    ids: list[str]
    columns: tuple[list[str], ...] = ()


Parts = tuple[Part, ...] | None
"""All that a view says of a document. None: no match."""


class ViewMessage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The parts of one view for one document.

    epoch: the plan by which they were computed. A view says the same of a document by any plan; the publisher may not.
    seq: the document's place in the stream. document: its name.
    """

    epoch: int
    seq: int
    document: str
    view: str
    parts: Parts


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(ViewMessage)


_PARTS_DECODER: msgspec.msgpack.Decoder[Parts] = msgspec.msgpack.Decoder(Parts)


def encode_parts(parts: Parts) -> bytes:
    return _ENCODER.encode(parts)


def decode_parts(data: bytes) -> Parts:
    """msgspec.MsgspecError for other bytes."""
    return _PARTS_DECODER.decode(data)


def encode_message(message: ViewMessage) -> bytes:
    return _ENCODER.encode(message)


def decode_message(data: bytes) -> ViewMessage:
    """msgspec.MsgspecError for other bytes."""
    return _DECODER.decode(data)
