"""Columnar batches as bytes: how batches travel between stages and rest in durable state."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from tidings.model.change import ChangeBatch, TableChanges
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import PointBatch
from tidings.model.region import Regions

_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (ChangeBatch, TableChanges, MessageBatch, SnapshotBatch, PointBatch, Regions)
}
T = TypeVar("T")


def pack(value: object) -> bytes:
    """A batch (or a nest of dicts, lists and tuples of batches, arrays and plain values) as self-describing bytes."""
    return msgspec.msgpack.encode(value, enc_hook=_encode)


def unpack(blob: bytes) -> Any:
    """What `pack` was given; tuples come back as lists except inside batches."""
    return msgspec.msgpack.decode(blob, ext_hook=_decode)


def _encode(value: object) -> object:
    if isinstance(value, np.ndarray):
        contiguous = np.ascontiguousarray(value)
        head = msgspec.msgpack.encode((value.dtype.str, value.shape))
        return msgspec.msgpack.Ext(1, len(head).to_bytes(4, "little") + head + contiguous.tobytes())
    if isinstance(value, pa.RecordBatch):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_batch(value)
        return msgspec.msgpack.Ext(2, sink.getvalue().to_pybytes())
    if isinstance(value, pa.Array):
        if value.offset:
            value = pa.concat_arrays([value])
        return msgspec.msgpack.Ext(3, bytes(_encode(pa.RecordBatch.from_arrays([value], ["a"])).data))  # type: ignore[attr-defined]
    if type(value).__name__ in _KINDS:
        state = {field.name: getattr(value, field.name) for field in fields(value)}  # type: ignore[arg-type]
        return msgspec.msgpack.Ext(4, msgspec.msgpack.encode((type(value).__name__, state), enc_hook=_encode))
    raise TypeError(f"cannot pack a {type(value).__name__}")


def _decode(code: int, data: memoryview) -> object:
    if code == 1:
        length = int.from_bytes(data[:4], "little")
        dtype, shape = msgspec.msgpack.decode(data[4 : 4 + length])
        # A copy, because kernels want aligned, writable memory.
        return np.frombuffer(data, np.dtype(dtype), offset=4 + length).reshape(shape).copy()
    if code in (2, 3):
        batch = next(iter(pa.ipc.open_stream(pa.py_buffer(data))))
        return batch if code == 2 else batch.column(0)
    name, state = msgspec.msgpack.decode(data, ext_hook=_decode)
    if "channel" in state:
        state["channel"] = tuple(state["channel"])
    return _KINDS[name](**state)
