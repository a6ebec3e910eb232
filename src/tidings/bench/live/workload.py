"""What the live bench works on: two tables, transactions on them, and subscriptions of every family. All from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

CATALOG = """
CREATE TABLE items (id BIGINT PRIMARY KEY, kind TEXT, price DOUBLE, stock BIGINT);
CREATE TABLE bids (id BIGINT PRIMARY KEY, item BIGINT, amount DOUBLE, bidder TEXT);
"""
COLUMNS = {"items": ("id", "kind", "price", "stock"), "bids": ("id", "item", "amount", "bidder")}
ITEMS, BIDS, KINDS, WRITERS = 2_000, 4_000, 100, 2
_ROLLED_BACK = 0.1

Row = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One change of a transaction. key: of the row before; row: after it; None: there is none."""

    table: str
    key: int | None
    row: Row | None


@dataclass(frozen=True)
class Transaction:
    changes: list[Change]
    is_rolled_back: bool


def first_rows(seed: int) -> dict[str, list[Row]]:
    choose = random.Random(seed)
    items = [
        {"id": id, "kind": f"k{id % KINDS}", "price": _price(choose), "stock": choose.randrange(100)}
        for id in range(ITEMS)
    ]
    bids = [
        {"id": id, "item": choose.randrange(ITEMS), "amount": _price(choose), "bidder": f"b{id % 50}"}
        for id in range(BIDS)
    ]
    return {"items": items, "bids": bids}


@dataclass
class Writer:
    """Makes transactions over its share of the rows: those whose id has the writer's number modulo WRITERS.

    statements: changes of a transaction, at most.
    """

    number: int
    seed: int
    statements: int
    tables: dict[str, dict[int, Row]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._choose = random.Random(f"{self.seed}-{self.number}")
        self.tables = {
            name: {row["id"]: row for row in rows if row["id"] % WRITERS == self.number}
            for name, rows in first_rows(self.seed).items()
        }
        self._next = {"items": ITEMS + self.number, "bids": BIDS + self.number}

    def transactions(self) -> Iterator[Transaction]:
        """Without end. A transaction is taken to have happened when the next one is asked for."""
        choose = self._choose
        while True:
            before = (
                {name: dict(rows) for name, rows in self.tables.items()} if choose.random() < _ROLLED_BACK else None
            )
            changes = [self._change() for _ in range(choose.randint(1, self.statements))]
            yield Transaction(changes, before is not None)
            if before is not None:
                self.tables = before

    def _change(self) -> Change:
        choose = self._choose
        table = "items" if choose.random() < 0.6 else "bids"
        rows, kind = self.tables[table], choose.random()
        if kind < 0.1 or len(rows) < 10:
            row = self._row(table, self._fresh(table))
            rows[row["id"]] = row
            return Change(table, None, row)
        key = choose.choice(list(rows)) if len(rows) < 50 else self._some(rows)
        old = rows.pop(key)
        if kind < 0.2:
            return Change(table, key, None)
        moved = "price" if table == "items" else "amount"
        row = {**old, moved: max(0.01, round(old[moved] * choose.uniform(0.93, 1.07), 2))}
        if kind < 0.24:
            row["id"] = self._fresh(table)
        rows[row["id"]] = row
        return Change(table, key, row)

    def _some(self, rows: dict[int, Row]) -> int:
        """A key of a random row, in constant time: the oldest of the table, which then becomes the newest."""
        for _ in range(self._choose.randrange(1, 5)):
            key = next(iter(rows))
            rows[key] = rows.pop(key)
        return next(iter(rows))

    def _fresh(self, table: str) -> int:
        self._next[table] += WRITERS
        return self._next[table]

    def _row(self, table: str, id: int) -> Row:
        choose = self._choose
        if table == "items":
            return {
                "id": id,
                "kind": f"k{choose.randrange(KINDS)}",
                "price": _price(choose),
                "stock": choose.randrange(100),
            }
        known = self.tables["items"]
        return {"id": id, "item": next(iter(known)), "amount": _price(choose), "bidder": f"b{choose.randrange(50)}"}


@dataclass(frozen=True)
class Subscription:
    """recomputed: SQL that gives the view's rows in the end; empty for drift, whose view depends on the way there."""

    id: str
    sql: str
    recomputed: str


def subscriptions(count: int, seed: int) -> list[Subscription]:
    """Four in ten selections, two top-k, two joins, two drift."""
    choose = random.Random(seed + 1)
    found = []
    for number in range(count):
        kind, low = f"k{choose.randrange(KINDS)}", _price(choose)
        high = round(low + choose.uniform(0, 100), 2)
        share = number % 10
        recomputed = ""
        if share < 4:
            sql = f"SELECT * FROM items WHERE kind = '{kind}' AND price BETWEEN {low} AND {high}"
            if share == 3:
                either = f"(price < {low} OR stock >= {choose.randrange(100)})"
                sql = f"SELECT id, price FROM items WHERE kind = '{kind}' AND {either}"
            recomputed = sql
        elif share < 6:
            where = f"kind = '{kind}'" if share == 4 else f"kind = '{kind}' AND price BETWEEN {low} AND {high}"
            order = choose.choice(["price", "price DESC"])
            sql = f"SELECT * FROM items WHERE {where} ORDER BY {order} LIMIT"
            limit = choose.randrange(1, 10)
            sql, recomputed = f"{sql} {limit}", f"{sql[:-6]}, id LIMIT {limit}"
        elif share < 8:
            where = f"items.kind = '{kind}' AND bids.amount BETWEEN {low} AND {high}"
            recomputed = sql = f"SELECT * FROM items JOIN bids ON items.id = bids.item WHERE {where}"
        elif share == 8:
            sql = f"SELECT * FROM items WHERE id = {choose.randrange(ITEMS)} AND moved(price) >= {choose.randrange(1, 20)}"
        else:
            keys = ", ".join(str(choose.randrange(ITEMS)) for _ in range(3))
            sql = f"SELECT * FROM items WHERE id IN ({keys}) AND moved_percent(price) >= {choose.randrange(5, 50)}"
        found.append(Subscription(f"s{number}", sql, recomputed))
    return found


def _price(choose: random.Random) -> float:
    return round(choose.uniform(1, 1000), 2)
