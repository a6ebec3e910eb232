"""Do all ways of matching find the same pairs of constraints? Each is given the same ones, and they are compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from tidings.bench import Say
from tidings.families.offers.constraint import Box, boxes_of
from tidings.families.offers.matching import matching_disjuncts
from tidings.model.catalog import Catalog, Table
from tidings.sql import parse_catalog
from tidings.sql.conditions import ConditionCompiler

Pairs = set[tuple[str, str]]
"""(id of a publication, id of a subscription)."""

_EXAMPLES = 5


@dataclass(frozen=True)
class Constraints:
    """Both sides as conditions by id, on the attributes of one table of the catalog."""

    catalog_sql: str
    table_name: str
    publications: Mapping[str, str]
    subscriptions: Mapping[str, str]

    @cached_property
    def catalog(self) -> Catalog:
        return parse_catalog(self.catalog_sql)

    @property
    def table(self) -> Table:
        return self.catalog.table(self.table_name)

    @cached_property
    def publication_boxes(self) -> dict[str, tuple[Box, ...]]:
        return self._boxes(self.publications)

    @cached_property
    def subscription_boxes(self) -> dict[str, tuple[Box, ...]]:
        return self._boxes(self.subscriptions)

    def _boxes(self, conditions: Mapping[str, str]) -> dict[str, tuple[Box, ...]]:
        compiler, found = ConditionCompiler(self.catalog, self.table), {}
        for id, where in conditions.items():
            statement = compiler.compile(where)
            found[id] = boxes_of(statement.shape, statement.constants, self.table)
        return found


Way = Callable[[Constraints], Pairs]


def by_definition(constraints: Constraints) -> Pairs:
    """Every pair by itself, in plain Python: about 6 us each."""
    is_classic = constraints.table.constraints.is_classic
    return {
        (p, s)
        for p, ours in constraints.publication_boxes.items()
        for s, theirs in constraints.subscription_boxes.items()
        if any(True for _ in matching_disjuncts(ours, theirs, is_classic=is_classic))
    }


def in_postgres(constraints: Constraints) -> Pairs:
    """The relational architecture in PostgreSQL, in a server that is started for it."""
    from research.bench.offers.relational_postgres import relational_postgres

    with relational_postgres(constraints.table) as database:
        database.subscribe(constraints.subscription_boxes.items())
        database.index()
        database.publish(constraints.publication_boxes.items())
        return set(database.match())


def on_spark(constraints: Constraints) -> Pairs:
    """The relational architecture on Spark, in the session that runs or one that is started for it."""
    import pyarrow as pa

    from research.strategies.offers.spark_matching import match_relational
    from tidings.spark.session import spark_session

    def frame(conditions: Mapping[str, str]) -> Any:
        return spark.createDataFrame(pa.table({"id": list(conditions), "where": list(conditions.values())}))

    with (
        spark_session("tidings agreement") as spark,
        match_relational(
            spark,
            constraints.catalog_sql,
            constraints.table_name,
            frame(constraints.publications),
            frame(constraints.subscriptions),
        ) as found,
    ):
        pairs = found.pairs.toArrow()
        return set(zip(pairs.column("p_id").to_pylist(), pairs.column("s_id").to_pylist(), strict=True))


def by_index(constraints: Constraints) -> Pairs:
    """The index of boxes that the engine searches: subscriptions are added, then all publications are matched at once."""
    import numpy as np

    from tidings.families.offers.constraint import pack
    from tidings.families.offers.kernels.box_index import BoxIndex
    from tidings.families.offers.kernels.packed import BoxBatch, read_batch

    def batch(given: Mapping[str, tuple[Box, ...]]) -> BoxBatch:
        parts = [pack(boxes) for boxes in given.values()]
        starts = np.cumsum([0, *map(len, parts)], dtype=np.int64)[:-1]
        return read_batch(np.frombuffer(bytearray(b"".join(parts)), np.uint8), starts)

    table = constraints.table
    index = BoxIndex([axis.type.is_lossy for axis in table.axes], is_classic=table.constraints.is_classic)
    index.add(np.arange(len(constraints.subscription_boxes)), batch(constraints.subscription_boxes))
    ours, theirs = list(constraints.publications), list(constraints.subscriptions)
    return {(ours[p], theirs[s]) for p, s, *_ in index.match(batch(constraints.publication_boxes)).tolist()}


WAYS: Mapping[str, Way] = {
    "definition": by_definition,
    "postgres": in_postgres,
    "spark": on_spark,
    "boxes": by_index,
}


@dataclass(frozen=True)
class Agreement:
    """What each way found, and how long it took, with loading, starting a server and the like."""

    found: Mapping[str, Pairs]
    seconds: Mapping[str, float]

    @property
    def pairs(self) -> Pairs:
        """What the first way found."""
        return next(iter(self.found.values()))

    def differences(self) -> list[str]:
        """A line for each way that found anything else than the first; none if all agree."""
        first = next(iter(self.found))
        lines = []
        for name, pairs in self.found.items():
            missing, more = self.pairs - pairs, pairs - self.pairs
            if missing or more:
                shown = ", ".join(map(str, islice(sorted(missing | more), _EXAMPLES)))
                lines.append(f"{name} misses {len(missing):,} pairs of {first} and has {len(more):,} more, as {shown}")
        return lines


def compare(
    publications: Mapping[str, str],
    subscriptions: Mapping[str, str],
    *,
    catalog_sql: str,
    table: str,
    ways: Mapping[str, Way] = WAYS,
    say: Say = lambda _: None,
) -> Agreement:
    """Matches the constraints, given as conditions by id, in all ways. SqlError if one of them cannot be used."""
    constraints = Constraints(catalog_sql, table, publications, subscriptions)
    say(
        f"compiling {len(constraints.publication_boxes):,} publications, {len(constraints.subscription_boxes):,} subscriptions"
    )
    found: dict[str, Pairs] = {}
    seconds: dict[str, float] = {}
    for name, way in ways.items():
        started = time.perf_counter()
        found[name] = way(constraints)
        seconds[name] = time.perf_counter() - started
        say(f"{name}: {len(found[name]):,} pairs in {seconds[name]:.1f} s")
    return Agreement(found, seconds)
