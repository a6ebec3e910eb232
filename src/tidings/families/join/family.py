"""The join family: rows of several tables that belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.families.join import subscription
from tidings.families.join.explain import JoinExplanation
from tidings.families.join.reference import JoinReference
from tidings.families.optional import Disjunctive
from tidings.families.protocols import Family
from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog
from tidings.model.points import Placement
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store


class JoinFamily(Family, Disjunctive):
    name = "join"
    reference = JoinReference()
    explanation = JoinExplanation()

    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        is_plain = len(shape.tables) > 1 and shape.order is None and shape.movement is None
        return is_plain and all(catalog.table(table).rows == "values" for table in shape.tables)

    def place(self, shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
        return subscription.place(shape, constants, catalog)

    def spec(self, form: Form, catalog: Catalog) -> FormSpec:
        return subscription.spec_of(form, catalog)

    def serves_disjuncts(self, shape: Shape) -> bool:
        return True

    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        from tidings.families.join.evaluator import JoinEvaluator

        return JoinEvaluator(catalog, store)
