"""The select family: rows of one table that satisfy a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.families.optional import Disjunctive, Regional, RegionSpace, SpacePoints
from tidings.families.protocols import Family
from tidings.families.select import subscription
from tidings.families.select.explain import SelectExplanation
from tidings.families.select.reference import SelectReference
from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog
from tidings.model.codes import Int64Array
from tidings.model.points import Placement, PointBatch
from tidings.model.region import Regions
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store


class SelectFamily(Family, Disjunctive, Regional):
    name = "select"
    reference = SelectReference()
    explanation = SelectExplanation()

    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        is_plain = len(shape.tables) == 1 and shape.order is None and shape.movement is None
        return is_plain and catalog.table(shape.tables[0]).rows == "values"

    def place(self, shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
        return subscription.place(shape, constants, catalog)

    def spec(self, form: Form, catalog: Catalog) -> FormSpec:
        return subscription.spec_of(form, catalog)

    def serves_disjuncts(self, shape: Shape) -> bool:
        return True

    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        from tidings.families.select.evaluator import SelectEvaluator

        return SelectEvaluator(catalog, store)

    def is_regional(self, form: Form) -> bool:
        return not form.shape.nulls and not subscription.is_disjunct(form)

    def in_space(self, points: PointBatch, catalog: Catalog) -> list[SpacePoints]:
        # Imported here because compiled kernels take a second to import.
        from tidings.families.select import regions

        return [regions.in_space(points, catalog)]

    def regions(self, space: RegionSpace, store: Store, versions: Int64Array) -> Regions:
        from tidings.families.select import regions

        return regions.regions(space, store, versions)
