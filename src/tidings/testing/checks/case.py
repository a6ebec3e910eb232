"""A case: one workload for one family, and how to run and judge it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidings.families.optional import SHARED
from tidings.families.protocols import Family
from tidings.families.registry import sending_strategies, strategies_of
from tidings.testing.engines import RunEngine, run_inline
from tidings.testing.oracle import Expected, recompute
from tidings.testing.workload import Workload, random_sizes


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
    strategies: Sequence[str] = ()
    """Strategies to choose from; empty: all of the family."""

    def sizes(self) -> list[int]:
        return random_sizes(len(self.workload.changes), self.rng)

    def strategy(self, name: str) -> dict[str, str]:
        """Options that choose the strategy `name`."""
        return {self.family.name: name}

    def sending_strategies(self) -> list[str]:
        """The strategies by which rows find gateways that are to be checked."""
        names = self.strategies or strategies_of(self.family)
        return [name for name in names if sending_strategies(self.strategy(name))]

    def some_strategies(self) -> list[str]:
        """The first of these and a random other, since families may have a dozen and each is run on the workload."""
        names = self.sending_strategies()
        return [*names[:1], *self.rng.sample(names[1:], min(1, len(names[1:])))]

    def any_strategy(self) -> dict[str, str]:
        """Options that choose a random strategy: `shared` in half of the cases."""
        names = self.sending_strategies()
        return self.strategy(self.rng.choice(names) if names and self.rng.random() < 0.5 else SHARED)

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
