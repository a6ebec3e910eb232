"""What `tidings explain` says about a top-k subscription."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.families.protocols import Explanation
from tidings.families.spec import Form
from tidings.families.topk.subscription import space_of
from tidings.model.catalog import Catalog
from tidings.model.codes import value_of
from tidings.model.points import Placement


class TopkExplanation(Explanation):
    summary = "the first k rows within a range: SELECT .. FROM t WHERE a BETWEEN x AND y ORDER BY b LIMIT k"

    def lines(self, form: Form, placement: Placement, catalog: Catalog) -> Sequence[tuple[str, str]]:
        space = space_of(form, catalog)
        if len(space.ranges) > 1:
            ends = zip(space.ranges, placement.coords[::2], placement.coords[1::2], strict=True)
            named = [f"{one.name}: {value_of(one.type, lo)} .. {value_of(one.type, hi)}" for one, lo, hi in ends]
            return [("point", f"({', '.join(named)}) in the space of {len(named)} ranges")]
        if space.range is None:
            return [("point", "the one point that holds all rows of its channel")]
        low, high = (value_of(space.range.type, code) for code in placement.coords)
        return [("point", f"(l = {low}, r = {high}) in the plane of ranges of {space.range.name}")]
