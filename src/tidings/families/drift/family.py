"""The drift family: a row is told again when its value has moved far enough from the one last told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.families.drift import subscription
from tidings.families.drift.explain import DriftExplanation
from tidings.families.drift.reference import DriftReference
from tidings.families.optional import Objecting, Objection, Trace, Tracing
from tidings.families.protocols import Family
from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog
from tidings.model.points import Placement
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store


class DriftFamily(Family, Objecting, Tracing):
    name = "drift"
    reference = DriftReference()
    explanation = DriftExplanation()

    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        is_plain = len(shape.tables) == 1 and shape.order is None and shape.movement is not None
        return is_plain and catalog.table(shape.tables[0]).rows == "values"

    def objection(self, shape: Shape, catalog: Catalog) -> Objection | None:
        return subscription.objection(shape, catalog)

    def place(self, shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
        return subscription.place(shape, constants, catalog)

    def spec(self, form: Form, catalog: Catalog) -> FormSpec:
        return subscription.spec_of(form, catalog)

    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        from tidings.families.drift.evaluator import DriftEvaluator

        return DriftEvaluator(catalog, store)

    def trace(self, shape: Shape, constants: Constants, catalog: Catalog, born: int) -> Trace:
        from tidings.families.drift.trace import DriftTrace

        return DriftTrace(shape, constants, catalog.table(shape.tables[0]), born)
