"""The top-k family: the first rows by a ranking column, within ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidings.families.base import Family, Form, Objection, Partition, PlainTables, Server, Views
from tidings.families.topk import choice, reference, subscription
from tidings.model.catalog import Catalog
from tidings.model.codes import value_of
from tidings.model.points import Placement
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store


class TopkFamily(Family):
    name = "topk"
    strategies = choice.NAMES
    partition = Partition.VALUE
    summary = "the first k rows within a range: SELECT .. FROM t WHERE a BETWEEN x AND y ORDER BY b LIMIT k"

    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        is_plain = len(shape.tables) == 1 and shape.order is not None and shape.movement is None
        return is_plain and catalog.table(shape.tables[0]).rows == "values"

    def objection(self, shape: Shape, catalog: Catalog) -> Objection | None:
        return subscription.objection(shape, catalog)

    def has_strategy(self, name: str) -> bool:
        return choice.read(name) is not None

    def place(self, shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
        return subscription.place(shape, constants, catalog)

    def dims(self, form: Form) -> int:
        return 2 * max(1, len(form.shape.ranges))

    def channel_types(self, form: Form, catalog: Catalog) -> tuple[pa.DataType, ...]:
        return subscription.space_of(form, catalog).channel_types

    def partition_columns(self, form: Form) -> dict[str, tuple[str, ...]]:
        return {form.shape.tables[0]: tuple(ref.column for ref in form.shape.equalities)}

    def cuts(self, form: Form) -> Sequence[bool] | None:
        # A subscription on several channels shows the first rows of all of them.
        return (False,) * (1 + self.dims(form)) if subscription.has_several_channels(form) else None

    def net(self, form: Form) -> Form | None:
        return subscription.net(form)

    def server(self, form: Form, catalog: Catalog, strategy: str) -> Server:
        # Imported here because compiled kernels take a second to import, and only servers need them.
        if len(form.shape.ranges) > 1:
            from tidings.families.topk.several import SeveralRangesServer

            return SeveralRangesServer(subscription.space_of(form, catalog))
        from tidings.families.topk import net, strategies

        space = subscription.space_of(form, catalog)
        chosen = choice.read(strategy)
        assert chosen is not None
        if space.is_net:
            return net.NetServer(space)
        groups = chosen.groups(space.k)
        if chosen.kind == "sparse":
            return strategies.SparseServer(space, groups)
        if groups is not None:
            return strategies.RoundedServer(space, groups)
        plain: dict[str, type[strategies.DenseServer]]
        plain = {"dense": strategies.DenseServer, "unicast": strategies.UnicastServer, "relax": strategies.RelaxServer}
        return plain[chosen.kind](space)

    def evaluates(self, form: Form) -> bool:
        return subscription.NET not in form.variant.split(",")

    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        from tidings.families.topk.evaluator import TopkEvaluator

        return TopkEvaluator(catalog, store)

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
        if len(space.ranges) > 1:
            return _explain_several(space, placement)
        if space.range is None:
            point = "the one point that holds all rows of its channel"
        else:
            low, high = (value_of(space.range.type, code) for code in placement.coords)
            point = f"(l = {low}, r = {high}) in the plane of ranges of {space.range.name}"
        cost = f"up to {space.k} tiles of the plane, and some for every row that takes the place of one that falls"
        return [("point", point), ("a change costs", cost)]


def _explain_several(space: subscription.Space, placement: Placement) -> Sequence[tuple[str, str]]:
    ends = zip(space.ranges, placement.coords[::2], placement.coords[1::2], strict=True)
    named = [f"{column.name}: {value_of(column.type, lo)} .. {value_of(column.type, hi)}" for column, lo, hi in ends]
    cost = "a message for the row and one for every row that takes its place; work for each subscription affected"
    return [
        ("point", f"({', '.join(named)}) in the space of {len(named)} ranges"),
        ("a change costs", cost),
        ("several ranges", "are served in one way, whatever the strategy"),
    ]
