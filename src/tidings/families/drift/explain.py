"""What `tidings explain` says about a drift subscription."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.families.drift.subscription import space_of
from tidings.families.protocols import Explanation
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.codes import value_of
from tidings.model.points import Placement
from tidings.model.types import ColumnType

_COSTS = "1 message to a few ranges of radii and labels, however many subscriptions it concerns"


class DriftExplanation(Explanation):
    summary = "rows told again when a value has moved: SELECT .. FROM t WHERE key = x AND moved_percent(a) >= 5"

    def lines(self, form: Form, placement: Placement, catalog: Catalog) -> Sequence[tuple[str, str]]:
        space = space_of(form, catalog)
        radius = value_of(ColumnType.DOUBLE, placement.coords[0])
        label = "chosen by the server" if space.follows_one_row else "its birth"
        return [("point", f"(radius = {radius}, label {label})"), ("a change costs", _COSTS)]
