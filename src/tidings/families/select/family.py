"""The select family: rows that satisfy a conjunction of ranges and equalities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidings.families.base import Family, Form, Partition, PlainTables, Server, Views
from tidings.families.select import subscription
from tidings.families.select.bulky_view import BulkyViews
from tidings.families.select.reference import answer
from tidings.families.select.slim import LONG_BYTES_MIN
from tidings.families.select.strategies import RegionServer, ScanServer, UnicastServer, WholeServer
from tidings.families.select.view import SelectViews
from tidings.model.catalog import Catalog
from tidings.model.codes import value_of
from tidings.model.points import Placement
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store

_SERVERS: dict[str, type[WholeServer]] = {
    "region": RegionServer,
    "unicast": UnicastServer,
    "scan": ScanServer,
    "whole": WholeServer,
}


class SelectFamily(Family):
    name = "select"
    strategies = tuple(_SERVERS)
    partition = Partition.ROW
    summary = "rows of one table within ranges: SELECT .. FROM t WHERE a = x AND b BETWEEN y AND z"

    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        is_plain = len(shape.tables) == 1 and shape.order is None and shape.movement is None
        return is_plain and catalog.table(shape.tables[0]).rows == "values"

    def place(self, shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
        return subscription.place(shape, constants, catalog)

    def dims(self, form: Form) -> int:
        return 2 * len(form.shape.ranges)

    def channel_types(self, form: Form, catalog: Catalog) -> tuple[pa.DataType, ...]:
        return subscription.space_of(form, catalog).channel_types

    def server(self, form: Form, catalog: Catalog, strategy: str) -> Server:
        space = subscription.space_of(form, catalog)
        if strategy == "region" and not space.bulky:
            return WholeServer(space)
        return _SERVERS[strategy](space)

    def evaluates(self, form: Form) -> bool:
        return True

    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        from tidings.families.select.evaluator import SelectEvaluator

        return SelectEvaluator(catalog, store)

    def views(self, form: Form, catalog: Catalog) -> Views:
        space = subscription.space_of(form, catalog)
        return BulkyViews(space) if space.bulky else SelectViews(space)

    def answer(
        self, shape: Shape, constants: Constants, catalog: Catalog, tables: PlainTables, held: Any
    ) -> list[dict[str, Any]]:
        return answer(shape, constants, tables[shape.tables[0]].values())

    def explain(self, form: Form, placement: Placement, catalog: Catalog, strategy: str) -> Sequence[tuple[str, str]]:
        space = subscription.space_of(form, catalog)
        names = [f"{end} {column.name}" for column in space.ranges for end in ("lo", "hi")]
        types = [column.type for column in space.ranges for _ in ("lo", "hi")]
        ends = zip(names, types, placement.coords, strict=True)
        point = ", ".join(f"{name} = {value_of(type, code)}" for name, type, code in ends)
        region = "1 message for this form (2 if an equality column changes), however many subscriptions it has"
        costs = {
            "region": region,
            "unicast": "1 message per affected subscription, found with an index",
            "scan": "1 message per affected subscription, found by comparing with every subscription",
            "whole": region,
        }
        lines = [("point", f"({point}) in {space.dims} dimensions"), ("a change costs", costs[strategy])]
        if space.bulky and strategy == "region":
            sent = f"{', '.join(space.bulky)}: {LONG_BYTES_MIN} bytes or more are sent only to those who do not have them yet"
            lines.append(("long values", sent))
        return lines
