"""Subscriptions of ever new shapes, of all families, and what a replica still holds when they are gone."""

from __future__ import annotations

import random
from typing import Any

from tidings.families.drift.kernels.audience_layout import GROUPS
from tidings.pipeline.replica.replica import Replica

CATALOG_SQL = """
CREATE TABLE quotes (market TEXT, symbol INT, price DOUBLE, volume BIGINT, note TEXT, PRIMARY KEY (market, symbol));
CREATE TABLE trades (id BIGINT PRIMARY KEY, market TEXT, symbol INT, lots INT, price DOUBLE, note TEXT);
"""
MARKETS = ("north", "south", 'w"est', "ö")
COLUMNS = {
    "quotes": ("market", "symbol", "price", "volume", "note"),
    "trades": ("id", "market", "symbol", "lots", "price", "note"),
}


def random_row(rng: random.Random, table: str) -> dict[str, Any]:
    """A row; keys are few, so that rows are often replaced."""
    note = rng.choice([None, "abcdefgh", "abcdefghi", "abcdefghj", "b"])
    price = rng.choice([None, 1.0, 2.0, 5.0, 10.0, 10.5])
    row: dict[str, Any] = {"market": rng.choice(MARKETS), "symbol": rng.randrange(4), "price": price, "note": note}
    if table == "quotes":
        return {**row, "volume": rng.choice([None, *range(5)])}
    return {"id": rng.randrange(8), **row, "lots": rng.choice([None, *range(5)])}


def random_change(rng: random.Random, seq: int) -> dict[str, Any]:
    table = rng.choice(["quotes", "trades"])
    op = rng.choice(["upsert", "upsert", "upsert", "delete"])
    return {"seq": seq, "table": table, "op": op, "row": random_row(rng, table)}


def _condition(rng: random.Random, table: str, column: str, *, is_plain: bool) -> str:
    name = f"{table}.{column}"
    if column in ("market", "note"):
        choices = [
            f"{name} = '{rng.choice(['north', 'b'])}'",
            f"{name} IN ('north', 'south', 'abcdefghi')",
            f"{name} >= 'abcdefghi'",
            f"{name} LIKE 'abcdefgh%'",
        ]
    else:
        choices = [
            f"{name} = {rng.randrange(4)}",
            f"{name} IN (1, {rng.randrange(2, 9)})",
            f"{name} >= {rng.randrange(6)}",
            f"{name} BETWEEN {rng.randrange(3)} AND {rng.randrange(3, 9)}",
        ]
    if not is_plain:
        choices += [f"{name} IS NULL", f"{name} <> {choices[0].split(' = ')[1]}", f"({choices[0]} OR {choices[2]})"]
    return rng.choice(choices)


def _where(rng: random.Random, tables: tuple[str, ...], *, is_plain: bool, excluded: tuple[str, ...] = ()) -> str:
    every = [(table, column) for table in tables for column in COLUMNS[table] if column not in excluded]
    chosen = rng.sample(every, rng.randrange(4))
    parts = [_condition(rng, table, column, is_plain=is_plain) for table, column in chosen]
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def _shown(rng: random.Random, tables: tuple[str, ...]) -> str:
    every = [f"{table}.{column}" for table in tables for column in COLUMNS[table]]
    return "*" if rng.random() < 0.2 else ", ".join(rng.sample(every, rng.randrange(1, 4)))


def random_query(rng: random.Random, families: tuple[str, ...] = ("select", "drift", "topk", "join")) -> str:
    """A query; there are many thousands of shapes."""
    family = rng.choice(families)
    table = rng.choice(["quotes", "trades"])
    shown = _shown(rng, (table,))
    if family == "select":
        return f"SELECT {shown} FROM {table}{_where(rng, (table,), is_plain=rng.random() < 0.5)}"
    if family == "topk":
        by = rng.choice(["price", "symbol", "volume" if table == "quotes" else "lots"])
        where = _where(rng, (table,), is_plain=True, excluded=("note", "market"))
        if rng.random() < 0.5:
            where += f"{' AND' if where else ' WHERE'} market IN ('north', 'south')"
        return (
            f"SELECT {shown} FROM {table}{where} ORDER BY {by}{rng.choice(['', ' DESC'])} LIMIT {rng.randrange(1, 4)}"
        )
    if family == "drift":
        column = rng.choice(["price", "volume" if table == "quotes" else "lots"])
        moved = rng.choice(["moved({}) >= 1", "moved_percent({}) >= 10", "moved_ratio({}) >= 1.5"]).format(column)
        pins = {
            "quotes": ["", "market = 'north' AND ", "symbol IN (1, 2) AND ", "market = 'north' AND symbol = 1 AND "],
            "trades": ["", "id = 3 AND ", "id IN (1, 2, 5) AND "],
        }
        return f"SELECT {shown} FROM {table} WHERE {rng.choice(pins[table])}{moved}"
    both = ("quotes", "trades")
    edges = [("market",), ("symbol",), ("market", "symbol"), ("price",), ("note",)]
    on = " AND ".join(f"quotes.{column} = trades.{column}" for column in rng.choice(edges))
    if rng.random() < 0.3:
        on = "quotes.volume = trades.lots"
    where = _where(rng, both, is_plain=rng.random() < 0.7)
    return f"SELECT {_shown(rng, both)} FROM quotes JOIN trades ON {on}{where}"


def left_behind(replica: Replica) -> dict[str, int]:
    """What the replica keeps for subscriptions, each as a count; leaves out what is 0."""
    subscriptions, forms = replica.subscriptions, replica._forms
    counts = {
        "subscriptions": len(subscriptions),
        "ids": len(subscriptions._order) + len(subscriptions.slots),
        "text of ids": subscriptions._text_end,
        "forms": len(forms),
        "projections": len(forms.projections),
        "held points": len(replica._held) + replica._held.forms,
        "held bytes": replica._held.nbytes,
        "pending": len(replica._pending),
    }
    known: dict[str, Any] = dict(replica._evaluators)
    if "select" in known:
        select = known["select"]
        counts["boxes of select"] = len(select.index) + select.index.records
        counts["predicates of select"] = int(select._members.has_predicate.sum())
    if "topk" in known:
        topk = known["topk"]
        counts["ranked tables"] = sum(one is not None for one in topk._ranked) + len(topk._numbers) + len(topk._plans)
    if "drift" in known:
        drift = known["drift"]
        counts["audiences"] = int(drift._audiences.head[GROUPS]) + len(drift._groupings) + sum(drift._users.values())
        counts["rows of drift"] = int((drift._audiences.row_of >= 0).sum())
        counts["closed groupings"] = len(drift._closed)
    if "join" in known:
        join = known["join"]
        counts["joins"] = len(join._forms) + sum(one is not None for one in join._signatures)
        counts["boxes of join"] = len(join._index) + join._index.records + join._side_index._index.records
        counts["sides"] = len(join._side_index._opened) + len(join._side_index._entered)
        counts["partners"] = len(join._relations.numbers)
        counts["tests of join"] = len(join._wide) + join._wide_bytes + len(join._coming)
    return {name: count for name, count in counts.items() if count}
