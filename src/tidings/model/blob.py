"""Columnar batches as bytes, for envelopes between stages and for durable state."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tidings.model.notification import NotificationBatch
from tidings.model.points import PointBatch
from tidings.model.text_column import TextColumn

_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        PointBatch,
        NotificationBatch,
        TextColumn,
    )
}
_PLAIN = (str, int, bytes)
_NUMPY, _RECORD_BATCH, _ARRAY, _BATCH = 1, 2, 3, 4
_PIECE_BYTES = 16 * 2**20


def pack(value: object) -> bytes:
    """A batch (or a nest of dicts, lists and tuples of batches, arrays and plain values) as self-describing bytes."""
    return msgspec.msgpack.encode(_encode(value))


def unpack(blob: bytes) -> Any:
    """What `pack` was given; tuples come back as lists except inside batches."""
    return msgspec.msgpack.decode(blob, ext_hook=_decode)


def pieces(data: bytes) -> list[bytes]:
    """Bytes as a value to pack: one value of a message may have 4 GiB at most."""
    return [data[at : at + _PIECE_BYTES] for at in range(0, len(data), _PIECE_BYTES)]


def _encode(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _encode(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        is_plain = all(type(part) in _PLAIN for part in value)
        return value if is_plain else [_encode(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        head = msgspec.msgpack.encode((value.dtype.str, value.shape))
        data = np.ascontiguousarray(value).tobytes()
        return msgspec.msgpack.Ext(_NUMPY, len(head).to_bytes(4, "little") + head + data)
    if isinstance(value, pa.RecordBatch):
        return msgspec.msgpack.Ext(_RECORD_BATCH, _stream(value))
    if isinstance(value, pa.Array):
        return msgspec.msgpack.Ext(_ARRAY, _stream(pa.RecordBatch.from_arrays([value], ["values"])))
    if type(value).__name__ in _KINDS:
        state = {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
        return msgspec.msgpack.Ext(_BATCH, msgspec.msgpack.encode((type(value).__name__, state)))
    return value


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _decode(code: int, data: memoryview) -> object:
    if code == _NUMPY:
        length = int.from_bytes(data[:4], "little")
        dtype, shape = msgspec.msgpack.decode(data[4 : 4 + length])
        # A copy, because kernels want aligned, writable memory.
        return np.frombuffer(data, np.dtype(dtype), offset=4 + length).reshape(shape).copy()
    if code in (_RECORD_BATCH, _ARRAY):
        batch = next(iter(pa.ipc.open_stream(pa.py_buffer(data))))
        return batch if code == _RECORD_BATCH else batch.column(0)
    name, state = msgspec.msgpack.decode(data, ext_hook=_decode)
    if "channel" in state:
        state["channel"] = tuple(state["channel"])
    return _KINDS[name](**state)
