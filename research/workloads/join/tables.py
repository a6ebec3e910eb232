"""The tables of the join workloads, and their lines of changes and subscriptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from research.workloads.draws import BLOCK
from research.workloads.join.multi import Images, TableSteps
from tidings.model.change import Op
from tidings.workloads.draws import FloatArray, IntArray
from tidings.workloads.subscribers import steady
from tidings.workloads.workload import WorkloadLines

_OPS = {Op.INSERT: "insert", Op.UPDATE: "update", Op.DELETE: "delete"}


@dataclass(frozen=True)
class JoinTable:
    """A table by the names of its columns: key, join values (links), the column with ranges. A column `note` is the payload."""

    name: str
    links: tuple[str, ...]
    value: str
    key: str = "id"
    """May be one of the links."""

    @property
    def catalog_sql(self) -> str:
        links = "".join(f"{link} BIGINT, " for link in self.links if link != self.key)
        return f"CREATE TABLE {self.name} ({self.key} BIGINT PRIMARY KEY, {links}{self.value} DOUBLE, note TEXT);\n"

    def insert(self, key: int, links: Sequence[int], value: float, payload: int) -> str:
        """The members of a row."""
        linked = "".join(f'"{name}": {at}, ' for name, at in zip(self.links, links, strict=True) if name != self.key)
        return f'"{self.key}": {key}, {linked}"{self.value}": {value}, "note": "{repeated(f"{self.name} {key}, ", payload)}"'


@dataclass(frozen=True)
class JoinSchema:
    tables: tuple[JoinTable, ...]

    @property
    def catalog_sql(self) -> str:
        return "".join(table.catalog_sql for table in self.tables)

    def sql(self, joined: Sequence[int], ends: Sequence[float]) -> str:
        """A query that joins tables, given in an order in which each shares a link with one before. ends: of all tables."""
        first, *others = (self.tables[number] for number in joined)
        linked, source = set(first.links), first.name
        for table in others:
            source += f" JOIN {table.name} USING ({next(link for link in table.links if link in linked)})"
            linked.update(table.links)
        where = " AND ".join(
            f"{self.tables[number].name}.{self.tables[number].value} BETWEEN {ends[2 * number]} AND {ends[2 * number + 1]}"
            for number in joined
        )
        return f"SELECT * FROM {source} WHERE {where}"


BINARY = JoinSchema((JoinTable("r", ("b",), "a"), JoinTable("s", ("b",), "c")))
GENERAL = JoinSchema(
    (
        JoinTable("r", ("rs",), "a"),
        JoinTable("s", ("rs", "st", "su"), "c"),
        JoinTable("t", ("st",), "d"),
        JoinTable("u", ("su",), "e"),
    )
)
"""A link is named after the tables that have it."""
STAR = JoinSchema(
    (
        JoinTable("customers", ("customer",), "income", key="customer"),
        JoinTable("sales", ("customer", "product", "store"), "amount"),
        JoinTable("products", ("product",), "price", key="product"),
        JoinTable("stores", ("store",), "turnover", key="store"),
    )
)


def repeated(text: str, size: int) -> str:
    """A payload of `size` bytes that repeats the text."""
    return (text * (size // len(text) + 1))[:size]


def workload_of(
    schema: JoinSchema,
    joined: Sequence[Sequence[int]],
    ranges: FloatArray,
    changes: Iterator[bytes],
) -> WorkloadLines:
    """joined: the tables of every subscription. All subscriptions exist from the start and are never dropped."""
    return WorkloadLines(schema.catalog_sql, steady(_queries(schema, joined, ranges), len(ranges)), changes)


def _queries(schema: JoinSchema, joined: Sequence[Sequence[int]], ranges: FloatArray) -> Iterator[str]:
    for start in range(0, len(ranges), BLOCK):
        part = slice(start, start + BLOCK)
        for tables, ends in zip(joined[part], ranges[part].tolist(), strict=True):
            yield schema.sql(tables, ends)


def filled(tables: Sequence[Images], order: Sequence[int]) -> TableSteps:
    """The insertions of the rows at the start, table by table."""
    starts = [tables[number].start for number in order]
    image = np.concatenate([np.arange(start) for start in starts])
    return TableSteps(np.repeat(np.array(order), starts), np.full(len(image), Op.INSERT, np.int64), image)


def change_lines(
    schema: JoinSchema, tables: Sequence[Images], payloads: Sequence[int], steps: Sequence[TableSteps], changes: int
) -> Iterator[bytes]:
    """Lines of the first `changes` steps, with seqs from 1."""
    seq = 0
    for some in steps:
        for start in range(0, len(some), BLOCK):
            part = slice(start, start + BLOCK)
            columns = (some.table[part].tolist(), some.op[part].tolist(), _rows(tables, some, part))
            for number, op, (key, links, value) in zip(*columns, strict=True):
                if seq >= changes:
                    return
                seq += 1
                table = schema.tables[number]
                row = f'"{table.key}": {key}' if op == Op.DELETE else table.insert(key, links, value, payloads[number])
                yield f'{{"seq": {seq}, "table": "{table.name}", "op": "{_OPS[op]}", "row": {{{row}}}}}'.encode()


def _rows(tables: Sequence[Images], steps: TableSteps, part: slice) -> list[tuple[int, list[int], float]]:
    """Key, links and value of the rows of some steps."""
    number: IntArray = steps.table[part]
    image: IntArray = steps.image[part]
    rows: list[tuple[int, list[int], float]] = [(0, [], 0.0)] * len(number)
    for at, table in enumerate(tables):
        own = np.flatnonzero(number == at)
        wanted = image[own]
        columns = (own.tolist(), table.key[wanted].tolist(), table.links[wanted].tolist(), table.value[wanted].tolist())
        for place, key, links, value in zip(*columns, strict=True):
            rows[place] = (key, links, value)
    return rows
