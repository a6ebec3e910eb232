"""The tables of the top-k workloads, and their lines of changes and subscriptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from research.workloads.draws import BLOCK
from research.workloads.topk.scene import Block, Source
from tidings.workloads.draws import FloatArray
from tidings.workloads.subscribers import steady
from tidings.workloads.workload import WorkloadLines


@dataclass(frozen=True)
class TopkTable:
    """A table by the names of its columns: a key, the column with ranges, and the ranking column."""

    name: str
    key: str
    key_type: str
    place: str
    score: str

    @property
    def catalog_sql(self) -> str:
        columns = f"{self.key} {self.key_type} PRIMARY KEY, {self.place} DOUBLE, {self.score} DOUBLE"
        return f"CREATE TABLE {self.name} ({columns});\n"

    def sql(self, low: float, high: float, k: int) -> str:
        return f"SELECT * FROM {self.name} WHERE {self.place} BETWEEN {low} AND {high} ORDER BY {self.score} LIMIT {k}"

    def change(self, seq: int, op: str, key: str, place: float, score: float) -> bytes:
        """A line; `key` is written as JSON has it."""
        members = f'"{self.key}": {key}, "{self.place}": {place}, "{self.score}": {score}'
        return f'{{"seq": {seq}, "table": "{self.name}", "op": "{op}", "row": {{{members}}}}}'.encode()


ITEMS = TopkTable("items", "id", "BIGINT", "place", "score")
STOCKS = TopkTable("stocks", "symbol", "TEXT", "reco", "per")


def workload_of(
    table: TopkTable, source: Source, keys: Sequence[str], *, seed: int, subscriptions: int, changes: int
) -> WorkloadLines:
    """A row for every key, inserted by the first changes. All subscriptions exist from the start and are never dropped."""
    place, score = source.start(seed, len(keys))
    ranges = source.draw_ranges(seed, subscriptions)
    return WorkloadLines(
        table.catalog_sql,
        steady(_queries(table, ranges, source.k), subscriptions),
        _changes(table, keys, place, chain([(np.arange(len(keys)), score)], source.blocks(seed, score)), changes),
    )


def _queries(table: TopkTable, ranges: FloatArray, k: int) -> Iterator[str]:
    for start in range(0, len(ranges), BLOCK):
        for low, high in ranges[start : start + BLOCK].tolist():
            yield table.sql(low, high, k)


def _changes(
    table: TopkTable, keys: Sequence[str], place: FloatArray, blocks: Iterator[Block], changes: int
) -> Iterator[bytes]:
    seq = 0
    for row, score in blocks:
        for at, own_place, own_score in zip(row.tolist(), place[row].tolist(), score.tolist(), strict=True):
            if seq >= changes:
                return
            seq += 1
            yield table.change(seq, "insert" if seq <= len(keys) else "update", keys[at], own_place, own_score)
