"""The offers family: publications and subscriptions are both constraints, and match where they meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tidings.families.offers import subscription
from tidings.families.offers.constraint import packed
from tidings.families.offers.explain import OffersExplanation
from tidings.families.offers.reference import OffersReference
from tidings.families.optional import (
    Disjunctive,
    Objecting,
    Objection,
    Publishing,
    Regional,
    RegionSpace,
    SpacePoints,
)
from tidings.families.protocols import Family
from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog, Table
from tidings.model.codes import Int64Array
from tidings.model.points import Placement, PointBatch
from tidings.model.region import Regions
from tidings.sql.conditions import ConditionCompiler
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store


class OffersFamily(Family, Disjunctive, Objecting, Publishing, Regional):
    name = "offers"
    reference = OffersReference()
    explanation = OffersExplanation()

    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        return len(shape.tables) == 1 and catalog.table(shape.tables[0]).has_constraints

    def serves_disjuncts(self, shape: Shape) -> bool:
        return True

    def objection(self, shape: Shape, catalog: Catalog) -> Objection | None:
        return subscription.objection(shape, catalog)

    def place(self, shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
        return subscription.place(shape, constants, catalog)

    def compiler(self, table: Table, catalog: Catalog) -> Callable[[str], bytes]:
        conditions = ConditionCompiler(catalog, table)

        def compiled(text: str) -> bytes:
            statement = conditions.compile(text)
            return packed(statement.shape, statement.constants, table)[0]

        return compiled

    def spec(self, form: Form, catalog: Catalog) -> FormSpec:
        return subscription.spec_of(form, catalog)

    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        from tidings.families.offers.evaluator import OffersEvaluator

        return OffersEvaluator(catalog, store)

    def is_regional(self, form: Form) -> bool:
        return form.variant != subscription.SEVERAL and form.shape.order is None

    def in_space(self, points: PointBatch, catalog: Catalog) -> list[SpacePoints]:
        # Imported here because compiled kernels take a second to import.
        from tidings.families.offers import regions

        return regions.in_space(points, catalog)

    def regions(self, space: RegionSpace, store: Store, versions: Int64Array) -> Regions:
        from tidings.families.offers import regions

        return regions.regions(space, store, versions)
