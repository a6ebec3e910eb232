"""The select family: rows of one table that satisfy a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.families.optional import Disjunctive, Evaluating
from tidings.families.protocols import Family, Server, Views
from tidings.families.select import subscription
from tidings.families.select.bulky_view import BulkyViews
from tidings.families.select.explain import SelectExplanation
from tidings.families.select.reference import SelectReference
from tidings.families.select.strategies import RegionServer, ScanServer, UnicastServer, WholeServer
from tidings.families.select.view import SelectViews
from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog
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


class SelectFamily(Family, Disjunctive, Evaluating):
    name = "select"
    strategies = tuple(_SERVERS)
    reference = SelectReference()
    explanation = SelectExplanation()

    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        is_plain = len(shape.tables) == 1 and shape.order is None and shape.movement is None
        return is_plain and catalog.table(shape.tables[0]).rows == "values"

    def place(self, shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
        return subscription.place(shape, constants, catalog)

    def spec(self, form: Form, catalog: Catalog) -> FormSpec:
        return subscription.spec_of(form, catalog)

    def server(self, form: Form, catalog: Catalog, strategy: str) -> Server:
        space = subscription.space_of(form, catalog)
        if strategy == "region" and not space.bulky:
            return WholeServer(space)
        return _SERVERS[strategy](space)

    def views(self, form: Form, catalog: Catalog) -> Views:
        space = subscription.space_of(form, catalog)
        return BulkyViews(space) if space.bulky else SelectViews(space)

    def serves_disjuncts(self, shape: Shape) -> bool:
        return True

    def evaluates(self, form: Form) -> bool:
        return True

    def needs_shared_rows(self, form: Form) -> bool:
        return bool(form.shape.nulls) or subscription.is_disjunct(form)

    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        from tidings.families.select.evaluator import SelectEvaluator

        return SelectEvaluator(catalog, store)
