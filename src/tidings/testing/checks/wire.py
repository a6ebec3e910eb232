"""Wire: decoding returns the encoded messages, and `wire_sizes` returns their encoded sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tidings.model.message import MessageBatch
from tidings.network.wire import decode, encode, wire_sizes
from tidings.testing.checks.case import Case
from tidings.testing.deployment import deploy, run_steps


def check_wire(case: Case) -> None:
    case = case.by_messages()
    strategy = case.strategy()
    steps = run_steps(deploy(case.workload, strategy), case.workload.change_lines(), case.sizes())
    for batch in (batch for step in steps for batch in step.messages):
        assert _are_same(decode(encode(batch)), batch), f"{strategy}: bytes of {batch}"
        sizes = [len(encode(batch, np.array([at]), number=1)) for at in range(len(batch))]
        assert wire_sizes(batch).tolist() == sizes, f"{strategy}: wire sizes of {batch}"


def _are_same(one: MessageBatch, other: MessageBatch) -> bool:
    return _named(one) == _named(other) and all(
        np.array_equal(a, b) for a, b in zip(_arrays(one), _arrays(other), strict=True)
    )


def _named(batch: MessageBatch) -> list[Any]:
    """All fields of a batch but its arrays of numbers. Doubles as their bits, so that NaN equals NaN."""
    columns = [*batch.channel, *batch.payload.columns]
    bits = [column.view(pa.int64()) if pa.types.is_float64(column.type) else column for column in columns]
    return [batch.form, batch.to, batch.axes, batch.payload.schema, batch.target, *bits]


def _arrays(batch: MessageBatch) -> list[Any]:
    regions = batch.regions
    return [batch.seq, regions.lo, regions.hi, regions.tags, regions.starts]
