"""The top-k family: the first rows by a ranking column, within ranges."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from tidings.families.optional import Evaluating, Objecting, Objection, Parametric
from tidings.families.protocols import Family, Server, Views
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


_ROUNDED = ("dense", "sparse")
_EPS_MIN = 0.01


class Strategy(NamedTuple):
    """A strategy, parsed from its name. eps: parameter of `dense:EPS` and `sparse:EPS`, which limits the number of tiles."""

    kind: str
    eps: float | None

    def groups(self, k: int) -> int | None:
        """Highest number of tiles of a row that rises; None if there is no limit."""
        return None if self.eps is None else min(k, ceil(1 / self.eps))

    @classmethod
    def named(cls, name: str) -> Strategy | None:
        """The strategy with this name; None if there is none."""
        kind, colon, number = name.partition(":")
        if not colon:
            return cls(kind, None) if kind in TopkFamily.strategies else None
        try:
            eps = float(number)
        except ValueError:
            return None
        return cls(kind, eps) if kind in _ROUNDED and _EPS_MIN <= eps <= 1 else None


class TopkFamily(Family, Evaluating, Objecting, Parametric):
    name = "topk"
    strategies = ("dense", "sparse", "dense:0.5", "sparse:0.5", "unicast", "relax")
    """`dense:0.5` and `sparse:0.5` stand for all parameters from 0.01 to 1."""
    reference = TopkReference()
    explanation = TopkExplanation()

    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        is_plain = len(shape.tables) == 1 and shape.order is not None and shape.movement is None
        return is_plain and catalog.table(shape.tables[0]).rows == "values"

    def objection(self, shape: Shape, catalog: Catalog) -> Objection | None:
        return subscription.objection(shape, catalog)

    def has_strategy(self, name: str) -> bool:
        return Strategy.named(name) is not None

    def place(self, shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
        return subscription.place(shape, constants, catalog)

    def spec(self, form: Form, catalog: Catalog) -> FormSpec:
        return subscription.spec_of(form, catalog)

    def server(self, form: Form, catalog: Catalog, strategy: str) -> Server:
        # Imported here because compiled kernels take a second to import, and only servers need them.
        from tidings.families.topk import strategies

        space = subscription.space_of(form, catalog)
        if len(space.ranges) > 1:
            return strategies.SeveralRangesServer(space)
        chosen = Strategy.named(strategy)
        assert chosen is not None
        groups = chosen.groups(space.k)
        if chosen.kind == "sparse":
            return strategies.SparseServer(space, groups)
        if groups is not None:
            return strategies.RoundedServer(space, groups)
        plain: dict[str, type[strategies.DenseServer]]
        plain = {"dense": strategies.DenseServer, "unicast": strategies.UnicastServer, "relax": strategies.RelaxServer}
        return plain[chosen.kind](space)

    def evaluates(self, form: Form) -> bool:
        return True

    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        from tidings.families.topk.evaluator import TopkEvaluator

        return TopkEvaluator(catalog, store)

    def views(self, form: Form, catalog: Catalog) -> Views:
        from tidings.families.topk.view import TopkViews

        return TopkViews(subscription.space_of(form, catalog))
