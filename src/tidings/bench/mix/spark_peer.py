"""Selections of the mix bench in plain Spark SQL: a stream of files, and a join with the selections in foreachBatch.

The driver keeps the tables, to know the old row of every change; Spark finds who selects old and new rows, makes the lines
and writes them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidings.bench.mix.cases import MixData
from tidings.bench.mix.peers import MixPeer
from tidings.bench.mix.selections import CurrentRows, Selection, read_queries
from tidings.bench.mix.tables import Group, arrow_type, grouped, images
from tidings.model.catalog import Table
from tidings.sql import parse_catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHOWN = "concat('{', array_join(transform(shown, i -> element_at(cells, i)), ', '), '}')"
_LINE = """
concat('{"subscription": "', id, '", "seq": ', seq, ', "snapshot": false, "changes": [',
       CASE WHEN old IS NULL THEN concat('{"op": "insert", "row": ', new, '}')
            WHEN new IS NULL THEN concat('{"op": "delete", "row": ', old, '}')
            ELSE concat('{"op": "update", "old": ', old, ', "row": ', new, '}') END, ']}')
"""


class SparkForeachBatch(MixPeer):
    """Selections are cached DataFrames, one for each set of columns compared by =."""

    def __init__(self, data: MixData, session: SparkSession) -> None:
        catalog = parse_catalog(data.catalog_sql)
        found = (Selection.parse(id, sql, catalog) for id, sql in read_queries(data.first))
        selections = [selection for selection in found if selection is not None]
        self.expressed = len(selections)
        self._session = session
        self._rows = CurrentRows(catalog)
        self._groups = [(group, self._cached(_shown(group))) for group in grouped(selections, catalog)]
        self._tables = {group.table.name: group.table for group, _ in self._groups}
        self._folder = tempfile.TemporaryDirectory(prefix="tidings-bench-")
        self._path = Path(self._folder.name)
        self._files = 0
        (self._path / "in").mkdir()
        source = session.readStream.option("maxFilesPerTrigger", 1).text(str(self._path / "in"))
        writer = source.writeStream.foreachBatch(self._each)
        self._query = writer.option("checkpointLocation", str(self._path / "checkpoint")).start()

    def fill(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self._rows.apply(line)

    def notifications(self, lines: Sequence[bytes]) -> bytes:
        """Adds a file to the stream and waits for its lines."""
        out = self._path / "out" / str(self._files)
        partial = self._path / "partial"
        partial.write_bytes(b"\n".join(lines))
        partial.rename(self._path / "in" / f"{self._files:08d}.jsonl")
        self._files += 1
        self._query.processAllAvailable()
        return b"".join(part.read_bytes() for part in sorted(out.glob("part-*")))

    def close(self) -> None:
        self._query.stop()
        for _, frame in self._groups:
            frame.unpersist(blocking=True)
        self._folder.cleanup()

    def _cached(self, rows: pa.Table) -> DataFrame:
        frame = self._session.createDataFrame(rows).repartition(os.cpu_count() or 1).cache()
        frame.count()
        return frame

    def _each(self, lines: DataFrame, batch_id: int) -> None:
        changes = [self._rows.apply(row.value.encode()) for row in lines.collect()]
        names = {change.table for change in changes}
        frames = [self._matches(table, images(changes, table)) for name, table in self._tables.items() if name in names]
        if frames:
            told = reduce(_union, frames).selectExpr(f"{_LINE} AS value", "seq", "id").orderBy("seq", "id")
            told.select("value").write.text(str(self._path / "out" / str(batch_id)))

    def _matches(self, table: Table, rows: pa.Table) -> DataFrame:
        """(seq, id, old, new): who selected the old row of each change or selects the new one, and what they see of it."""
        from pyspark.sql.functions import broadcast, expr

        cells = ", ".join(_cell(table, column) for column in table.column_names)
        given = broadcast(self._session.createDataFrame(rows).selectExpr("*", f"array({cells}) AS cells")).alias("c")
        found = [
            given.join(frame.alias("s"), expr(group.on)).select("c.seq", "s.id", "c.is_new", "c.cells", "s.shown")
            for group, frame in self._groups
            if group.table is table
        ]
        seen = reduce(_union, found).selectExpr("seq", "id", "is_new", f"{_SHOWN} AS row").groupBy("seq", "id")
        old, new = (expr(f"max(row) FILTER (WHERE {side}) AS {name}") for side, name in _SIDES)
        return seen.agg(old, new).where("NOT (old <=> new)")


_SIDES = (("NOT is_new", "old"), ("is_new", "new"))


def _union(a: Any, b: Any) -> Any:
    return a.unionAll(b)


def _cell(table: Table, column: str) -> str:
    """A cell of a row as JSON, in SQL."""
    text = f"CAST({column} AS STRING)"
    if arrow_type(table, column) == pa.string():
        text = f"concat('\"', {text}, '\"')"
    return f"concat('\"{column}\": ', coalesce({text}, 'null'))"


def _shown(group: Group) -> pa.Table:
    """The rows of a group, with the id of each and the places, from 1, of the columns that it shows."""
    rows = group.rows()
    place = {column: at for at, column in enumerate(group.table.column_names, 1)}
    members = [group.selections[number] for number in rows.column("number").to_pylist()]
    shown = pa.array([[place[column] for column in s.shown] for s in members], pa.list_(pa.int32()))
    return rows.append_column("id", pa.array([s.id for s in members])).append_column("shown", shown)
