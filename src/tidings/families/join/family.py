"""The join family: rows of several tables that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidings.families.base import Family, Form, Partition, PlainTables, Server, Views
from tidings.families.join import choice, explanation, reference, subscription
from tidings.families.join.result import shown_columns, shown_names
from tidings.model.catalog import Catalog
from tidings.model.codes import value_of
from tidings.model.message import MessageBatch
from tidings.model.points import Placement
from tidings.sql.constants import Constants
from tidings.sql.shape import ColumnRef, Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store


class JoinFamily(Family):
    name = "join"
    strategies = choice.NAMES
    partition = Partition.VALUE
    summary = "rows of several tables that belong together: SELECT .. FROM t JOIN u USING (a) WHERE b BETWEEN x AND y"

    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        is_plain = len(shape.tables) > 1 and shape.order is None and shape.movement is None
        return is_plain and all(catalog.table(table).rows == "values" for table in shape.tables)

    def place(self, shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
        return subscription.place(shape, constants, catalog)

    def dims(self, form: Form) -> int:
        return 2 * len(subscription.predicates_of(form.shape))

    def channel_types(self, form: Form, catalog: Catalog) -> tuple[pa.DataType, ...]:
        return ()

    def partition_columns(self, form: Form) -> dict[str, tuple[str, ...]]:
        return subscription.common_columns(form.shape)

    def server(self, form: Form, catalog: Catalog, strategy: str) -> Server:
        # Imported here because compiled kernels take a second to import, and only servers need them.
        from tidings.families.join.strategies import server_of

        return server_of(catalog, strategy)

    def shares_server(self, strategy: str) -> bool:
        return choice.is_shared(strategy)

    def gathers(self, form: Form, *, is_spread: bool) -> str:
        return subscription.center_of(form.shape) if is_spread else ""

    def heard(self, form: Form, messages: MessageBatch, catalog: Catalog) -> MessageBatch:
        from tidings.families.join.circle import heard

        return heard(form, messages, catalog)

    def shown(self, shape: Shape, catalog: Catalog) -> Sequence[tuple[ColumnRef, str]]:
        columns = shown_columns(shape, catalog)
        return list(zip(columns, shown_names(columns), strict=True))

    def evaluates(self, form: Form) -> bool:
        return True

    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        from tidings.families.join.evaluator import JoinEvaluator

        return JoinEvaluator(catalog, store)

    def views(self, form: Form, catalog: Catalog) -> Views:
        from tidings.families.join.view import JoinViews

        return JoinViews(subscription.space_of(form, catalog))

    def answer(
        self, shape: Shape, constants: Constants, catalog: Catalog, tables: PlainTables, held: Any
    ) -> list[dict[str, Any]]:
        return reference.answer(shape, constants, catalog, tables)

    def explain(self, form: Form, placement: Placement, catalog: Catalog, strategy: str) -> Sequence[tuple[str, str]]:
        ends = []
        for i, ref in enumerate(subscription.predicates_of(form.shape)):
            type = catalog.table(ref.table).column(ref.column).type
            low, high = (value_of(type, code) for code in placement.coords[2 * i : 2 * i + 2])
            ends.append(f"{ref.table}.{ref.column} in [{low}, {high}]")
        return [
            ("point", ", ".join(ends) or "the one point that holds everything"),
            *explanation.lines(subscription.space_of(form, catalog), strategy),
        ]
