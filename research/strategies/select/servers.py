"""Baselines of select: `scan` and `unicast` send a message to each subscription that a change concerns.

`unicast` finds them with an index, `scan` by comparing with every point.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from research.servers.message import MessageBatch
from research.servers.protocols import ColumnarRows, Created, Memory
from research.servers.space import ServedSpace, places
from research.strategies.select.region_server import RegionServer
from research.strategies.select.table_form import TableSpace, table_space
from research.strategies.targets import IndexedTargets, Targets
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.points import PointBatch
from tidings.model.region import Regions


class ScanServer(RegionServer):
    """Unicast messages to all points in a change's region, found by a scan of all points."""

    memory = Memory.POINTS

    def __init__(self, space: TableSpace) -> None:
        super().__init__(space)
        self._points = ServedSpace(space.axes(space.comparable))
        self._targets: Targets = Targets(self._points.dims)

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        for messages in super().change(changes):
            yield from self._addressed(messages)

    def create(self, points: PointBatch, tables: dict[str, ColumnarRows], *, wants_snapshots: bool) -> Created:
        self._targets.add(points)
        return super().create(points, tables, wants_snapshots=wants_snapshots)

    def drop(self, points: PointBatch) -> None:
        super().drop(points)
        self._targets.remove(points)

    def dump(self) -> Any:
        return {"columns": super().dump(), "targets": self._targets.dump(())}

    def load(self, state: Any) -> None:
        super().load(state["columns"])
        self._targets.load(state["targets"])

    def _addressed(self, messages: MessageBatch) -> Iterable[MessageBatch]:
        whole = replace(messages, regions=self._points.read(messages.regions, messages.axes))
        addressed = self._targets.address(whole)
        if addressed is None:
            return []
        points = addressed.regions
        at = places(self._points.axes, messages.axes)
        return [replace(addressed, regions=Regions(points.lo[:, at], points.hi[:, at], points.tags, points.starts))]


class UnicastServer(ScanServer):
    """Unicast messages to all points in a change's region, found with an index."""

    def __init__(self, space: TableSpace) -> None:
        super().__init__(space)
        self._targets = IndexedTargets(self._points.dims)


def scan(form: Form, catalog: Catalog) -> ScanServer:
    return ScanServer(table_space(catalog.table(form.shape.tables[0])))


def unicast(form: Form, catalog: Catalog) -> UnicastServer:
    return UnicastServer(table_space(catalog.table(form.shape.tables[0])))
