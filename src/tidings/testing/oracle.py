"""The oracle: every answer recomputed from scratch after every change, and the notifications that follow from it.

It shares only the SQL compiler and `Family.reference`, the definition of answers, with the pipeline.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tidings.families.optional import HoldingReference
from tidings.families.protocols import PlainTables
from tidings.families.registry import classify
from tidings.model.catalog import Catalog
from tidings.sql import Compiler, Statement
from tidings.testing.plain import Answer, answer_of, read_record
from tidings.testing.workload import Record, Workload


@dataclass(frozen=True)
class Expected:
    """An expected notification: the answer of the subscription before and after."""

    id: str
    seq: int
    is_snapshot: bool
    before: Answer
    after: Answer

    @property
    def place(self) -> tuple[int, str, bool]:
        """Sort key of its line: by seq, then id, a change before the snapshot of a subscription created again."""
        return self.seq, self.id, self.is_snapshot


@dataclass
class Followed:
    """A query and its latest answer. held: state of a `HoldingReference`."""

    statement: Statement
    held: Any = None
    answer: Answer = field(default_factory=Counter)


class Recomputation:
    """Plain tables and live subscriptions; recomputes all answers at every step."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.tables: PlainTables = {table.name: {} for table in catalog.tables}
        self.live: dict[str, Followed] = {}
        self.expected: list[Expected] = []
        self._compiler = Compiler(catalog)
        self._passed = 0
        self._now = dt.datetime.min

    def follow(self, followed: Followed) -> Followed:
        """Recomputes the answer from the current tables. Returns its argument."""
        shape, constants = followed.statement.shape, followed.statement.constants
        reference = classify(followed.statement, self.catalog).reference
        if isinstance(reference, HoldingReference):
            followed.held = reference.hold(shape, constants, self.catalog, self.tables, followed.held)
        followed.answer = answer_of(reference.answer(shape, constants, self.catalog, self.tables, followed.held))
        return followed

    def register(self, record: Record) -> None:
        """Applies a creation or a drop. Ignores one that contradicts the live subscriptions."""
        id = record["id"]
        if record.get("drop"):
            self.live.pop(id, None)
        elif id not in self.live:
            created = self.live[id] = self.follow(Followed(self._compiler.compile(record["sql"])))
            snapshot = Expected(id, record.get("after", 0), True, Counter(), created.answer)
            # Of several lives that begin at one seq, only the last has a snapshot.
            self.expected = [entry for entry in self.expected if entry.place != snapshot.place]
            self.expected.append(snapshot)

    def commit(self, records: Sequence[Record]) -> bool:
        """Applies the changes of a commit and compares all answers. Returns False if it alters nothing."""
        is_changed = False
        for record in records:
            if record["seq"] > self._passed:
                self._passed = record["seq"]
                has_expired, is_applied = self._expire(record), self._apply(record)
                is_changed |= has_expired or is_applied
        if not is_changed:
            return False
        for id, subscription in self.live.items():
            before = subscription.answer
            after = self.follow(subscription).answer
            if after != before:
                self.expected.append(Expected(id, self._passed, False, before, after))
        self.let_go()
        return True

    def let_go(self) -> None:
        """Removes the rows of tables that keep none. Nobody is told."""
        for table in self.catalog.tables:
            if not table.constraints.is_kept and self.tables[table.name]:
                self.tables[table.name].clear()
                for subscription in self.live.values():
                    self.follow(subscription)

    def _expire(self, record: Record) -> bool:
        """Removes the rows of constraints that are gone when this record comes; whether there were any."""
        if record.get("time") is not None:
            self._now = max(self._now, read_record(self.catalog.table(record["table"]), record)["time"])
        has_expired = False
        for table in self.catalog.tables:
            if table.has_constraints:
                rows = self.tables[table.name]
                for key, row in list(rows.items()):
                    by_seq = row["expires"] is not None and row["expires"] <= record["seq"]
                    if by_seq or (row["until"] is not None and row["until"] <= self._now):
                        del rows[key]
                        has_expired = True
        return has_expired

    def _apply(self, record: Record) -> bool:
        table = self.catalog.table(record["table"])
        row = read_record(table, record)
        rows = self.tables[table.name]
        key = tuple(row[name] for name in table.key)
        is_there = key in rows and table.constraints.is_kept
        if (record["op"] in ("update", "delete") and not is_there) or (record["op"] == "insert" and is_there):
            return False
        if record["op"] == "delete":
            del rows[key]
        else:
            rows[key] = row
        return True


def walk(workload: Workload, recomputation: Recomputation) -> None:
    """Feeds subscriptions and changes in sequence order: an event `after` n comes behind the commit that change n is of."""
    events = sorted(workload.subscriptions, key=lambda record: int(record.get("after", 0)))
    done = passed = 0
    for commit in workload.commits():
        admitted = [record for record in commit if record["seq"] > passed]
        while done < len(events) and admitted and events[done].get("after", 0) < admitted[0]["seq"]:
            recomputation.register(events[done] | {"after": max(passed, events[done].get("after", 0))})
            done += 1
        recomputation.commit(commit)
        passed = max([passed, *(record["seq"] for record in commit)])
    for event in events[done:]:
        recomputation.register(event | {"after": max(passed, event.get("after", 0))})


def recompute(workload: Workload) -> list[Expected]:
    """All expected notifications, in the order of `out.jsonl`."""
    recomputation = Recomputation(workload.catalog)
    walk(workload, recomputation)
    return sorted(recomputation.expected, key=lambda expected: expected.place)


def oracle_lines(workload: Workload) -> list[str]:
    """The very lines of `out.jsonl`, for families whose answers change by at most one old and one new row a change."""
    return [_line(expected) for expected in recompute(workload)]


def _line(expected: Expected) -> str:
    gone, come = (
        list((expected.before - expected.after).elements()),
        list((expected.after - expected.before).elements()),
    )
    if expected.is_snapshot:
        changes = [{"op": "insert", "row": json.loads(row)} for row in sorted(come)]
    elif gone and come:
        changes = [{"op": "update", "old": json.loads(gone[0]), "row": json.loads(come[0])}]
    else:
        changes = [{"op": "delete", "row": json.loads(row)} for row in gone]
        changes += [{"op": "insert", "row": json.loads(row)} for row in come]
    record = {"subscription": expected.id, "seq": expected.seq, "snapshot": expected.is_snapshot, "changes": changes}
    return json.dumps(record, ensure_ascii=False)
