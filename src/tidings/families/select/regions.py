"""Regions of select: where the subscriptions are that may select a row, from the codes of its values.

All select subscriptions on a table lie in one space, whatever they constrain or show: along each column that can be compared a
point has the ends of its range, or of the values of its IN, and is open where it demands nothing. A row with value v in a
column is selected by points with lo <= v <= hi there, a row with null only by those that are open.

        hi |::::::::
         v +::::::::
           |
           +-------+--- lo
                   v
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from tidings.families.evaluator import Store
from tidings.families.optional import RegionSpace, SpacePoints
from tidings.families.select.subscription import space_of
from tidings.families.spec import Form
from tidings.kernels.rows import CODES
from tidings.kernels.rows.read import RECORD_VALID
from tidings.model.catalog import Catalog, Table
from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array, codes_of
from tidings.model.points import PointBatch
from tidings.model.region import Regions
from tidings.model.types import ColumnType


@lru_cache(maxsize=1024)
def table_space(table: Table) -> RegionSpace:
    return RegionSpace("select", table, tuple(i for i, column in enumerate(table.columns) if column.type.is_comparable))


def in_space(points: PointBatch, catalog: Catalog) -> SpacePoints:
    """Each subscription as one point: the smallest box that has all rows it may select."""
    shape = space_of(Form.from_key(points.form), catalog)
    space = table_space(shape.table)
    homes = np.flatnonzero(points.home)
    coords = np.tile(np.array([CODE_MIN, CODE_MAX]), (len(homes), len(space.axes)))
    place_of = {space.table.columns[column].name: 2 * place for place, column in enumerate(space.axes)}
    for i, column in enumerate(shape.ranges):
        place = place_of[column.name]
        coords[:, place : place + 2] = points.coords[homes, 2 * i : 2 * i + 2]
    for column, components in zip(shape.equalities, points.channel, strict=True):
        lo, hi = _ends(column.type, components)
        place = place_of[column.name]
        coords[:, place] = np.minimum.reduceat(lo, homes) if len(homes) else lo
        coords[:, place + 1] = np.maximum.reduceat(hi, homes) if len(homes) else hi
    return SpacePoints(space, homes, coords)


def _ends(type: ColumnType, components: pa.Array) -> tuple[Int64Array, Int64Array]:
    """(lower ends, upper ends) of the values of equalities; an empty range for those that nothing equals."""
    codes, valid = codes_of(type if type is ColumnType.TEXT else ColumnType.BIGINT, components)
    return np.where(valid, codes, CODE_MAX), np.where(valid, codes, CODE_MIN)


def regions(space: RegionSpace, store: Store, versions: Int64Array) -> Regions:
    """One box for each version."""
    records, layout = store.records(space.table.name, versions)
    columns = np.array(space.axes, np.int64)
    codes = records[:, int(layout[CODES]) + columns]
    valid = (records[:, RECORD_VALID + (columns >> 6)] >> (columns & 63)) & 1 != 0
    lo = np.full((len(versions), 2 * len(columns)), CODE_MIN, np.int64)
    hi = np.full_like(lo, CODE_MAX)
    hi[:, 0::2] = np.where(valid, codes, CODE_MIN)
    lo[:, 1::2] = np.where(valid, codes, CODE_MAX)
    return Regions(lo, hi, np.ones(len(versions), np.uint8), np.arange(len(versions) + 1))
