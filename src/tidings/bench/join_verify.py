"""Random small scenes through the engine by every strategy, with everybody's answer compared with a plain recomputation.

Numbers are small, so that rows share their values and join values; rows of all tables come, go and change, and so do those
who want joins of two or three of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from tidings.engine import Engine
from tidings.families.join.reference import answer
from tidings.families.protocols import PlainTables
from tidings.model.catalog import Catalog
from tidings.sql import Compiler, parse_catalog
from tidings.workloads.join.multi import R, S, T
from tidings.workloads.join.tables import BINARY, GENERAL, JoinSchema, JoinTable

_MEMBERS, _KEYS, _LINKS, _VALUES = 10, 8, 3, 8
_CHANGES = 100
"""Of one scene."""
_LEAVE = 0.3
_GOES = 0.3
"""Share of the changes to a row that is there which take it away."""
_BATCHES = (1, 7, 30)
"""Changes that are handled at a time, one after the other."""
_TABLES_OF: Mapping[str, tuple[JoinSchema, tuple[tuple[int, ...], ...]]] = {
    "two tables": (BINARY, ((R, S),)),
    "up to three tables": (GENERAL, ((R, S), (R, S, T), (S, T))),
}
"""By name: a schema, and which of its tables are joined."""

Answer = Counter[tuple[Any, ...]]
Moment = tuple[int, str]
"""When, and who."""


def differences(strategies: tuple[str, ...], changes: int, seed: int) -> dict[str, tuple[int, int]]:
    """By strategy: (answers that differ or are told for nothing, notifications), over about so many changes."""
    found = dict.fromkeys(strategies, (0, 0))
    for number in range(max(1, changes // _CHANGES)):
        schema, joined = list(_TABLES_OF.values())[number % len(_TABLES_OF)]
        scene = _Scene.draw(schema, joined, np.random.default_rng([seed, changes, number]))
        expected = _expected(scene)
        for strategy in strategies:
            wrong, told = compare(expected, _notifications(scene, strategy))
            found[strategy] = (found[strategy][0] + wrong, found[strategy][1] + told)
    return found


@dataclass
class _Scene:
    catalog: Catalog
    queries: dict[str, tuple[str, int, int | None]] = field(default_factory=dict)
    """By subscription: SQL, after which change it comes, and after which it goes."""
    changes: list[tuple[str, str, str]] = field(default_factory=list)
    """Table, operation and row as JSON; the first has number 1."""

    @staticmethod
    def draw(schema: JoinSchema, joined: tuple[tuple[int, ...], ...], rng: np.random.Generator) -> _Scene:
        scene = _Scene(parse_catalog(schema.catalog_sql))
        for i in range(_MEMBERS):
            ends = np.sort(rng.integers(_VALUES, size=(len(schema.tables), 2)), axis=1).astype(np.float64)
            born = int(rng.integers(_CHANGES)) * int(rng.integers(2))
            died = int(rng.integers(born, _CHANGES)) if rng.random() < _LEAVE else None
            scene.queries[f"s{i}"] = (schema.sql(joined[i % len(joined)], ends.ravel().tolist()), born, died)
        tables = sorted({number for numbers in joined for number in numbers})
        there: set[tuple[int, int]] = set()
        for _ in range(_CHANGES):
            table, key = tables[int(rng.integers(len(tables)))], int(rng.integers(_KEYS))
            is_there = (table, key) in there
            if is_there and rng.random() < _GOES:
                there.remove((table, key))
                scene.changes.append((schema.tables[table].name, "delete", f'{{"id": {key}}}'))
            else:
                there.add((table, key))
                op = "update" if is_there else "insert"
                scene.changes.append((schema.tables[table].name, op, _row(schema.tables[table], key, rng)))
        return scene


def _row(table: JoinTable, key: int, rng: np.random.Generator) -> str:
    links = rng.integers(_LINKS, size=len(table.links)).tolist()
    return "{" + table.insert(key, links, float(rng.integers(_VALUES)), int(rng.integers(1, 12))) + "}"


def _expected(scene: _Scene) -> dict[Moment, Answer]:
    """Every answer that is new, by the definition: of those who come, and of those for whom a change makes a difference."""
    compiler = Compiler(scene.catalog)
    statements = {id: compiler.compile(sql) for id, (sql, _, _) in scene.queries.items()}
    tables: PlainTables = {table.name: {} for table in scene.catalog.tables}
    held: dict[str, Answer] = {}
    expected: dict[Moment, Answer] = {}
    for seq, (name, op, row) in enumerate([("", "", "{}"), *scene.changes]):
        given = msgspec.json.decode(row)
        if op == "delete":
            del tables[name][given["id"]]
        elif op:
            tables[name][given["id"]] = given
        for id, (_, born, died) in scene.queries.items():
            if born <= seq and (died is None or seq <= died):
                shape, constants = statements[id].shape, statements[id].constants
                now = Counter(tuple(found.values()) for found in answer(shape, constants, scene.catalog, tables))
                if id not in held or now != held[id]:
                    held[id] = expected[seq, id] = now
    return expected


def _notifications(scene: _Scene, strategy: str) -> list[dict[str, Any]]:
    """What the engine tells."""
    engine = Engine(scene.catalog, {"join": strategy})
    for id, (sql, born, died) in scene.queries.items():
        engine.door.create(id, sql, born)
        if died is not None:
            engine.door.drop(id, died)
    lines = [
        f'{{"seq": {seq}, "table": "{name}", "op": "{op}", "row": {row}}}'.encode()
        for seq, (name, op, row) in enumerate(scene.changes, 1)
    ]
    told: list[str] = []
    at, number = 0, 0
    while at < len(lines):
        size = _BATCHES[number % len(_BATCHES)]
        told.extend(engine.feed(lines[at : at + size]).notifications.lines())
        at, number = at + size, number + 1
    told.extend(engine.finish().notifications.lines())
    return [msgspec.json.decode(line) for line in told]


def compare(expected: Mapping[Moment, Answer], told: list[dict[str, Any]]) -> tuple[int, int]:
    """(what is wrong, notifications): lets everybody do as they are told, and looks at what they hold then."""
    held: dict[str, Answer] = {}
    missing = dict(expected)
    wrong = 0
    for notification in told:
        moment = notification["seq"], notification["subscription"]
        now: Answer = Counter() if notification["snapshot"] else held.get(moment[1], Counter()).copy()
        for change in notification["changes"]:
            if change["op"] != "insert":
                now.subtract([tuple(change["old" if change["op"] == "update" else "row"].values())])
            if change["op"] != "delete":
                now.update([tuple(change["row"].values())])
        held[moment[1]] = now = +now if min(now.values(), default=0) >= 0 else now
        wrong += now != missing.pop(moment, None)
    return wrong + len(missing), len(told)
