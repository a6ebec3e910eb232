"""What a new join subscription starts with: of every table the rows it selects and has a partner for, as it will be told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from tidings.families.join.junction import Junction
from tidings.families.join.relation import NONE, Relation
from tidings.families.join.rows import carried, fits
from tidings.families.join.subscription import Space
from tidings.model.codes import Int64Array
from tidings.model.message import SnapshotBatch
from tidings.model.points import PointBatch


def first_rows(
    space: Space, points: PointBatch, relations: Sequence[Relation], filtered: Sequence[Sequence[Junction]]
) -> Iterator[SnapshotBatch]:
    """`filtered`: where each side meets those that filter it.

    Rows without partners elsewhere are not left out: nobody would send them when they get one.
    """
    entries = [relation.current() for relation in relations]
    codes = [relation.codes[some] for relation, some in zip(relations, entries, strict=True)]
    values = {
        junction.sides: {side: junction.end(side).value_of(entries[side]) for side in junction.sides}
        for junctions in filtered
        for junction in junctions
    }
    found: list[list[Int64Array]] = [[] for _ in space.sides]
    for coords in points.coords:
        chosen = [fits(side, own, coords) for side, own in zip(space.sides, codes, strict=True)]
        for number, junctions in enumerate(filtered):
            kept = np.flatnonzero(chosen[number])
            for junction in junctions:
                other = junction.other(number)
                # One more for rows that join nothing, which have the last of all numbers.
                has_partner = np.zeros(junction.values + 1, np.bool_)
                has_partner[values[junction.sides][other][chosen[other]]] = True
                has_partner[NONE] = False
                kept = kept[has_partner[values[junction.sides][number][kept]]]
            found[number].append(kept)
    for number, parts in enumerate(found):
        owner = np.repeat(np.arange(len(points)), [len(part) for part in parts])
        if len(owner):
            rows = relations[number].rows(entries[number][np.concatenate(parts)])
            payload = carried(space, number, rows)
            yield SnapshotBatch(space.key, points.after[owner], points.id.take(pa.array(owner)), payload)
