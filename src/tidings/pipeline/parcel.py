"""Messages on their way to a gateway, as bytes: small, because most boxes share their ends with many others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.model.blob import pack, unpack
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch
from tidings.model.region import Regions

_BOXES_MIN = 4_096
"""Fewer are not worth a book of their ends."""


def pack_messages(messages: MessageBatch, at: Int64Array | None = None) -> Iterator[bytes]:
    """These messages, or those at some places, in parcels; messages of one seq stay in one, so that they keep their order."""
    chosen = np.arange(len(messages)) if at is None else at
    sizes = np.diff(messages.regions.starts)[chosen]
    if int(sizes.sum()) < _BOXES_MIN:
        yield pack(messages.take(chosen))
        return
    # Imported here because kernels take a second to import, and many workers never have so many messages.
    from tidings.kernels.arguments import as_argument
    from tidings.kernels.codebook import encode

    regions = messages.regions
    boxes = [as_argument(part) for part in (regions.lo, regions.hi, regions.tags, regions.starts)]
    seq = messages.seq[chosen]
    start = 0
    while start < len(chosen):
        stop, book, index, tags = encode(*boxes, chosen, start)
        if stop < len(chosen):
            stop = int(np.searchsorted(seq, seq[stop]))
        if stop <= start:
            # The boxes of a single seq are too many for one book.
            stop = int(np.searchsorted(seq, seq[start], "right"))
            yield pack(messages.take(chosen[start:stop]))
        else:
            count = int(sizes[start:stop].sum())
            encoded = {"sizes": sizes[start:stop].astype(np.uint32), "book": book}
            encoded |= {"index": index[:count], "tags": tags[:count]}
            yield pack({**encoded, **_without_boxes(messages, chosen[start:stop])})
        start = stop


def unpack_messages(blob: bytes) -> MessageBatch:
    parcel = unpack(blob)
    if isinstance(parcel, MessageBatch):
        return parcel
    ends = parcel["book"][parcel["index"]]
    dims = ends.shape[1] // 2
    starts = np.concatenate([[0], np.cumsum(parcel["sizes"], dtype=np.int64)])
    regions = Regions(
        np.ascontiguousarray(ends[:, :dims]), np.ascontiguousarray(ends[:, dims:]), parcel["tags"], starts
    )
    return MessageBatch(
        parcel["form"],
        parcel["seq"],
        tuple(parcel["channel"]),
        regions,
        parcel["payload"],
        parcel["target"],
        tuple(parcel["to"]),
    )


def _without_boxes(messages: MessageBatch, at: Int64Array) -> dict[str, Any]:
    places = pa.array(at)
    return {
        "form": messages.form,
        "seq": messages.seq[at],
        "channel": [column.take(places) for column in messages.channel],
        "payload": messages.payload.take(places),
        "target": None if messages.target is None else messages.target.take(places),
        "to": messages.to,
    }
