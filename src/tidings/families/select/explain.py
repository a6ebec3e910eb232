"""What `tidings explain` says about a select subscription."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.families.protocols import Explanation
from tidings.families.select.subscription import space_of
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.codes import value_of
from tidings.model.points import Placement


class SelectExplanation(Explanation):
    summary = "rows of one table within ranges: SELECT .. FROM t WHERE a = x AND b BETWEEN y AND z"

    def lines(self, form: Form, placement: Placement, catalog: Catalog) -> Sequence[tuple[str, str]]:
        space = space_of(form, catalog)
        names = [f"{end} {column.name}" for column in space.ranges for end in ("lo", "hi")]
        types = [column.type for column in space.ranges for _ in ("lo", "hi")]
        ends = zip(names, types, placement.coords, strict=True)
        point = ", ".join(f"{name} = {value_of(type, code)}" for name, type, code in ends)
        return [("point", f"({point}) in {space.dims} dimensions")]
