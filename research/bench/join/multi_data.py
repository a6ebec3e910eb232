"""A scene of joins of several tables as the pipeline sees it: a form per signature, its subscriptions as points, changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from research.strategies.join.space import Space, space_of
from research.workloads.join.multi import SIGNATURES, Images, MultiScene
from research.workloads.join.tables import JoinSchema, repeated
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import Op, TableChanges
from tidings.model.codes import BoolArray, Int64Array, codes_of_doubles
from tidings.model.points import Event, PointBatch
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog

_NONE = -1


@dataclass(frozen=True)
class MultiData:
    """Subscriptions are all there from the start, and so are the rows that tables start with."""

    schema: JoinSchema
    scene: MultiScene

    @cached_property
    def catalog(self) -> Catalog:
        return parse_catalog(self.schema.catalog_sql)

    def space(self, signature: int) -> Space:
        """The space of the form of a signature."""
        sql = self.schema.sql(SIGNATURES[signature], [0.0, 1.0] * len(self.schema.tables))
        return space_of(Form.from_key(Door(self.catalog).place(sql).form), self.catalog)

    def points(self, signature: int) -> PointBatch:
        """The subscriptions of a signature as events that create them: the door would give the same."""
        own = np.flatnonzero(self.scene.signature == signature)
        ends = [2 * table + end for table in SIGNATURES[signature] for end in (0, 1)]
        return PointBatch(
            self.space(signature).key,
            np.full(len(own), Event.CREATE, np.int8),
            np.zeros(len(own), np.int64),
            own,
            pa.array([f"s{i}" for i in own.tolist()], pa.string()),
            (),
            codes_of_doubles(self.scene.ranges[own][:, ends]),
            np.ones(len(own), np.bool_),
            pa.array([b""] * len(own), pa.binary()),
        )

    def first_rows(self, table: int) -> TableChanges:
        """The rows that a table starts with, as they come."""
        image = np.arange(self.scene.tables[table].start)
        return self._changes(table, np.zeros(len(image), np.int64), np.full(len(image), _NONE), image)

    def changes(self, start: int, stop: int) -> Iterator[tuple[int, Op, TableChanges]]:
        """Some of the scene's changes by table and kind: (table, kind, changes in their order).

        Inserts come before deletes. If few changes are taken at a time, no row is deleted that was inserted in the same call.
        """
        steps = self.scene.steps
        for table in range(len(self.schema.tables)):
            for op in (Op.INSERT, Op.UPDATE, Op.DELETE):
                at = start + np.flatnonzero((steps.table[start:stop] == table) & (steps.op[start:stop] == op))
                if len(at):
                    image = steps.image[at]
                    none = np.full(len(at), _NONE)
                    before = {Op.INSERT: none, Op.UPDATE: self._previous[table][image], Op.DELETE: image}[op]
                    yield table, op, self._changes(table, at + 1, before, none if op == Op.DELETE else image)

    @cached_property
    def _previous(self) -> list[Int64Array]:
        return [_previous_images(images) for images in self.scene.tables]

    def _changes(self, table: int, seq: Int64Array, before: Int64Array, after: Int64Array) -> TableChanges:
        had, has = before != _NONE, after != _NONE
        return TableChanges(
            self.schema.tables[table].name, seq, had, self._rows(table, before, had), has, self._rows(table, after, has)
        )

    def _rows(self, table: int, image: Int64Array, is_there: BoolArray) -> pa.RecordBatch:
        """Rows by their images, nulls where there is none."""
        known, named = self.scene.tables[table], self.schema.tables[table]
        columns = {name: known.links[image, i] for i, name in enumerate(named.links)}
        columns |= {named.key: known.key[image], named.value: known.value[image]}
        note = pa.array([repeated(f"{named.name}, ", self.scene.payloads[table]), None])
        schema = self.catalog.table(named.name).schema
        arrays = [
            note.take(pa.array(np.where(is_there, 0, 1))) if name == "note" else pa.array(columns[name], mask=~is_there)
            for name in schema.names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _previous_images(images: Images) -> Int64Array:
    """The image each replaces: the last before it with the same key."""
    order = np.argsort(images.key, kind="stable")
    is_next = images.key[order[1:]] == images.key[order[:-1]]
    previous = np.full(len(images), _NONE, np.int64)
    previous[order[1:][is_next]] = order[:-1][is_next]
    return previous
