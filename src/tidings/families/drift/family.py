"""The drift family: a row is told again when its value has moved far enough from the one last told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidings.families.base import Family, Form, Objection, Partition, PlainTables, Server, Trace, Views
from tidings.families.drift import reference, subscription
from tidings.model.catalog import Catalog
from tidings.model.codes import value_of
from tidings.model.points import Placement
from tidings.model.types import ColumnType
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store


class DriftFamily(Family):
    name = "drift"
    strategies = ("region", "scan", "unicast", "relax")
    partition = Partition.ROW
    summary = "rows told again when a value has moved: SELECT .. FROM t WHERE key = x AND moved_percent(a) >= 5"

    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        is_plain = len(shape.tables) == 1 and shape.order is None and shape.movement is not None
        return is_plain and catalog.table(shape.tables[0]).rows == "values"

    def objection(self, shape: Shape, catalog: Catalog) -> Objection | None:
        return subscription.objection(shape, catalog)

    def place(self, shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
        return subscription.place(shape, constants, catalog)

    def dims(self, form: Form) -> int:
        return subscription.DIMS

    def channel_types(self, form: Form, catalog: Catalog) -> tuple[pa.DataType, ...]:
        return subscription.space_of(form, catalog).channel_types

    def follows_rows(self, form: Form, catalog: Catalog) -> bool:
        return subscription.space_of(form, catalog).follows_one_row

    def cuts(self, form: Form) -> Sequence[bool]:
        # Labels are chosen by the server. A snapshot of several rows needs all points of its subscription.
        has_one_channel = form.variant != subscription.SEVERAL_CHANNELS
        return (has_one_channel, has_one_channel, False)

    def server(self, form: Form, catalog: Catalog, strategy: str) -> Server:
        # Imported here because compiled kernels take a second to import, and only servers need them.
        from tidings.families.drift.strategies import RegionServer, RelaxServer, ScanServer, UnicastServer

        servers = {"region": RegionServer, "scan": ScanServer, "unicast": UnicastServer, "relax": RelaxServer}
        return servers[strategy](subscription.space_of(form, catalog))

    def evaluates(self, form: Form) -> bool:
        return True

    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        from tidings.families.drift.evaluator import DriftEvaluator

        return DriftEvaluator(catalog, store)

    def views(self, form: Form, catalog: Catalog) -> Views:
        from tidings.families.drift.view import DriftViews

        return DriftViews(subscription.space_of(form, catalog))

    def hold(self, shape: Shape, constants: Constants, catalog: Catalog, tables: PlainTables, held: Any) -> Any:
        table = catalog.table(shape.tables[0])
        return reference.hold(shape, constants, table, tables[table.name], held)

    def answer(
        self, shape: Shape, constants: Constants, catalog: Catalog, tables: PlainTables, held: Any
    ) -> list[dict[str, Any]]:
        return reference.answer(shape, held)

    def trace(self, shape: Shape, constants: Constants, catalog: Catalog, born: int) -> Trace:
        from tidings.families.drift.trace import DriftTrace

        return DriftTrace(shape, constants, catalog.table(shape.tables[0]), born)

    def explain(self, form: Form, placement: Placement, catalog: Catalog, strategy: str) -> Sequence[tuple[str, str]]:
        space = subscription.space_of(form, catalog)
        radius = value_of(ColumnType.DOUBLE, placement.coords[0])
        label = "chosen by the server" if space.follows_one_row or strategy != "region" else "its birth"
        costs = {
            "region": "1 message to a few ranges of radii and labels, however many subscriptions it concerns",
            "scan": "the same message, found by comparing with every subscription of the row",
            "unicast": "1 message per affected subscription, found by the ends of their intervals",
            "relax": "1 message to everyone who follows the row, whether it concerns them or not",
        }
        return [("point", f"(radius = {radius}, label {label})"), ("a change costs", costs[strategy])]
