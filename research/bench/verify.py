"""The verifier of all benches: a small workload through the engine by every strategy, for thousands of changes.

After each change every answer is recomputed by the family's reference. The contract suite does the same with workloads made
to be difficult, of some dozens of changes; here a run is long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from research.stages.beside_rows import MessageEngine
from research.strategies.servers import SERVERS
from tidings.bench.report import Figure, Heading
from tidings.families import registry
from tidings.families.optional import HoldingReference
from tidings.families.protocols import PlainTables
from tidings.sql import Compiler, parse_catalog
from tidings.workloads.workload import Generator

_BATCHES = (1, 7, 30)
"""Sizes of micro-batches, used in turn."""

Answer = Counter[tuple[Any, ...]]
Moment = tuple[int, str]
"""(seq, subscription id)."""


@dataclass(frozen=True)
class Verified:
    """A workload small enough to recompute all answers after every change."""

    family: str
    workload: Generator
    rows: int
    subscriptions: int

    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies with region servers."""
        return tuple(SERVERS[self.family])

    def figures(self, changes: int, seed: int, strategies: Sequence[str] | None = None) -> Iterator[Figure]:
        """Verifies strategies. Raises AssertionError if an answer differs, or there is a notification without a change."""
        made = self.workload(seed=seed, rows=self.rows, subscriptions=self.subscriptions, changes=changes)
        files = Files(made.catalog_sql, list(made.subscriptions), list(made.changes))
        expected = files.expected()
        for strategy in strategies or self.strategies():
            wrong, told = compare(expected, files.notifications({self.family: strategy}))
            if wrong:
                raise AssertionError(f"{strategy}: {wrong} of the answers in {changes:,} changes differ")
            figure = Heading(f"verify.{strategy}", f"verify, {strategy}").figure
            yield figure("changes", "random changes against recomputation", "changes", changes)
            yield figure("told", "notifications in these", "notifications", told)
            yield figure("differences", "answers that differ, or told for nothing", "answers", wrong)


@dataclass(frozen=True)
class Files:
    """A workload as lines; no subscription is dropped."""

    catalog_sql: str
    subscriptions: list[bytes]
    changes: list[bytes]

    def expected(self) -> dict[Moment, Answer]:
        """(seq, id) -> answer by the definition, for new subscriptions and for answers that a change alters."""
        catalog = parse_catalog(self.catalog_sql)
        compiler = Compiler(catalog)
        keys = {table.name: table.key for table in catalog.tables}
        coming = [msgspec.json.decode(line) for line in reversed(self.subscriptions)]
        tables: PlainTables = {table.name: {} for table in catalog.tables}
        live: dict[str, Any] = {}
        held: dict[str, Any] = {}
        answers: dict[str, Answer] = {}
        expected: dict[Moment, Answer] = {}
        for record in [{"seq": 0}, *map(msgspec.json.decode, self.changes)]:
            seq = record["seq"]
            if seq:
                rows, row = tables[record["table"]], record["row"]
                key = tuple(row[name] for name in keys[record["table"]])
                if record["op"] == "delete":
                    del rows[key]
                else:
                    rows[key] = row
            come = set()
            while coming and coming[-1]["after"] <= seq:
                created = coming.pop()
                live[created["id"]] = compiler.compile(created["sql"])
                come.add(created["id"])
            for id, statement in live.items():
                query = (statement.shape, statement.constants, catalog, tables)
                reference = registry.classify(statement, catalog).reference
                if isinstance(reference, HoldingReference):
                    held[id] = reference.hold(*query, held.get(id))
                now = Counter(tuple(row.values()) for row in reference.answer(*query, held.get(id)))
                if id in come or now != answers[id]:
                    answers[id] = expected[seq, id] = now
        return expected

    def notifications(self, strategies: dict[str, str]) -> list[dict[str, Any]]:
        """The decoded notification lines of the engine."""
        engine = MessageEngine(parse_catalog(self.catalog_sql), strategies)
        assert engine.door.read(self.subscriptions) == []
        told: list[str] = []
        at = number = 0
        while at < len(self.changes):
            size = _BATCHES[number % len(_BATCHES)]
            told.extend(engine.feed(self.changes[at : at + size]).notifications.lines())
            at, number = at + size, number + 1
        told.extend(engine.finish().notifications.lines())
        return [msgspec.json.decode(line) for line in told]


def compare(expected: Mapping[Moment, Answer], told: list[dict[str, Any]]) -> tuple[int, int]:
    """(number of errors, number of notifications). Applies notifications to held rows, and compares these with `expected`."""
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
