"""The offers family: publications and subscriptions are both constraints, and match where they meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tidings.families.offers import subscription
from tidings.families.offers.constraint import packed
from tidings.families.offers.explain import OffersExplanation
from tidings.families.offers.reference import OffersReference
from tidings.families.optional import Disjunctive, Evaluating, Gathering, Objecting, Objection, Publishing
from tidings.families.protocols import Family, Server
from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog, Table
from tidings.model.points import Placement, PointBatch
from tidings.sql.conditions import ConditionCompiler
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store


class OffersFamily(Family, Disjunctive, Evaluating, Gathering, Objecting, Publishing):
    name = "offers"
    placed_tag = 2
    strategies = ("region",)
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

    def gathered(self, points: PointBatch, catalog: Catalog) -> list[PointBatch]:
        return subscription.gathered(points, catalog)

    def compiler(self, table: Table, catalog: Catalog) -> Callable[[str], bytes]:
        conditions = ConditionCompiler(catalog, table)

        def compiled(text: str) -> bytes:
            statement = conditions.compile(text)
            return packed(statement.shape, statement.constants, table)[0]

        return compiled

    def spec(self, form: Form, catalog: Catalog) -> FormSpec:
        return subscription.spec_of(form, catalog)

    def own_server(self, form: Form, catalog: Catalog, strategy: str) -> Server:
        from tidings.families.offers.strategies import RegionServer

        return RegionServer(catalog)

    def evaluates(self, form: Form) -> bool:
        return True

    def needs_shared_rows(self, form: Form) -> bool:
        return form.variant == subscription.SEVERAL or form.shape.order is not None

    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        from tidings.families.offers.evaluator import OffersEvaluator

        return OffersEvaluator(catalog, store)
