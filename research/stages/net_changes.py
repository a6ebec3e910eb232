"""Net effect of changes: several changes of one row become one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from research.stages.sharding import components
from tidings.model.change import TableChanges
from tidings.model.channel import group_channels


def net_of(changes: TableChanges, key: Sequence[str]) -> TableChanges:
    """At most one change per row, from its first old image to its last new image, with the last seq. Sorted by seq.

    key: columns of the primary key. A row that is absent before and after has no change.
    """
    names = changes.known_rows(key)
    group, keys = group_channels([components(names.column(name)) for name in key], len(changes))
    if len(keys) == len(changes):
        return changes
    first, last = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    last[group] = np.arange(len(changes))
    first[group[::-1]] = np.arange(len(changes))[::-1]
    kept = changes.had[first] | changes.has[last]
    order = np.argsort(last[kept])
    first, last = first[kept][order], last[kept][order]
    before, after = changes.before.take(pa.array(first)), changes.after.take(pa.array(last))
    return TableChanges(changes.table, changes.seq[last], changes.had[first], before, changes.has[last], after)
