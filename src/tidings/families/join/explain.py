"""What `tidings explain` says about a join subscription."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidings.families.join.subscription import AnyOf, Space, is_any_of, predicates_of, space_of
from tidings.families.optional import ChannellessExplanation
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.codes import value_of
from tidings.model.points import Placement


class JoinExplanation(ChannellessExplanation):
    summary = "rows of several tables that belong together: SELECT .. FROM t JOIN u USING (a) WHERE b BETWEEN x AND y"
    shared_costs = (
        "the row is joined with its partners in the engine, each joined row looked up in one index that all joins share;"
        " and a line for each that is told"
    )
    shared_only = "OR, <> and IS NULL"

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
        return [("point", point), *_costs(space_of(form, catalog))]


def _extent(low: str, high: str, *, is_equality: bool) -> str:
    if is_equality:
        return f"= {low}" if low == high else f"one of several values from {low} to {high}"
    return f"in [{low}, {high}]"


def _costs(space: Space) -> list[tuple[str, str]]:
    return [("why", _why(space)), ("filters", _filters(space)), ("a change costs", _semijoin(space))]


def _why(space: Space) -> str:
    tables = " and ".join(side.table.name for side in space.sides) if len(space.sides) == 2 else "tables"
    return (
        f"rows of {tables} are sent once, as semijoins, and joined at the gateway: less than whole joined rows, of which "
        "a change may make many; and only to those who have a partner for them, unless filtering costs more than it saves"
    )


def _filters(space: Space) -> str:
    """Text that lists which tables may filter which."""
    names = [side.table.name for side in space.sides]
    by: dict[str, list[str]] = {name: [] for name in names}
    for one, two in space.join_columns:
        by[names[one]].append(names[two])
        by[names[two]].append(names[one])
    choices = "; ".join(
        f"{name} by {', '.join(others)}{' (any of them)' if len(others) > 1 else ''} or none"
        for name, others in by.items()
    )
    return f"{choices}: what costs least by the changes and the selections of a sample, looked at again as they move"


def _semijoin(space: Space) -> str:
    if not any(side.ranged for side in space.sides):
        return (
            "1 message, for all queries that filter the table alike, to those who select the row, if it has a partner; "
            "1 per row that gets its first partner"
        )
    return (
        "1 message, for all queries that filter the table alike, to those who select the row and have a partner for it, "
        "told by the partners next to each of a few marks, merged where nobody lies between two of them; "
        "1 per row that gets its first partner for somebody"
    )
