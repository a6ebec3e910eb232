"""What a new join subscription starts with: of every table the rows it selects and has a partner for, as it will be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from tidings.families.join.junction import Junction
from tidings.families.join.relation import Relation
from tidings.families.join.rows import carried, fits
from tidings.families.join.subscription import Space
from tidings.model.codes import Int64Array
from tidings.model.message import SnapshotBatch
from tidings.model.points import PointBatch


def first_rows(
    space: Space, points: PointBatch, relations: Sequence[Relation], junctions: Mapping[int, Junction | None]
) -> Iterator[SnapshotBatch]:
    """`junctions`: where each side meets the one that filters it, if any does.

    Rows without partners elsewhere are not left out: nobody would send them when they get one.
    """
    entries = [relation.current() for relation in relations]
    codes = [relation.codes[some] for relation, some in zip(relations, entries, strict=True)]
    values = {
        number: [junction.end(side).value_of(entries[side]) for side in (number, junction.other(number))]
        for number, junction in junctions.items()
        if junction is not None
    }
    found: list[list[Int64Array]] = [[] for _ in space.sides]
    for coords in points.coords:
        chosen = [fits(side, own, coords) for side, own in zip(space.sides, codes, strict=True)]
        for number, junction in junctions.items():
            if junction is None:
                found[number].append(np.flatnonzero(chosen[number]))
                continue
            own, others = values[number]
            has_partner = np.zeros(junction.values, np.bool_)
            has_partner[others[chosen[junction.other(number)]]] = True
            found[number].append(np.flatnonzero(chosen[number])[has_partner[own[chosen[number]]]])
    for number, parts in enumerate(found):
        owner = np.repeat(np.arange(len(points)), [len(part) for part in parts])
        if len(owner):
            rows = relations[number].rows(entries[number][np.concatenate(parts)])
            payload = carried(space, number, rows)
            yield SnapshotBatch(space.key, points.after[owner], points.id.take(pa.array(owner)), payload)
