"""The select family: rows of one table that satisfy a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.families.optional import Disjunctive, Evaluating, Gathering
from tidings.families.protocols import Family, Server
from tidings.families.select import subscription, table_form
from tidings.families.select.explain import SelectExplanation
from tidings.families.select.reference import SelectReference
from tidings.families.select.reformulate import NEW
from tidings.families.select.strategies import RegionServer
from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog
from tidings.model.points import Placement, PointBatch
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store


class SelectFamily(Family, Disjunctive, Evaluating, Gathering):
    name = "select"
    strategies = ("region",)
    placed_tag = NEW
    reference = SelectReference()
    explanation = SelectExplanation()

    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        is_plain = len(shape.tables) == 1 and shape.order is None and shape.movement is None
        return is_plain and catalog.table(shape.tables[0]).rows == "values"

    def place(self, shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
        return subscription.place(shape, constants, catalog)

    def spec(self, form: Form, catalog: Catalog) -> FormSpec:
        is_table = form.variant == table_form.TABLE
        return table_form.table_spec(form, catalog) if is_table else subscription.spec_of(form, catalog)

    def gathered(self, points: PointBatch, catalog: Catalog) -> list[PointBatch]:
        is_gathered = Form.from_key(points.form).variant == table_form.TABLE
        return [points if is_gathered else table_form.gathered(points, catalog)]

    def own_server(self, form: Form, catalog: Catalog, strategy: str) -> Server:
        return RegionServer(_space(form, catalog))

    def serves_disjuncts(self, shape: Shape) -> bool:
        return True

    def evaluates(self, form: Form) -> bool:
        return True

    def needs_shared_rows(self, form: Form) -> bool:
        return bool(form.shape.nulls) or subscription.is_disjunct(form)

    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        from tidings.families.select.evaluator import SelectEvaluator

        return SelectEvaluator(catalog, store)


def _space(form: Form, catalog: Catalog) -> table_form.TableSpace:
    return table_form.table_space(catalog.table(form.shape.tables[0]))
