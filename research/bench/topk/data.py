"""A top-k scene as the pipeline sees it: a catalog, subscriptions as points, changes to rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from research.bench.dataset import BATCH, Dataset, starts
from research.servers.changes import ChangeBatch
from research.workloads.topk.cases import UNIFORM
from research.workloads.topk.scene import Scene, scene_of
from research.workloads.topk.table import ITEMS
from tidings.families.topk.subscription import Space, space_of
from tidings.model.change import Op
from tidings.model.codes import Int64Array, codes_of_doubles
from tidings.workloads.draws import FloatArray


@dataclass(frozen=True)
class TopkData(Dataset):
    """Subscriptions are all there from the start. The first changes insert the rows."""

    scene: Scene
    seed: int
    catalog_sql: str = ITEMS.catalog_sql

    @staticmethod
    def make(size: int, changes: int, seed: int, rows: int = BATCH) -> TopkData:
        """Rows and ranges anywhere, scores that jump; `changes` come after the rows."""
        return TopkData(scene_of(UNIFORM, seed=seed, rows=rows, subscriptions=size, changes=changes), seed)

    @property
    def size(self) -> int:
        return self.scene.size

    @cached_property
    def space(self) -> Space:
        return space_of(self.form, self.catalog)

    def sql(self, i: int) -> str:
        low, high = self.scene.ranges[i].tolist()
        return ITEMS.sql(low, high, self.scene.k)

    def coords(self) -> Int64Array:
        """(low, high)"""
        return codes_of_doubles(self.scene.ranges)

    def inserts(self) -> Iterator[ChangeBatch]:
        for start, stop in starts(self.scene.rows):
            row = np.arange(start, stop)
            yield self.batch(ITEMS.name, Op.INSERT, start, self.columns(row, self.scene.score[row]))

    def updates(self) -> Iterator[ChangeBatch]:
        scene = self.scene
        for start, stop in starts(scene.changes):
            columns = self.columns(scene.changed[start:stop], scene.new_score[start:stop])
            yield self.batch(ITEMS.name, Op.UPDATE, scene.rows + start, columns)

    def stream(self, changes: int, at_a_time: int) -> Iterator[ChangeBatch]:
        rows = min(at_a_time, self.scene.rows)
        data = TopkData.make(0, changes - rows, self.seed, rows)
        yield from data.inserts()
        yield from data.updates()

    def columns(self, row: Int64Array, score: FloatArray) -> list[pa.Array]:
        """Of rows with these scores."""
        return [pa.array(row), pa.array(self.scene.place[row]), pa.array(score)]
