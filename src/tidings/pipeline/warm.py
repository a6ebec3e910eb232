"""Compiles or loads all kernels of replicas by running one on a few records: every family, creations, drops and a restart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np

from tidings.families.offers.constraint import Box, pack
from tidings.families.offers.kernels.box_index import BoxIndex
from tidings.families.offers.kernels.box_index.box_layout import LEAF
from tidings.families.offers.kernels.packed import read_batch
from tidings.kernels.lines import index_lines, merge_lines
from tidings.kernels.stabbing import BoxShape, StabbingIndex
from tidings.pipeline.door import Door
from tidings.pipeline.replica.replica import Replica
from tidings.sql import parse_catalog

_CATALOG = """
CREATE TABLE stocks (symbol TEXT PRIMARY KEY, sector TEXT, price DOUBLE);
CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol TEXT, rating DOUBLE);
CREATE TABLE market (topic TEXT, price DOUBLE) WITH (rows = 'constraints');
"""
_SELECT = (
    "SELECT * FROM stocks WHERE sector IN ('a', 'b') AND price >= 1",
    "SELECT symbol FROM stocks WHERE symbol BETWEEN 'a' AND 'x'",
)
_DRIFT = (
    "SELECT * FROM stocks WHERE symbol = 'x' AND moved(price) >= 1",
    "SELECT * FROM stocks WHERE moved_percent(price) >= 1",
)
_STAYS = "SELECT * FROM reviews WHERE moved(rating) >= 1"
"""Follows another table, so that rows of the first are forgotten one by one when nobody follows them any more."""
_TOPK = ("SELECT * FROM stocks WHERE sector = 'a' AND price >= 1 ORDER BY price LIMIT 1",)
_JOIN = ("SELECT * FROM stocks JOIN reviews USING (symbol) WHERE sector = 'a' AND rating >= 1",)
_OFFERS = (
    "SELECT * FROM market WHERE topic = 'a' AND price >= 1",
    "SELECT * FROM market WHERE topic BETWEEN 'a' AND 'x' AND price <> 2 ORDER BY price LIMIT 1",
)
_ROWS = (
    ("stocks", "insert", '"symbol": "x", "sector": "a", "price": 1.5'),
    ("reviews", "insert", '"id": 1, "symbol": "x", "rating": 2.5'),
    ("stocks", "insert", '"symbol": "y", "sector": "a", "price": 9'),
    ("stocks", "update", '"symbol": "x", "sector": "b", "price": 3.5'),
    ("stocks", "update", '"symbol": "x", "sector": "a", "price": 4.5'),
    ("stocks", "delete", '"symbol": "x"'),
)
_PUBLICATIONS = (
    ("insert", '"id": "p", "where": "topic = \'a\' AND price >= 1", "expires": 5'),
    ("insert", '"id": "q", "where": "topic LIKE \'a%\' OR price = 2"'),
    ("insert", '"id": "r", "where": "topic = \'a\'"'),
    ("update", '"id": "q", "where": "topic = \'a\' AND price < 2"'),
    ("upsert", '"id": "p", "where": "price < 2"'),
    ("delete", '"id": "r"'),
)


def warm_select() -> None:
    _live(_SELECT)
    _commit()


def _commit() -> None:
    """Compiles what transactions need, and the writing of lines. Some changes of the second transaction come to nothing."""
    catalog = parse_catalog(_CATALOG)
    door = Door(catalog)
    for sql in _SELECT:
        door.create(sql, sql, 0)
    replica = Replica(catalog)
    seqs = count(1)
    for transaction in ((0, 2, 3), (3, 4, 3)):
        lines = [
            f'{{"seq": {next(seqs)}, "tx": "t", "table": "stocks", "op": "upsert", "row": {{{_ROWS[number][2]}}}}}'.encode()
            for number in transaction
        ]
        list(replica.apply(lines, replica.passed, door.take()).notifications.text())


def warm_drift() -> None:
    _live(_DRIFT, _STAYS)


def warm_topk() -> None:
    _live(_TOPK)


def warm_join() -> None:
    _live(_JOIN)


def warm_offers() -> None:
    _live(_OFFERS, lines=_published())
    _search()


def _search() -> None:
    """Compiles what an index of boxes needs only when it is large."""
    index = BoxIndex((False, False))
    boxes = [Box((0, 1), (at, at), (at + 1, at + 1), (None, None)) for at in range(2 * LEAF + 1)]
    packed = [pack([box]) for box in boxes]
    batch = read_batch(np.frombuffer(bytearray(b"".join(packed)), np.uint8), np.arange(len(packed)) * len(packed[0]))
    index.add(np.arange(len(boxes)), batch)
    index.run_min = index.compared_max = index.dead_min = 0
    index.match(batch)
    index.remove(np.arange(1, len(boxes)))


def warm_index() -> None:
    """Compiles the kernels that several families share beside those of the rows: stabbing index, merging of lines."""
    index = StabbingIndex(1)
    one = np.zeros(1, np.int64)
    index.remove(index.add(BoxShape((0,), (), ()), one, one, one.reshape(1, 1), [None], one.reshape(1, 1)[:, :0]))
    line = np.frombuffer(b'{"subscription": "a", "seq": 1, "snapshot": false, "changes": []}\n', np.uint8)
    merge_lines(line, index_lines(line), line, index_lines(line))


STEPS = (warm_select, warm_index, warm_join, warm_topk, warm_offers, warm_drift)
"""Independent of each other, so that processes may run them in parallel. The slowest come first."""


def warm() -> None:
    """Runs all steps. Takes a minute or two if nothing has been compiled yet, else the time to load machine code."""
    for step in STEPS:
        step()


def _live(queries: Sequence[str], *staying: str, lines: Sequence[bytes] = ()) -> None:
    """Runs a replica with these queries: creations, drops, all records of _ROWS, and a restart.

    staying: are not dropped. lines: other records than those of _ROWS.
    """
    catalog = parse_catalog(_CATALOG)
    door, lines = Door(catalog), lines or _lines()
    _enter(door, queries)
    for sql in staying:
        door.create(sql, sql, 0)
    replica = Replica(catalog, keeps_points=True)
    replica.apply(lines[:3], 0, door.take())
    again = Replica(catalog, keeps_points=True)
    again.load(replica.dump())
    for position in range(3, len(lines)):
        again.apply(lines[position : position + 1], position)


def _enter(door: Door, queries: Sequence[str]) -> None:
    """Subscriptions from the start and later ones, all of which go again."""
    for after in (0, 2):
        for number, sql in enumerate(queries):
            door.create(f"{after}-{number}", sql, after)
            door.drop(f"{after}-{number}", after + 3)


def _lines() -> list[bytes]:
    return [
        f'{{"seq": {seq}, "table": "{table}", "op": "{op}", "row": {{{row}}}}}'.encode()
        for seq, (table, op, row) in enumerate(_ROWS, 1)
    ]


def _published() -> list[bytes]:
    return [
        f'{{"seq": {seq}, "table": "market", "op": "{op}", {fields}}}'.encode()
        for seq, (op, fields) in enumerate(_PUBLICATIONS, 1)
    ]
