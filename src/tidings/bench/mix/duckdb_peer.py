"""The mix bench in DuckDB: a batch is joined with the selections; affected answers of joins and top-k are recomputed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tidings.bench.mix.cases import MixData
from tidings.bench.mix.peers import MixPeer
from tidings.bench.mix.selections import (
    CONSTANT,
    Change,
    CurrentRows,
    Selection,
    Writer,
    cell_text,
    constant,
    is_on_offers,
    read_queries,
)
from tidings.bench.mix.tables import arrow_type, grouped, images
from tidings.bench.peers import DuckDbPeer
from tidings.model.catalog import Catalog, Table
from tidings.sql import parse_catalog

_QUERY = re.compile(
    r"SELECT (?P<shown>.*?) FROM (?P<tables>.*?) WHERE (?P<where>.*?)"
    r"(?: ORDER BY (?P<rank>\w+)(?P<direction> DESC)? LIMIT (?P<limit>\d+))?"
)
_CONDITION = re.compile(r"((?:\w+\.)?(\w+)) (?:BETWEEN \S+ AND \S+|IN \([^)]*\)|(?:<=|>=|=|<|>) \S+)")


class DuckDb(DuckDbPeer, MixPeer):
    """Notifies the net effect of a batch on joins and top-k; cannot express movement and offers."""

    def __init__(self, data: MixData) -> None:
        super().__init__({})
        catalog = parse_catalog(data.catalog_sql)
        self._catalog = catalog
        self._rows = CurrentRows(catalog)
        selections: list[Selection] = []
        standing: dict[str, _Standing] = {}
        for id, sql in read_queries(data.first):
            selection = Selection.parse(id, sql, catalog)
            if selection is not None:
                selections.append(selection)
            elif "moved" not in sql and not is_on_offers(sql, catalog):
                template, constants = _template(sql)
                if template not in standing:
                    standing[template] = _Standing.parse(f"standing_{len(standing)}", template, catalog)
                standing[template].add(id, constants)
        self._standing = list(standing.values())
        self.is_net = bool(standing)
        self.expressed = len(selections) + sum(len(one.ids) for one in self._standing)
        self._writer = Writer(selections)
        self._groups = grouped(selections, catalog)
        for name, rows in (*((g.name, g.rows()) for g in self._groups), *((s.name, s.rows()) for s in self._standing)):
            self.create(name, rows)

    def fill(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self._rows.apply(line)
        if not self._standing:
            return
        for table in self._catalog.tables:
            rows = list(self._rows.tables[table.name].values())
            columns = {c: pa.array([row[c] for row in rows], arrow_type(table, c)) for c in table.column_names}
            self.create(table.name, pa.table(columns))
        for one in self._standing:
            self.connection.execute(f"CREATE TABLE {one.name}_held AS {one.answers(one.name)}")

    def notifications(self, lines: Sequence[bytes]) -> bytes:
        changes = [self._rows.apply(line) for line in lines]
        # A table of offers has no images.
        names = {change.table for change in changes if change.old is not None or change.new is not None}
        touched = [table for table in self._catalog.tables if table.name in names]
        for table in touched:
            self.connection.register(f"{table.name}_images", images(changes, table))
        told = self._selected(changes, touched)
        if self._standing:
            told += self._recomputed(changes, touched)
        return "".join(f"{line}\n" for line in told).encode()

    def _selected(self, changes: Sequence[Change], touched: Sequence[Table]) -> list[str]:
        before: dict[int, set[int]] = defaultdict(set)
        after: dict[int, set[int]] = defaultdict(set)
        joins = [
            f"SELECT c.n, c.is_new, s.number FROM {group.table.name}_images c JOIN {group.name} s ON {group.on}"
            for group in self._groups
            if group.table in touched
        ]
        if joins:
            found = self.connection.execute(" UNION ALL ".join(joins)).fetchnumpy()
            columns = (found[name].tolist() for name in ("n", "is_new", "number"))
            for n, is_new, number in zip(*columns, strict=True):
                (after if is_new else before)[n].add(number)
        lines: list[str] = []
        for n in sorted({*before, *after}):
            lines += self._writer.lines(changes[n], before[n], after[n])
        return lines

    def _recomputed(self, changes: Sequence[Change], touched: Sequence[Table]) -> list[str]:
        run = self.connection.execute
        for table in touched:
            # Of several changes of one row the last counts; a row without a new image is deleted.
            name, key = table.name, ", ".join(table.key)
            run(f"DELETE FROM {name} WHERE ({key}) IN (SELECT ({key}) FROM {name}_images)")
            columns = ", ".join(table.column_names)
            place = f"row_number() OVER (PARTITION BY {key} ORDER BY n DESC, is_new DESC)"
            last = f"SELECT * FROM {name}_images QUALIFY {place} = 1"
            run(f"INSERT INTO {name} SELECT {columns} FROM ({last}) WHERE is_new")
        lines: list[str] = []
        for one in self._standing:
            affected = [one.affected(table) for table in touched if table.name in one.tests]
            if affected:
                run(f"CREATE OR REPLACE TEMP TABLE affected AS {' UNION '.join(affected)}")
                lines += self._told(one, changes[-1].seq)
        return lines

    def _told(self, one: _Standing, seq: int) -> list[str]:
        """Notification lines of a template's affected subscriptions: rows lost and gained."""
        run, held = self.connection.execute, f"{one.name}_held"
        run(f"CREATE OR REPLACE TEMP TABLE anew AS {one.answers('affected')}")
        old = f"SELECT * FROM {held} WHERE number IN (SELECT number FROM affected)"
        told: dict[int, list[str]] = {}
        for op, sql in (
            ("delete", f"{old} EXCEPT ALL SELECT * FROM anew"),
            ("insert", f"SELECT * FROM anew EXCEPT ALL {old}"),
        ):
            for number, *cells in run(sql).fetchall():
                row = ", ".join(f'"{name}": {cell_text(cell)}' for name, cell in zip(one.names, cells, strict=True))
                told.setdefault(number, []).append(f'{{"op": "{op}", "row": {{{row}}}}}')
        run(f"DELETE FROM {held} WHERE number IN (SELECT number FROM affected)")
        run(f"INSERT INTO {held} SELECT * FROM anew")
        return [
            f'{{"subscription": "{one.ids[number]}", "seq": {seq}, "snapshot": false, "changes": [{", ".join(changes)}]}}'
            for number, changes in told.items()
        ]


