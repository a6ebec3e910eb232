"""A case: one workload for one family, and how to run and judge it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tidings.families.optional import SHARED
from tidings.families.protocols import Family
from tidings.families.registry import needs_shared_rows, shares_rows
from tidings.model.catalog import Catalog
from tidings.pipeline.door import Door
from tidings.sql import Statement
from tidings.sql.shape import Shape
from tidings.testing.engines import RunEngine, run_inline
from tidings.testing.oracle import Expected, recompute
from tidings.testing.workload import Record, Workload, random_sizes

Bound = Callable[[Statement, Catalog, str, Record | None, Record | None], bool]
"""(query, catalog, table, old row, new row) -> whether the change may reach points of the query without altering its answer."""


def _is_exact(shape: Shape, catalog: Catalog) -> bool:
    """Whether regions of the shape are exact: codes of all range columns are, as for every type but text."""
    return not any(catalog.table(ref.table).axis(ref.column).type.is_lossy for ref in shape.ranges)


@dataclass
class Case:
    """Input of a check. rng: source of everything random in it: micro-batches, crashes, numbers of shards.

    The suite uses hypothesis' own `rng`, which shrinks together with the workload: towards few large micro-batches, the
    first strategy, no crashes and one shard.
    """

    family: Family
    workload: Workload
    rng: random.Random
    engine: RunEngine = run_inline
    oracle: Callable[[Workload], list[Expected]] = recompute
    has_exact_regions: Callable[[Shape, Catalog], bool] = _is_exact
    may_hear_twice: bool = False
    may_reach: Bound = lambda *_: True
    """Applies to points whose regions are not exact."""
    strategies: Sequence[str] = ()
    """Message strategies to choose from; empty: all of the family."""

    def sizes(self) -> list[int]:
        return random_sizes(len(self.workload.changes), self.rng)

    @property
    def shares_rows(self) -> bool:
        """Whether the family can evaluate the workload's subscriptions over shared rows."""
        door = Door(self.workload.catalog)
        door.read(self.workload.subscription_lines())
        return all(shares_rows(batch.form, {}) for batch in door.take())

    def by_messages(self) -> Case:
        """The same case without subscriptions that can only be evaluated over shared rows."""
        door = Door(self.workload.catalog)
        records = self.workload.subscriptions
        apart = {
            record["id"]
            for record in records
            if "sql" in record and needs_shared_rows(door.place(record["sql"], is_net="option" in record).form)
        }
        own = replace(self.workload, subscriptions=[record for record in records if record["id"] not in apart])
        other = replace(self, workload=own)
        other.rng = self.rng
        return other

    def strategy(self, name: str | None = None) -> dict[str, str]:
        """Options that choose the strategy `name`, or a random message strategy."""
        return {self.family.name: name or self.rng.choice(self.strategies or self.family.strategies)}

    def some_strategies(self) -> list[str]:
        """The first strategy and a random other, since families may have a dozen and each is run on the workload."""
        names = list(self.strategies or self.family.strategies)
        return [*names[:1], *self.rng.sample(names[1:], min(1, len(names[1:])))]

    def any_strategy(self) -> dict[str, str]:
        """Options that choose a random strategy: `shared` in half of the cases, else a message strategy."""
        is_shared = not self.strategies and (self.workload.has_transactions or not self.family.strategies)
        is_shared = is_shared or self.rng.random() < 0.5
        return self.strategy(SHARED if is_shared else None)

    def lines(self, strategy: dict[str, str], sizes: list[int] | None = None) -> list[str]:
        """The engine's lines for the workload."""
        workload = self.workload
        return self.engine(
            workload.catalog_sql,
            workload.subscription_lines(),
            workload.change_lines(),
            [len(workload.changes)] if sizes is None else sizes,
            strategy,
        )
