"""What `tidings explain` says about an offers subscription."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.families.offers.constraint import unpack
from tidings.families.offers.subscription import space_of
from tidings.families.protocols import Explanation
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.codes import value_of
from tidings.model.points import Placement

_COSTS = {
    "region": "1 message to all subscriptions that constrain the publication's attributes, however many these are",
}
_INDEXED = (
    "a look-up among all boxes that constrain the publication's attributes, by hash on equalities, then down a tree"
)


class OffersExplanation(Explanation):
    summary = "publications that are constraints themselves: SELECT .. FROM market WHERE a = x AND b BETWEEN y AND z"

    def lines(self, form: Form, placement: Placement, catalog: Catalog, strategy: str) -> Sequence[tuple[str, str]]:
        space, boxes = space_of(form, catalog), unpack(placement.details)
        intervals = []
        for axis, lo, hi in zip(*boxes[0][:3], strict=True):
            column = space.table.axes[axis]
            ends = [value_of(column.type, code) for code in (lo, hi)]
            intervals.append(f"{column.name}: {ends[0] if lo == hi else ' .. '.join(ends)}")
        point = f"({', '.join(intervals)}) in {2 * len(intervals)} dimensions"
        matched = "subscription" if space.table.constraints.is_classic else "publication"
        lines = [
            ("point", point if len(boxes) == 1 else f"{point}, and {len(boxes) - 1} more"),
            ("matches", f"publications that it meets on every attribute of the {matched}"),
            ("a change costs", _COSTS.get(strategy, _INDEXED)),
        ]
        if space.order is not None:
            side = "greatest" if space.order.descending else "least"
            rank = f"by the {side} {space.order.column.column} that both allow, then by id"
            lines.insert(2, ("best first", f"{space.order.limit} of them, {rank}"))
        return lines
