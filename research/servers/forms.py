"""Forms as region servers know them: which have a server, how they are spread over shards, the forms that messages are in.

`select` and `offers` have forms of their own for messages: one for all selections on a table, and one for each set of axes that
subscriptions on a table of constraints compare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from research.servers.message import MessageBatch
from research.servers.space import CHANNEL, ServedSpace
from research.strategies.offers import axes_form
from research.strategies.select import table_form
from tidings.families import registry
from tidings.families.drift import subscription as drift
from tidings.families.join.subscription import is_any_of
from tidings.families.registry import family_of, is_regional
from tidings.families.spec import Form, FormSpec
from tidings.families.topk.subscription import has_several_channels
from tidings.model.catalog import Catalog
from tidings.model.points import PointBatch
from tidings.sql.shape import ColumnRef, Shape

PLACED_TAGS = {"select": 2, "offers": 2}
"""Tag of the boxes of a region in which subscriptions need the message's row; in others they lose it. Else it is 1."""


@dataclass(frozen=True)
class ByRow:
    """Served in the tables stage, in every shard: a change is handled knowing its own row only. All shards know all points."""


@dataclass(frozen=True)
class ByKey:
    """Served in the tables stage, in the shard of the row that a point follows. Only that shard knows the point, and may choose
    its coordinates.
    """

    components: tuple[int, ...]
    """For each column of the row's primary key, its place among the components of the channel."""


@dataclass(frozen=True)
class ByValues:
    """Served in the forms stage; rows with equal values in these columns meet in one shard."""

    columns: tuple[tuple[str, tuple[str, ...]], ...]
    """(table, its columns) for each table."""


@dataclass(frozen=True)
class Together:
    """Served in the forms stage, all rows of the tables in one shard. Colocation key: forms with equal keys share the shard."""

    key: str


Sharding = ByRow | ByKey | ByValues | Together


@dataclass(frozen=True)
class ServedForm(FormSpec):
    """What stages need to know of a form."""

    space: ServedSpace
    sharding: Sharding

    @property
    def is_with_rows(self) -> bool:
        """Whether the form is served in the tables stage; else in the forms stage."""
        return isinstance(self.sharding, ByRow | ByKey)


def has_server(form_key: str) -> bool:
    """Whether there is a region server for a form. The others are evaluated over shared rows, whatever is asked for."""
    known, form = family_of(form_key)
    if form.is_net or known.name not in ("select", "drift", "topk", "join", "offers"):
        return False
    return is_regional(form_key) if known.name in ("select", "offers") else not is_any_of(form)


@lru_cache(maxsize=4096)
def spec_of(form_key: str, catalog: Catalog) -> ServedForm:
    """The description of a form, also of one that messages are in."""
    form = Form.from_key(form_key)
    if form.family == "select" and form.variant == table_form.TABLE:
        spec = table_form.table_spec(form, catalog)
    elif form.family == "offers" and form.variant == axes_form.AXES:
        spec = axes_form.spec_of(form, catalog)
    else:
        spec = registry.spec_of(form_key, catalog)
    space = ServedSpace(spec.space.axes, spec.space.channel, _uncut(form, spec.space.axes))
    return ServedForm(space, spec.tables, spec.shown, _sharding(form, catalog))


def _uncut(form: Form, axes: tuple[str, ...]) -> frozenset[str]:
    """Axes along which zones are not cut.

    Those of labels of drift, which the server chooses later; and all of forms with several channels: a subscription needs all
    its points in one zone, to show the first rows of all of them together, or for its snapshot.
    """
    match form.family:
        case "topk":
            return frozenset((CHANNEL, *axes) if has_several_channels(form) else ())
        case "drift":
            return frozenset((CHANNEL, *axes) if form.variant == drift.SEVERAL_CHANNELS else axes[1:])
        case _:
            return frozenset()


def _sharding(form: Form, catalog: Catalog) -> Sharding:
    shape = form.shape
    match form.family:
        case "topk":
            pinned = tuple(ref.column for ref in shape.equalities)
            return ByValues(((shape.tables[0], pinned),)) if pinned else Together(form.key)
        case "join":
            common = common_columns(shape)
            return ByValues(tuple(common.items())) if common else Together(center_of(shape))
        case "drift":
            space = drift.space_of(form, catalog)
            names = [column.name for column in space.pinned]
            return ByKey(tuple(map(names.index, space.table.key))) if space.follows_one_row else ByRow()
        case _:
            return ByRow()


def spaces_of(catalog: Catalog) -> Callable[[str], ServedSpace]:
    """A function from form keys to their spaces."""
    return lambda form_key: spec_of(form_key, catalog).space


def gathered(points: Iterable[PointBatch], catalog: Catalog) -> list[PointBatch]:
    """Points of the door as points of the forms that messages are in, one batch per form.

    A subscription has one point there; its drop must have the same point as its creation.
    """
    batches: list[PointBatch] = []
    for batch in points:
        form = Form.from_key(batch.form)
        if form.family == "select" and form.variant != table_form.TABLE:
            batches.append(table_form.gathered(batch, catalog))
        elif form.family == "offers" and form.variant != axes_form.AXES:
            batches += axes_form.gathered(batch, catalog)
        else:
            batches.append(batch)
    return PointBatch.by_form(batches)


def project_all(messages: MessageBatch, catalog: Catalog) -> Iterator[MessageBatch]:
    """The messages once for each form they are addressed to."""
    if not messages.to:
        yield messages
    for key in messages.to:
        yield project(key, messages, catalog)


def project(form_key: str, messages: MessageBatch, catalog: Catalog) -> MessageBatch:
    """The messages as messages of `form_key`, one of the forms they are addressed to."""
    if not messages.to:
        return messages
    known, form = family_of(form_key)
    payload = _payload(form, messages, catalog) if known.name == "join" else messages.payload
    return messages.project(form_key, spec_of(form_key, catalog).space, payload)


def _payload(form: Form, messages: MessageBatch, catalog: Catalog) -> pa.RecordBatch:
    from research.strategies.join.payload import payload_of

    return payload_of(form, messages, catalog)


def center_of(shape: Shape) -> str:
    """The table that most others are joined to. Forms with the same center probably send rows of the same tables."""
    counts = Counter(table for edge in shape.joins for table in (edge.left, edge.right))
    return min(shape.tables, key=lambda table: (-counts[table], table))


def common_columns(shape: Shape) -> dict[str, tuple[str, ...]]:
    """Table -> one column, such that these columns are equal in every joined row; empty if there is no such choice."""
    equal: dict[ColumnRef, set[ColumnRef]] = {}
    for edge in shape.joins:
        for left, right in zip(edge.left_columns, edge.right_columns, strict=True):
            first, second = ColumnRef(edge.left, left), ColumnRef(edge.right, right)
            merged = equal.get(first, {first}) | equal.get(second, {second})
            equal.update(dict.fromkeys(merged, merged))
    for refs in equal.values():
        by_table = {ref.table: ref.column for ref in sorted(refs, reverse=True)}
        if len(by_table) == len(shape.tables):
            return {table: (by_table[table],) for table in shape.tables}
    return {}
