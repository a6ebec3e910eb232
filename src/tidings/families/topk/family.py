"""The top-k family: the first rows by a ranking column, within ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.families.optional import Evaluating, Netting, Objecting, Objection, Parametric
from tidings.families.protocols import Family, Server, Views
from tidings.families.spec import Form, FormSpec
from tidings.families.topk import choice, subscription
from tidings.families.topk.explain import TopkExplanation
from tidings.families.topk.reference import TopkReference
from tidings.model.catalog import Catalog
from tidings.model.points import Placement
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store


class TopkFamily(Family, Evaluating, Netting, Objecting, Parametric):
    name = "topk"
    strategies = choice.NAMES
    reference = TopkReference()
    explanation = TopkExplanation()

    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        is_plain = len(shape.tables) == 1 and shape.order is not None and shape.movement is None
        return is_plain and catalog.table(shape.tables[0]).rows == "values"

    def objection(self, shape: Shape, catalog: Catalog) -> Objection | None:
        return subscription.objection(shape, catalog)

    def has_strategy(self, name: str) -> bool:
        return choice.read(name) is not None

    def place(self, shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
        return subscription.place(shape, constants, catalog)

    def spec(self, form: Form, catalog: Catalog) -> FormSpec:
        return subscription.spec_of(form, catalog)

    def net(self, form: Form) -> Form | None:
        return subscription.net(form)

    def server(self, form: Form, catalog: Catalog, strategy: str) -> Server:
        # Imported here because compiled kernels take a second to import, and only servers need them.
        if len(form.shape.ranges) > 1:
            from tidings.families.topk.several import SeveralRangesServer

            return SeveralRangesServer(subscription.space_of(form, catalog))
        from tidings.families.topk import net, strategies

        space = subscription.space_of(form, catalog)
        chosen = choice.read(strategy)
        assert chosen is not None
        if space.is_net:
            return net.NetServer(space)
        groups = chosen.groups(space.k)
        if chosen.kind == "sparse":
            return strategies.SparseServer(space, groups)
        if groups is not None:
            return strategies.RoundedServer(space, groups)
        plain: dict[str, type[strategies.DenseServer]]
        plain = {"dense": strategies.DenseServer, "unicast": strategies.UnicastServer, "relax": strategies.RelaxServer}
        return plain[chosen.kind](space)

    def evaluates(self, form: Form) -> bool:
        return subscription.NET not in form.variant.split(",")

    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        from tidings.families.topk.evaluator import TopkEvaluator

        return TopkEvaluator(catalog, store)

    def views(self, form: Form, catalog: Catalog) -> Views:
        from tidings.families.topk.view import TopkViews

        return TopkViews(subscription.space_of(form, catalog))
