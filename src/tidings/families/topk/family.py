"""The top-k family: the first rows by a ranking column, within ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.families.optional import Objecting, Objection
from tidings.families.protocols import Family
from tidings.families.spec import Form, FormSpec
from tidings.families.topk import subscription
from tidings.families.topk.explain import TopkExplanation
from tidings.families.topk.reference import TopkReference
from tidings.model.catalog import Catalog
from tidings.model.points import Placement
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store


class TopkFamily(Family, Objecting):
    name = "topk"
    reference = TopkReference()
    explanation = TopkExplanation()

    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        is_plain = len(shape.tables) == 1 and shape.order is not None and shape.movement is None
        return is_plain and catalog.table(shape.tables[0]).rows == "values"

    def objection(self, shape: Shape, catalog: Catalog) -> Objection | None:
        return subscription.objection(shape, catalog)

    def place(self, shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
        return subscription.place(shape, constants, catalog)

    def spec(self, form: Form, catalog: Catalog) -> FormSpec:
        return subscription.spec_of(form, catalog)

    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        from tidings.families.topk.evaluator import TopkEvaluator

        return TopkEvaluator(catalog, store)
