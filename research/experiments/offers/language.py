"""What the size of the language costs (section 4): queries by operators and types, and matches with predicates of five types.

A publication is five disjuncts, each of one comparison, and meets one subscription by each. In one case all compare integers,
in the other each compares another type.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from statistics import median
from typing import Any

import numpy as np

from research.bench.offers.cases import CASES, OffersData
from research.bench.offers.peers import find_postgres, timed_match
from research.experiments.offers.sweeps import EVERY_PAIR
from research.experiments.paper import Config, Rows, Say
from research.strategies.offers.relational import KINDS, pairs_in_use
from tidings.families.offers.constraint import Box, boxes_of, pack
from tidings.families.offers.kernels.box_index import BoxIndex
from tidings.families.offers.kernels.packed import BoxBatch, read_batch
from tidings.model.catalog import Table
from tidings.sql import parse_catalog
from tidings.sql.conditions import ConditionCompiler

_TYPES = {
    "BIGINT": "{}",
    "DOUBLE": "{}.5",
    "TEXT": "'t{}'",
    "POINT": "point({}, 0)",
    "BOX": "box({0}.25, 0, {0}.75, 1)",
}
"""Type -> how the constant of a number is written."""
_MATCHES = 40


def run(config: Config, seed: int, say: Say) -> Rows:
    rows: Rows = [_counts()]
    first = OffersData(CASES["conjunctions"], config["subscriptions"], 1, seed)
    ours, theirs = first.publications(100), first.subscriptions
    rows[0]["half"] = float(np.mean([(theirs.lo == lo).mean() for lo in ours.lo]))
    with ExitStack() as stack:
        postgres = find_postgres(stack, say)
        for name, types in (("integers", ["BIGINT"] * len(_TYPES)), ("types", list(_TYPES))):
            say(name)
            columns = ", ".join(f"a{i} {type}" for i, type in enumerate(types))
            sql = f"CREATE TABLE offers ({columns}) WITH (rows = 'constraints', matching = 'classic');"
            subscriptions, publications = _constraints(sql, types, config["subscriptions"], seed)
            row: dict[str, Any] = {"case": name, "index_ms": _index_ms(sql, subscriptions, publications)}
            if postgres is not None:
                with postgres.empty(sql) as database:
                    database.subscribe((str(i), boxes) for i, boxes in enumerate(subscriptions))
                    database.index()
                    seconds = []
                    for boxes in publications[:_MATCHES]:
                        database.publish([("0", boxes)])
                        timed_match(database)
                        taken, found = timed_match(database)
                        seconds.append(taken)
                        assert len(found) == len(types), "a publication meets another number of subscriptions"
                    row |= {"postgres_ms": 1e3 * median(seconds), "queries": len(database.pairs_in_use())}
            rows.append(row)
    return rows


def _counts() -> dict[str, Any]:
    """Numbers of queries: with one and with all operators of a type, and with one and with all types."""
    every = {kind: list(KINDS[kind].operators) for kind in KINDS}

    def queries(kinds: list[str], operators: int) -> int:
        used = [(kind, op) for kind in kinds for op in every[kind][:operators]]
        return len(pairs_in_use(used, used))

    most = len(every["integer"])
    return {
        "operators": most,
        "queries_of_operators": [queries(["integer"], count) for count in range(1, most + 1)],
        "queries_of_types": [queries(list(KINDS)[:count], most) for count in range(1, len(KINDS) + 1)],
        "queries": len(EVERY_PAIR),
    }


_Constraint = tuple[Box, ...]


def _constraints(
    catalog_sql: str, types: list[str], size: int, seed: int
) -> tuple[list[_Constraint], list[_Constraint]]:
    """Subscriptions, on each attribute as many with other constants each, and publications that meet one of each."""
    catalog = parse_catalog(catalog_sql)
    table = catalog.table("offers")
    compiler = ConditionCompiler(catalog, table)

    def boxes(where: str) -> _Constraint:
        statement = compiler.compile(where)
        return boxes_of(statement.shape, statement.constants, table)

    def equal(attribute: int, number: int) -> str:
        return f"a{attribute} = {_TYPES[types[attribute]].format(number)}"

    each = size // len(types)
    chosen = np.random.default_rng([seed, 3]).integers(0, each, (10 * _MATCHES, len(types))).tolist()
    subscriptions = [boxes(equal(attribute, number)) for number in range(each) for attribute in range(len(types))]
    publications = [boxes(" OR ".join(equal(i, number) for i, number in enumerate(numbers))) for numbers in chosen]
    return subscriptions, publications


def _index_ms(catalog_sql: str, subscriptions: list[_Constraint], publications: list[_Constraint]) -> float:
    table: Table = parse_catalog(catalog_sql).table("offers")
    index = BoxIndex([axis.type.is_lossy for axis in table.axes], is_classic=True)
    index.add(np.arange(len(subscriptions)), _batch(subscriptions))
    # The first searches make the views that later ones use.
    index.match(_batch(publications))
    seconds = []
    for each in [_batch([boxes]) for boxes in publications]:
        started = time.perf_counter()
        found = index.match(each)
        seconds.append(time.perf_counter() - started)
        assert len(found) == len(_TYPES), "a publication meets another number of subscriptions"
    return 1e3 * median(seconds)


def _batch(constraints: list[_Constraint]) -> BoxBatch:
    packs = [pack(boxes) for boxes in constraints]
    # Words are read at multiples of eight bytes.
    padded = [data + bytes(-len(data) % 8) for data in packs]
    starts = np.cumsum([0, *map(len, padded)])[:-1].astype(np.int64)
    return read_batch(np.frombuffer(bytearray(b"".join(padded)), np.uint8), starts)
