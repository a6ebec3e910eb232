"""A server of joins with subscriptions, and whom it tells what: messages, boxes of their regions, and rows to be held."""

from __future__ import annotations

import json
from collections import Counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from research.servers.forms import gathered, project_all
from research.strategies.join.payload import PLACED, SIDE
from research.strategies.join.servers import server_of
from research.strategies.join.space import space_of
from tidings.families.spec import Form
from tidings.model.change import TableChanges
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog


class Told(NamedTuple):
    messages: Counter[str]
    """By table of the row."""
    boxes: Counter[str]
    rows: list[tuple[str, int, int]]
    """(table, key, subscription) of all rows that subscriptions are to hold."""

    def who(self, table: str) -> list[int]:
        """The subscriptions that are told rows of a table."""
        return sorted(number for name, _, number in self.rows if name == table)


class JoinTold:
    """Subscriptions are numbered; the key of every table is one integer, `id`."""

    def __init__(self, tables: str, strategy: str, subscriptions: list[str]) -> None:
        self.catalog, self._clock = parse_catalog(tables), 0
        self._server = server_of(self.catalog, strategy)
        door = Door(self.catalog)
        door.read(json.dumps({"id": str(i), "sql": sql}).encode() for i, sql in enumerate(subscriptions))
        self._points = {}
        for points in gathered(door.take(), self.catalog):
            self._server.create(points, {}, wants_snapshots=False)
            known = zip(map(int, points.id.to_pylist()), points.coords.tolist(), strict=True)
            self._points.setdefault(points.form, {}).update(known)

    def put(self, table: str, rows: list[dict[str, int]], old: list[dict[str, int]] | None = None) -> Told:
        """What is sent for rows that are put in at once, in place of others if these are given."""
        schema = self.catalog.table(table).schema
        after = pa.RecordBatch.from_pylist(rows, schema)
        before = pa.RecordBatch.from_pylist(old or [dict.fromkeys(schema.names)] * len(rows), schema)
        had, has = np.full(len(rows), old is not None), np.ones(len(rows), np.bool_)
        self._clock += 1
        changes = TableChanges(table, np.full(len(rows), self._clock), had, before, has, after)
        told = Told(Counter(), Counter(), [])
        for own in (own for some in self._server.change(changes) for own in project_all(some, self.catalog)):
            space = space_of(Form.from_key(own.form), self.catalog)
            for i, number in enumerate(own.payload.column(SIDE).to_pylist()):
                name = space.sides[number].table.name
                told.messages[name] += 1
                told.boxes[name] += int(np.diff(own.regions.starts)[i])
                key = own.payload.column(f"{number}.id")[i].as_py()
                target = None if own.target is None else int(own.target[i].as_py())
                told.rows.extend(
                    (name, key, who)
                    for who, point in self._points[own.form].items()
                    if target in (None, who) and own.regions.contains(i, point) & PLACED
                )
        return told