def _template(sql: str) -> tuple[str, list[Any]]:
    """The query with `s.p0`, `s.p1`, .. for the constants of its conditions, and these constants."""
    head, where, rest = sql.partition(" WHERE ")
    conditions, order, end = rest.partition(" ORDER BY ")
    constants: list[Any] = []

    def named(found: re.Match[str]) -> str:
        constants.append(constant(found[0]))
        return f"s.p{len(constants) - 1}"

    return head + where + CONSTANT.sub(named, conditions) + order + end, constants


@dataclass
class _Standing:
    """Joins or top-k that differ in their constants alone: a table with a row of constants for each."""

    name: str
    tables: str
    """All behind FROM."""
    shown: list[str]
    names: list[str]
    """Of the shown columns, as notifications have them."""
    where: str
    tests: dict[str, list[str]]
    """Conditions by the table whose columns they test; an entry for every table."""
    rank: str
    """What the first rows are ordered by; empty for a join."""
    limit: int
    ids: list[str] = field(default_factory=list)
    constants: list[list[Any]] = field(default_factory=list)

    @staticmethod
    def parse(name: str, template: str, catalog: Catalog) -> _Standing:
        parts = _QUERY.fullmatch(template)
        assert parts is not None, template
        tables = [catalog.table(word) for word in re.findall(r"(?:^|JOIN )(\w+)", parts["tables"])]
        using = re.findall(r"USING \((\w+)\)", parts["tables"])

        def owners(column: str) -> list[Table]:
            return [table for table in tables if column in table.column_names]

        shown = parts["shown"].split(", ")
        if shown == ["*"]:
            shown = [
                f"{table.name}.{column}"
                for table in tables
                for column in table.column_names
                if column not in using or table is owners(column)[0]
            ]
        tests: dict[str, list[str]] = {table.name: [] for table in tables}
        for condition in _CONDITION.finditer(parts["where"]):
            table = condition[1].rpartition(".")[0] or owners(condition[2])[0].name
            tests[table].append(condition[0])
        rank = f"{parts['rank']}{parts['direction'] or ''}, {', '.join(tables[0].key)}" if parts["rank"] else ""
        where = parts["where"] + (f" AND {parts['rank']} IS NOT NULL" if rank else "")
        bare = [column.rpartition(".")[2] for column in shown]
        names = [short if bare.count(short) == 1 else column for short, column in zip(bare, shown, strict=True)]
        return _Standing(name, parts["tables"], shown, names, where, tests, rank, int(parts["limit"] or 0))

    def add(self, id: str, constants: list[Any]) -> None:
        self.ids.append(id)
        self.constants.append(constants)

    def rows(self) -> pa.Table:
        columns = {f"p{i}": list(values) for i, values in enumerate(zip(*self.constants, strict=True))}
        kinds = {name: pa.string() if isinstance(values[0], str) else pa.float64() for name, values in columns.items()}
        return pa.table(
            {"number": pa.array(range(len(self.ids)))}
            | {name: pa.array(values, kinds[name]) for name, values in columns.items()}
        )

    def answers(self, subscriptions: str) -> str:
        """(number, shown columns ..) of the answers of these subscriptions."""
        columns = ", ".join(f"{column} AS c{i}" for i, column in enumerate(self.shown))
        first = ""
        if self.rank:
            first = f" QUALIFY row_number() OVER (PARTITION BY s.number ORDER BY {self.rank}) <= {self.limit}"
        return f"SELECT s.number, {columns} FROM {self.tables}, {subscriptions} s WHERE {self.where}{first}"

    def affected(self, table: Table) -> str:
        """Subscriptions that select an old or new row of the table, as rows of their own table."""
        tests = " AND ".join(self.tests[table.name]) or "TRUE"
        return f"SELECT DISTINCT s.* FROM {table.name}_images {table.name}, {self.name} s WHERE {tests}"
