"""Compiles all that replicas use, by letting one live through a small market: every family, comings and goings, a restart."""

from __future__ import annotations

from tidings.kernels.lines import index_lines, merge_lines
from tidings.pipeline.door import Door
from tidings.pipeline.replica.replica import Replica
from tidings.sql import parse_catalog

_CATALOG = """
CREATE TABLE stocks (symbol TEXT PRIMARY KEY, sector TEXT, price DOUBLE);
CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol TEXT, rating DOUBLE);
"""
_QUERIES = (
    "SELECT * FROM stocks WHERE sector IN ('a', 'b') AND price >= 1",
    "SELECT symbol FROM stocks WHERE symbol BETWEEN 'a' AND 'x'",
    "SELECT * FROM stocks WHERE symbol = 'x' AND moved(price) >= 1",
    "SELECT * FROM stocks WHERE moved_percent(price) >= 1",
    "SELECT * FROM stocks WHERE sector = 'a' AND price >= 1 ORDER BY price LIMIT 1",
    "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE sector = 'a' AND rating >= 1",
)
_ROWS = (
    ("stocks", "insert", '"symbol": "x", "sector": "a", "price": 1.5'),
    ("reviews", "insert", '"id": 1, "symbol": "x", "rating": 2.5'),
    ("stocks", "insert", '"symbol": "y", "sector": "a", "price": 9'),
    ("stocks", "update", '"symbol": "x", "sector": "b", "price": 3.5'),
    ("stocks", "update", '"symbol": "x", "sector": "a", "price": 4.5'),
    ("stocks", "delete", '"symbol": "x"'),
)


def warm() -> None:
    """Takes a minute or two where nothing has been compiled yet, else the time to load it."""
    catalog = parse_catalog(_CATALOG)
    door = Door(catalog)
    for after in (0, 2):
        for number, sql in enumerate(_QUERIES):
            door.create(f"{after}-{number}", sql, after)
            door.drop(f"{after}-{number}", after + 3)
    lines = [
        f'{{"seq": {seq}, "table": "{table}", "op": "{op}", "row": {{{row}}}}}'.encode()
        for seq, (table, op, row) in enumerate(_ROWS, 1)
    ]
    replica = Replica(catalog, keeps_points=True)
    first, _ = replica.apply(lines[:3], 0, door.take())
    again = Replica(catalog, keeps_points=True)
    again.load(replica.dump())
    second, _ = again.apply(lines[3:], 3)
    merge_lines(first.data, index_lines(first.data), second.data, index_lines(second.data))
