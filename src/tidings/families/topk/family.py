"""The top-k family: the first rows by a ranking column, within a range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tidings.families.base import Family, Form, Objection, Partition, PlainTables, Server, Views
from tidings.families.topk import reference, subscription
from tidings.model.catalog import Catalog
from tidings.model.codes import value_of
from tidings.model.points import Placement
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape


class TopkFamily(Family):
    name = "topk"
    strategies = ("dense", "unicast", "relax")
    partition = Partition.VALUE
    summary = "the first k rows within a range: SELECT .. FROM t WHERE a BETWEEN x AND y ORDER BY b LIMIT k"

    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        is_plain = len(shape.tables) == 1 and shape.order is not None and shape.movement is None
        return is_plain and catalog.table(shape.tables[0]).rows == "values"

    def objection(self, shape: Shape, catalog: Catalog) -> Objection | None:
        return subscription.objection(shape, catalog)

    def place(self, shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
        return subscription.place(shape, constants, catalog)

    def dims(self, form: Form) -> int:
        return subscription.DIMS

    def channel_types(self, form: Form, catalog: Catalog) -> tuple[pa.DataType, ...]:
        return subscription.space_of(form, catalog).channel_types

    def partition_columns(self, form: Form) -> dict[str, tuple[str, ...]]:
        return {form.shape.tables[0]: tuple(ref.column for ref in form.shape.equalities)}

    def cuts(self, form: Form) -> Sequence[bool] | None:
        # A subscription on several channels shows the first rows of all of them.
        return (False, False, False) if form.variant == subscription.SEVERAL_CHANNELS else None

    def server(self, form: Form, catalog: Catalog, strategy: str) -> Server:
        # Imported here because compiled kernels take a second to import, and only servers need them.
        from tidings.families.topk.strategies import DenseServer, RelaxServer, UnicastServer

        servers = {"dense": DenseServer, "unicast": UnicastServer, "relax": RelaxServer}
        return servers[strategy](subscription.space_of(form, catalog))

    def views(self, form: Form, catalog: Catalog) -> Views:
        from tidings.families.topk.view import TopkViews

        return TopkViews(subscription.space_of(form, catalog))

    def answer(
        self, shape: Shape, constants: Constants, catalog: Catalog, tables: PlainTables, held: Any
    ) -> list[dict[str, Any]]:
        table = catalog.table(shape.tables[0])
        return reference.answer(shape, constants, table, tables[table.name].values())

    def explain(self, form: Form, placement: Placement, catalog: Catalog, strategy: str) -> Sequence[tuple[str, str]]:
        space = subscription.space_of(form, catalog)
        if space.range is None:
            point = "the one point that holds all rows of its channel"
        else:
            low, high = (value_of(space.range.type, code) for code in placement.coords)
            point = f"(l = {low}, r = {high}) in the plane of ranges of {space.range.name}"
        cost = f"up to {space.k} tiles of the plane, and some for every row that takes the place of one that falls"
        return [("point", point), ("a change costs", cost)]
