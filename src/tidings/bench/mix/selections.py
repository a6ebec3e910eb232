"""What peers of the mix bench share: selections taken apart by regular expressions, rows in dicts, lines as f-strings."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any, NamedTuple

import msgspec

from tidings.model.catalog import Catalog

Row = dict[str, Any]
Value = str | int | float

_QUERY = re.compile(r"SELECT (?P<shown>.*?) FROM (?P<table>\w+) WHERE (?P<where>.*)")
_FROM = re.compile(r" FROM (\w+)")
_CONDITION = re.compile(
    r"(?P<column>\w+) (?:BETWEEN (?P<low>'[^']*'|\S+) AND (?P<high>'[^']*'|\S+)"
    r"|IN \((?P<list>[^)]*)\)|(?P<op>=|<=|>=|<|>) (?P<value>'[^']*'|\S+))"
)
CONSTANT = re.compile(r"'[^']*'|(?<![\w.'])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


class Range(NamedTuple):
    """Both ends belong to it; None: no end."""

    low: Value | None = None
    high: Value | None = None


@dataclass(frozen=True)
class Selection:
    """A subscription to rows of one table."""

    id: str
    table: str
    shown: tuple[str, ...]
    equal: dict[str, tuple[Value, ...]]
    """Values by column, several for an IN list."""
    ranges: dict[str, Range]

    @staticmethod
    def parse(id: str, sql: str, catalog: Catalog) -> Selection | None:
        """None for a query that is more than a selection, or is on offers."""
        parts = _QUERY.fullmatch(sql)
        if parts is None or " ORDER BY " in sql or "moved" in sql or is_on_offers(sql, catalog):
            return None
        columns = catalog.table(parts["table"]).column_names
        shown = columns if parts["shown"] == "*" else tuple(parts["shown"].split(", "))
        equal: dict[str, tuple[Value, ...]] = {}
        ranges: dict[str, Range] = {}
        for condition in _CONDITION.finditer(parts["where"]):
            column = condition["column"]
            if condition["list"] is not None:
                equal[column] = tuple(map(constant, CONSTANT.findall(condition["list"])))
            elif condition["op"] == "=":
                equal[column] = (constant(condition["value"]),)
            else:
                ranges[column] = _narrowed(ranges.get(column, Range()), condition)
        return Selection(id, parts["table"], shown, equal, ranges)


def is_on_offers(sql: str, catalog: Catalog) -> bool:
    """Whether it matches constraints with constraints, which no peer can express."""
    table = _FROM.search(sql)
    return table is not None and catalog.table(table[1]).rows == "constraints"


def constant(text: str) -> Value:
    value: Value = text[1:-1] if text.startswith("'") else json.loads(text)
    return value


def _narrowed(known: Range, condition: re.Match[str]) -> Range:
    if condition["low"] is not None:
        return Range(constant(condition["low"]), constant(condition["high"]))
    op, end = condition["op"], constant(condition["value"])
    if op in ("<", ">"):
        # Only numbers are compared so: the next one up or down makes the end inclusive.
        end = math.nextafter(float(end), -math.inf if op == "<" else math.inf)
    return known._replace(high=end) if op.startswith("<") else known._replace(low=end)


class Change(NamedTuple):
    seq: int
    table: str
    old: Row | None
    new: Row | None


class CurrentRows:
    """All rows of all tables, by key. Changes of offers are passed over: they have neither an old row nor a new one."""

    def __init__(self, catalog: Catalog) -> None:
        self._keys = {table.name: table.key for table in catalog.tables}
        self.tables: dict[str, dict[object, Row]] = {table.name: {} for table in catalog.tables}
        self._decode = msgspec.json.Decoder().decode

    def apply(self, line: bytes) -> Change:
        record = self._decode(line)
        table, row = record["table"], record.get("row")
        if row is None:
            return Change(record["seq"], table, None, None)
        rows, key = self.tables[table], tuple(row[name] for name in self._keys[table])
        if record["op"] == "delete":
            return Change(record["seq"], table, rows.pop(key), None)
        old = rows.get(key)
        rows[key] = row
        return Change(record["seq"], table, old, row)


class Writer:
    """Notification lines of selections, which are known by their numbers."""

    def __init__(self, selections: Sequence[Selection]) -> None:
        self._selections = selections
        order = sorted(range(len(selections)), key=lambda number: selections[number].id)
        self._rank = [0] * len(selections)
        for rank, number in enumerate(order):
            self._rank[number] = rank

    def lines(self, change: Change, before: set[int], after: set[int]) -> list[str]:
        """Lines of those that had the old row and those that have the new one, in order of their ids."""
        lines = []
        tails: dict[tuple[object, ...], str] = {}
        for number in sorted(before | after, key=self._rank.__getitem__):
            selection = self._selections[number]
            had, has = number in before, number in after
            tail = tails.get((selection.shown, had, has))
            if tail is None:
                tail = _tail(change, selection.shown, had, has)
                tails[selection.shown, had, has] = tail
            if tail:
                lines.append(f'{{"subscription": "{selection.id}"{tail}')
        return lines


def _tail(change: Change, shown: Sequence[str], had: bool, has: bool) -> str:
    """The rest of a line; empty where what is shown stays as it was."""
    old, new = row_text(change.old, shown) if had else "", row_text(change.new, shown) if has else ""
    if old == new:
        return ""
    if not old:
        told = f'{{"op": "insert", "row": {new}}}'
    elif not new:
        told = f'{{"op": "delete", "row": {old}}}'
    else:
        told = f'{{"op": "update", "old": {old}, "row": {new}}}'
    return f', "seq": {change.seq}, "snapshot": false, "changes": [{told}]}}'


def row_text(row: Row | None, shown: Sequence[str]) -> str:
    assert row is not None
    return "{" + ", ".join(f'"{column}": {cell_text(row[column])}' for column in shown) + "}"


def cell_text(value: Any) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    return "null" if value is None else repr(value)


def read_queries(lines: Iterable[bytes]) -> list[tuple[str, str]]:
    """(id, SQL) of lines of subscriptions."""
    return [(record["id"], record["sql"]) for record in map(msgspec.json.decode, lines)]
