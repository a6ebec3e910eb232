"""What `tidings explain` says about a top-k subscription."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.families.protocols import Explanation
from tidings.families.spec import Form
from tidings.families.topk.subscription import Space, space_of
from tidings.model.catalog import Catalog
from tidings.model.codes import value_of
from tidings.model.points import Placement


class TopkExplanation(Explanation):
    summary = "the first k rows within a range: SELECT .. FROM t WHERE a BETWEEN x AND y ORDER BY b LIMIT k"

    def lines(self, form: Form, placement: Placement, catalog: Catalog) -> Sequence[tuple[str, str]]:
        space = space_of(form, catalog)
        if len(space.ranges) > 1:
            return _several(space, placement)
        if space.range is None:
            point = "the one point that holds all rows of its channel"
        else:
            low, high = (value_of(space.range.type, code) for code in placement.coords)
            point = f"(l = {low}, r = {high}) in the plane of ranges of {space.range.name}"
        cost = f"up to {space.k} tiles of the plane, and some for every row that takes the place of one that falls"
        return [("point", point), ("a change costs", cost)]


def _several(space: Space, placement: Placement) -> Sequence[tuple[str, str]]:
    ends = zip(space.ranges, placement.coords[::2], placement.coords[1::2], strict=True)
    named = [f"{column.name}: {value_of(column.type, lo)} .. {value_of(column.type, hi)}" for column, lo, hi in ends]
    cost = "a message for the row and one for every row that takes its place; work for each subscription affected"
    return [
        ("point", f"({', '.join(named)}) in the space of {len(named)} ranges"),
        ("a change costs", cost),
    ]
