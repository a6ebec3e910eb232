"""Lines as batches of changes, one for each table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from research.servers.changes import ChangeBatch
from tidings.model.catalog import Catalog, Table
from tidings.model.quarantine import Quarantined
from tidings.pipeline.ingest import LOAD_END, Ingest, Record


@dataclass
class Parsed:
    """One batch of changes per table, in order of arrival, and the refused lines."""

    changes: list[ChangeBatch] = field(default_factory=list)
    refused: list[Quarantined] = field(default_factory=list)


def parse(ingest: Ingest, catalog: Catalog, lines: Iterable[bytes], first_position: int = 0) -> Parsed:
    """Parses lines at consecutive positions of the source, from `first_position` on. Blank lines are skipped."""
    by_table: dict[str, list[tuple[int, bytes, Record]]] = defaultdict(list)
    parsed = Parsed()
    for position, line in enumerate(lines, first_position):
        record = ingest.read(line, position, parsed.refused)
        if record is not None and record.load != LOAD_END:
            by_table[record.table].append((position, line, record))
    parsed.changes = [_batch(catalog.table(name), entries) for name, entries in by_table.items()]
    return parsed


def _batch(table: Table, entries: list[tuple[int, bytes, Record]]) -> ChangeBatch:
    positions, lines, records = zip(*entries, strict=True)
    columns = zip(*(record.values for record in records), strict=True)
    arrays = [pa.array(values, column.type.arrow) for values, column in zip(columns, table.columns, strict=True)]
    return ChangeBatch(
        table.name,
        np.array(positions, np.int64),
        np.array([record.seq for record in records], np.int64),
        np.array([record.op for record in records], np.int8),
        pa.RecordBatch.from_arrays(arrays, schema=table.schema),
        pa.array(lines, pa.binary()),
    )
