"""What `tidings explain` says about a drift subscription."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.families.protocols import Explanation
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.codes import value_of
from tidings.model.points import Placement
from tidings.model.types import ColumnType


class DriftExplanation(Explanation):
    summary = "rows told again when a value has moved: SELECT .. FROM t WHERE key = x AND moved_percent(a) >= 5"

    def lines(self, form: Form, placement: Placement, catalog: Catalog) -> Sequence[tuple[str, str]]:
        return [("point", f"radius = {value_of(ColumnType.DOUBLE, placement.coords[0])}")]
