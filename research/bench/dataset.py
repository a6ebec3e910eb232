"""The dataset protocol: what a family brings for its benches, as the pipeline sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from research.servers.changes import ChangeBatch
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import Op
from tidings.model.codes import Int64Array
from tidings.model.points import Event, PointBatch
from tidings.model.render import render_rows
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog

BATCH = 10_000
"""Changes in one batch."""


class Dataset(ABC):
    """Subscriptions of one form that exist from the start (`s0`, `s1`, ..), rows, and changes to the rows."""

    catalog_sql: str

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of subscriptions."""

    @abstractmethod
    def sql(self, i: int) -> str:
        """The text of a subscription."""

    @abstractmethod
    def coords(self) -> Int64Array:
        """[subscriptions, axes]: the points of all subscriptions, as the door would place them."""

    def channel(self) -> tuple[pa.Array, ...]:
        """Constants of the equality columns of all subscriptions, one array per column."""
        return ()

    def after(self) -> Int64Array:
        """[subscriptions]: seq after which each is created."""
        return np.zeros(self.size, np.int64)

    @abstractmethod
    def inserts(self) -> Iterator[ChangeBatch]:
        """The changes that fill the tables, in batches of one table each."""

    @abstractmethod
    def updates(self) -> Iterator[ChangeBatch]:
        """The changes to be timed, in batches of `BATCH`; the last may be smaller."""

    @abstractmethod
    def stream(self, changes: int, at_a_time: int) -> Iterator[ChangeBatch]:
        """`changes` changes in micro-batches of `at_a_time`: inserts that fit into the first, then changes of those rows."""

    @cached_property
    def catalog(self) -> Catalog:
        return parse_catalog(self.catalog_sql)

    @cached_property
    def form(self) -> Form:
        """The form of all subscriptions."""
        return Form.from_key(Door(self.catalog).place(self.sql(0)).form)

    @cached_property
    def ids(self) -> pa.Array:
        return pc.binary_join_element_wise("s", pc.cast(pa.array(np.arange(self.size)), pa.string()), "")

    def points(self) -> PointBatch:
        """Creation events of all subscriptions, equal to those of the door but made columnar."""
        return PointBatch(
            self.form.key,
            np.full(self.size, Event.CREATE, np.int8),
            self.after(),
            np.arange(self.size),
            self.ids,
            self.channel(),
            self.coords(),
            np.ones(self.size, np.bool_),
            pa.array([b""], pa.binary()).take(pa.array(np.zeros(self.size, np.int64))),
        )

    def batch(self, table: str, op: Op | npt.NDArray[np.int8], first: int, columns: list[pa.Array]) -> ChangeBatch:
        """A batch of changes with seqs first + 1, first + 2, .. and these rows."""
        rows = pa.RecordBatch.from_arrays(columns, schema=self.catalog.table(table).schema)
        position = np.arange(first, first + rows.num_rows)
        ops = np.full(rows.num_rows, op, np.int8) if isinstance(op, Op) else op
        return ChangeBatch(table, position, position + 1, ops, rows)


def starts(count: int) -> Iterator[tuple[int, int]]:
    """(start, stop) of every batch of so many changes."""
    for start in range(0, count, BATCH):
        yield start, min(start + BATCH, count)


def json_lines(changes: ChangeBatch) -> list[bytes]:
    """The batch as lines of `changes.jsonl`."""
    rows = render_rows(changes.rows.schema.names, changes.rows.columns, len(changes))
    return [
        f'{{"seq": {seq}, "table": "{changes.table}", "op": "{Op(op).name.lower()}", "row": {row}}}'.encode()
        for seq, op, row in zip(changes.seq.tolist(), changes.op.tolist(), rows, strict=True)
    ]
