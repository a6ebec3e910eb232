"""What `tidings explain` says about a join subscription."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidings.families.join.subscription import AnyOf, is_any_of, predicates_of
from tidings.families.optional import ChannellessExplanation
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.codes import value_of
from tidings.model.points import Placement


class JoinExplanation(ChannellessExplanation):
    summary = "rows of several tables that belong together: SELECT .. FROM t JOIN u USING (a) WHERE b BETWEEN x AND y"
    costs = (
        "the row is joined with its partners in the engine, each joined row looked up in one index that all joins share;"
        " and a line for each that is told"
    )

    def lines(self, form: Form, placement: Placement, catalog: Catalog) -> Sequence[tuple[str, str]]:
        ends = []
        for i, ref in enumerate(predicates_of(form.shape)):
            type = catalog.table(ref.table).column(ref.column).type
            low, high = (value_of(type, code) for code in placement.coords[2 * i : 2 * i + 2])
            ends.append(f"{ref.table}.{ref.column} {_extent(low, high, is_equality=ref in form.shape.equalities)}")
        point = ", ".join(ends) or "the one point that holds everything"
        if is_any_of(form):
            count = len(msgspec.msgpack.decode(placement.details, type=AnyOf).alternatives)
            conditions = f"any of {count} conjunctions; the point's box holds all of them"
            return [("point", point), ("conditions", conditions)]
        return [("point", point)]


def _extent(low: str, high: str, *, is_equality: bool) -> str:
    if is_equality:
        return f"= {low}" if low == high else f"one of several values from {low} to {high}"
    return f"in [{low}, {high}]"
