"""Two range columns on S (appendix C): regions by both, or by one of them and the other left to subscribers.

Insertions into R show skylines. Insertions into S bring rows of R late, to those who had no partner for them: by the region of
these, by the smallest box around it, and how many there are.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from research.experiments.join.outcome import Totals, per_change, totals
from research.experiments.join.subscribers import Subscribers
from research.experiments.paper import Config, Rows, Say
from research.servers.changes import null_rows
from research.servers.protocols import Server
from research.strategies.join.kernels.cover import holding
from research.strategies.join.space import space_of
from research.workloads.join.binary import C_VALUES, SIGMA_A, SIGMA_C, BinaryCase, BinaryScene
from research.workloads.join.draws import HotRanges, HotSpots, widths
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.codes import codes_of_doubles
from tidings.model.points import Event, PointBatch
from tidings.model.region import Regions
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog
from tidings.workloads.draws import FloatArray

TABLES = """
CREATE TABLE r (id BIGINT PRIMARY KEY, b BIGINT, a DOUBLE);
CREATE TABLE s (id BIGINT PRIMARY KEY, b BIGINT, c DOUBLE, d DOUBLE);
"""
_SQL = "SELECT * FROM r JOIN s ON r.b = s.b WHERE r.a BETWEEN 0 AND 1 AND s.c BETWEEN 0 AND 1"
_SQLS = {1: _SQL, 2: f"{_SQL} AND s.d BETWEEN 0 AND 1"}
"""By the range columns that regions go by."""


@dataclass(frozen=True)
class Scene:
    """A binary scene with a second column on S, `d`, drawn as the first is."""

    base: BinaryScene
    d: FloatArray
    """[S rows]"""
    ranges: FloatArray
    """[subscriptions, 6]: ends on a, c and d."""
    s_size: int
    """S rows at the start; the others are inserted."""

    @staticmethod
    def make(config: Config, seed: int) -> Scene:
        inserted, late, size = config["insertions"], config["late"], config["subscriptions"]
        case = BinaryCase(s_size=config["s_size"] + late)
        scene = case.scene(seed=seed, subscriptions=size, changes=2 * inserted)
        wide = widths(config["width"])
        a = HotRanges(HotSpots(SIGMA_A), case.width_a).draw([seed, 4], size)
        c, d = (HotRanges(HotSpots(SIGMA_C), wide).draw([seed, key], size) for key in (5, 7))
        values = C_VALUES.draw([seed, 8], len(scene.s_b))
        return Scene(scene, values, np.concatenate([a, c, d], axis=1), len(scene.s_b) - late)

    @cached_property
    def catalog(self) -> Catalog:
        return parse_catalog(TABLES)

    def points(self, columns: int) -> PointBatch:
        form = Form.from_key(Door(self.catalog).place(_SQLS[columns]).form)
        ends = {"r.a": 0, "s.c": 2, "s.d": 4}
        sides = space_of(form, self.catalog).sides
        own = [
            ends[f"{side.table.name}.{column.name}"] + end
            for side in sides
            for column in side.columns
            for end in (0, 1)
        ]
        count = len(self.ranges)
        return PointBatch(
            form.key,
            np.full(count, Event.CREATE, np.int8),
            np.zeros(count, np.int64),
            np.arange(count),
            pa.array([f"s{i}" for i in range(count)], pa.string()),
            (),
            codes_of_doubles(np.ascontiguousarray(self.ranges[:, own])),
            np.ones(count, np.bool_),
            pa.array([b""] * count, pa.binary()),
        )

    def inserts(self, table: str, start: int, stop: int) -> TableChanges:
        base = self.base
        columns = (base.r_b, base.r_a) if table == "r" else (base.s_b, base.s_c, self.d)
        arrays = [pa.array(np.arange(start, stop)), *(pa.array(column[start:stop]) for column in columns)]
        rows = pa.RecordBatch.from_arrays(arrays, schema=self.catalog.table(table).schema)
        is_there = np.ones(stop - start, np.bool_)
        return TableChanges(table, np.arange(start, stop) + 1, ~is_there, null_rows(rows), is_there, rows)

    def needed(self, new: int) -> int:
        """Rows of R, at the start, that a new S row brings to subscriptions without another partner for them."""
        base = self.base
        ranges, old = self.ranges[:, 2:], np.flatnonzero(base.s_b[:new] == base.s_b[new])
        at = np.array([[base.s_c[new], self.d[new]]])
        is_only = holding(codes_of_doubles(ranges), codes_of_doubles(at))
        others = np.stack([base.s_c[old], self.d[old]], axis=1)
        is_only &= ~holding(codes_of_doubles(ranges), codes_of_doubles(others))
        waiting = np.sort(base.r_a[: base.r_size][base.r_b[: base.r_size] == base.s_b[new]])
        lo, hi = self.ranges[is_only, 0], self.ranges[is_only, 1]
        return int((np.searchsorted(waiting, hi, "right") - np.searchsorted(waiting, lo)).sum())


def run_columns(config: Config, seed: int, say: Say) -> Rows:
    rows: Rows = []
    scene = Scene.make(config, seed)
    first = scene.s_size
    needed = sum(map(scene.needed, range(first, first + config["late"])))
    for columns in _SQLS:
        people = Subscribers(scene.catalog, [scene.points(columns)], "r")
        for strategy in config["strategies"]:
            say(f"{columns} columns, {strategy}")
            begin = [scene.inserts("s", 0, first), scene.inserts("r", 0, scene.base.r_size)]
            server = people.server(strategy, begin)
            late = _late(server, scene, people, config["late"])
            start, found = scene.base.r_size, Totals()
            begun = time.process_time()
            sent = list(server.change(scene.inserts("r", start, start + config["insertions"])))
            seconds = time.process_time() - begun
            found.update(totals(sent, "r", people))
            figures = per_change(found, config["insertions"]) | {"us": 1e6 * seconds / config["insertions"]}
            late = {name: count / config["late"] for name, count in late.items()} | {
                "late_needed": needed / config["late"]
            }
            rows.append({"columns": columns, "strategy": strategy, **figures, **late})
    return rows


def _late(server: Server, scene: Scene, people: Subscribers, count: int) -> dict[str, int]:
    """Rows of R that new S rows bring to subscriptions, in all."""
    told = boxed = 0
    for new in range(scene.s_size, scene.s_size + count):
        for messages in server.change(scene.inserts("s", new, new + 1)):
            if Form.from_key(messages.form).variant == "r" and len(messages):
                told += int(people.reach(messages).deliveries.sum())
                boxed += int(people.reach(replace(messages, regions=_around(messages.regions))).deliveries.sum())
    return {"late_told": told, "late_boxed": boxed}


def _around(regions: Regions) -> Regions:
    """The smallest box around each region."""
    first = regions.starts[:-1]
    lo, hi = np.minimum.reduceat(regions.lo, first), np.maximum.reduceat(regions.hi, first)
    return Regions(lo, hi, regions.tags[first], np.arange(len(regions) + 1))
