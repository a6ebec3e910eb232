"""The plan of least use within capacities, with a proof of how good it is.

prices      what a unit of each capacity is worth; a lower bound of the use of any plan
a plan      nodes are placed by reduced cost, who loses most first; then moved, and swapped, as long as that gains
the core    HiGHS, over the columns that prices leave open
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tidings.kernels.arrays import F64
from tidings.model.errors import TidingsError
from tidings.relay.planning.core import core_of, load_of, round_core, solve_core
from tidings.relay.planning.instance import UNLIMITED, Columns, Instance
from tidings.relay.planning.kernels.moves import move_each, place_by_regret, swap_each
from tidings.relay.planning.model import NO_ROW, Model, model_of
from tidings.relay.planning.prices import Dual, find_prices

PASSES_MAX = 20
"""Of moves and swaps."""
CORE_COLUMNS_MAX = 50_000
"""A linear program of this size takes seconds."""
INTEGER_COLUMNS_MAX = 10_000
"""So does an integer program of this one."""
SEARCH_NODES_MAX = 200
NO_COLUMN = -1
MOST = float(np.finfo(np.float64).max)
ROUNDING = 1e-6

Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Solution:
    """A valid plan.

    columns: of each node, the column that feeds it.
    use: the sum of their costs. No plan has less than `bound`.
    prices: of each pool, what one more unit of its capacity would save, about; `publisher_price` that of the publisher.
    """

    columns: Columns
    use: float
    bound: float
    prices: F64
    publisher_price: float

    @property
    def gap(self) -> float:
        """How much of the use might be saved by another plan, at most."""
        return max(0.0, self.use - self.bound) / self.use if self.use > 0 else 0.0


class Infeasible(TidingsError):
    """No plan was found in which the publisher feeds no more nodes than it may.

    needed: proven: the publisher feeds at least so many in any plan that keeps the other capacities. If this is no more than it
        may feed, there could be a plan, and it was not found.
    least_overflow: the plan in which the publisher feeds fewest, of those found. It is valid if the publisher may feed `fed`.
    """

    def __init__(self, capacity: int, needed: int, fed: int, least_overflow: Solution) -> None:
        self.capacity = capacity
        self.needed = needed
        self.fed = fed
        self.least_overflow = least_overflow
        must = f"by the rewritings considered it must feed at least {needed}"
        proof = must if needed > capacity else "whether there is one is not known"
        super().__init__(
            f"no plan in which the publisher feeds at most {capacity} views: {proof}; with {fed} there is a plan"
        )

    @property
    def is_proven(self) -> bool:
        return self.needed > self.capacity


def solve(
    instance: Instance,
    *,
    progress: Progress | None = None,
    core_columns_max: int = CORE_COLUMNS_MAX,
    integer_columns_max: int = INTEGER_COLUMNS_MAX,
    search_nodes_max: int = SEARCH_NODES_MAX,
) -> Solution:
    """The best plan found. Raises `Infeasible` if none was found in which the publisher feeds no more nodes than it may.

    progress: called with a sentence after each step.
    core_columns_max: how many columns, beyond one per node, a linear program has at most.
    integer_columns_max: how many an integer program has at most, likewise; 0: there is none, nor a linear one.
    search_nodes_max: how many nodes the integer program's search tree has at most.
    """
    limits = _Limits(core_columns_max, integer_columns_max, search_nodes_max)
    tell = progress or (lambda sentence: None)
    only_publisher = int(np.logical_and.reduceat(instance.is_published, instance.first_column[:-1]).sum())
    solution = None
    if only_publisher <= instance.publisher_capacity:
        solution = _solve(instance, None, tell, limits)
    if solution is not None:
        return solution
    tell("no plan yet within the publisher's capacity: looking for the least it must feed")
    fewest = _solve(_counting_publisher(instance), None, tell, limits)
    assert fewest is not None, "a publisher without limit can feed all"
    fed = round(fewest.use)
    allowed = max(fed, instance.publisher_capacity)
    solution = _solve(replace(instance, publisher_capacity=allowed), fewest.columns, tell, limits)
    assert solution is not None, "a plan was given"
    if allowed > instance.publisher_capacity:
        raise Infeasible(instance.publisher_capacity, int(np.ceil(fewest.bound - ROUNDING)), fed, solution)
    return solution


class _Limits(NamedTuple):
    core_columns: int
    integer_columns: int
    search_nodes: int


def _counting_publisher(instance: Instance) -> Instance:
    """The same nodes; the cost of a plan is how many of them the publisher feeds, as many as need be."""
    return replace(instance, cost=instance.is_published.astype(np.float64), publisher_capacity=UNLIMITED)


def _solve(instance: Instance, start: Columns | None, tell: Progress, limits: _Limits) -> Solution | None:
    """`start` is a valid plan to fall back on. None if no plan was found."""
    model = model_of(instance)
    tell(f"{model.nodes} nodes, {len(model.cost)} columns, {len(model.capacity)} capacities that could be exceeded")
    dual = find_prices(model)
    tell(f"bound {dual.value:.8g}, {np.count_nonzero(dual.price)} capacities have a price")
    search = _Search(model, dual, tell)
    search.place(np.full(model.nodes, NO_COLUMN))
    if start is not None:
        search.place(start)
    bound = dual.value
    if limits.integer_columns > 0 and search.value > bound:
        bound = max(bound, _search_core(model, dual, search, limits))
    if search.overflow > 0:
        return None
    prices = np.zeros(2 * instance.pools + 1)
    prices[model.pool_of_row] = dual.price
    use = instance.use(search.columns)
    return Solution(search.columns, use, min(bound, use), prices[: instance.pools], float(prices[instance.pools]))


def _search_core(model: Model, dual: Dual, search: _Search, limits: _Limits) -> float:
    """Gives plans to the search; returns a bound of the use of any plan."""
    slack = dual.slack(model)
    core = core_of(slack, search.value - dual.value, search.columns, limits.core_columns)
    if len(core.columns) - model.nodes > limits.integer_columns:
        rounded = round_core(model, core, search.columns)
        if rounded is None:
            return dual.value
        search.place(rounded)
        # Nodes that were not rounded can have any column of theirs, as far as there is room in the program.
        slack[~(rounded < 0)[model.rows.node_of]] = np.inf
        core = core_of(slack, MOST, search.columns, limits.integer_columns)
        outcome = solve_core(model, core, search.columns, limits.search_nodes)
        if outcome.plan is not None:
            search.place(outcome.plan)
        return dual.value
    outcome = solve_core(model, core, search.columns, limits.search_nodes)
    if outcome.plan is not None:
        search.place(outcome.plan)
    return min(outcome.bound, dual.value + core.excluded_slack)


class _Search:
    """The best plan so far, by `value`: its cost, and a penalty for each node too many that the publisher feeds."""

    def __init__(self, model: Model, dual: Dual, tell: Progress) -> None:
        self._model = model
        self._dual = dual
        self._tell = tell
        self._penalty = float(model.cost.max(initial=1.0)) * (model.nodes + 1)
        self.columns: Columns = model.rows.first_column[:-1]
        self.overflow = 0
        self.value = np.inf

    def place(self, columns: Columns) -> None:
        """Completes a plan, improves it, and keeps it if it is better than what there was. NO_COLUMN: the node has none yet."""
        model = self._model
        columns = columns.copy()
        load = load_of(model, columns[columns >= 0])
        for row in np.flatnonzero(load > model.capacity):
            # A program's solution may exceed a bandwidth by its tolerance.
            users = model.rows.user_column[model.rows.first_user[row] : model.rows.first_user[row + 1]]
            columns[model.rows.node_of[users[np.isin(users, columns)]]] = NO_COLUMN
            load = load_of(model, columns[columns >= 0])
        place_by_regret(model.rows, self._dual.reduced, columns, load)
        arguments = (model.rows, model.cost, model.publisher_row, self._penalty, columns, load)
        for _ in range(PASSES_MAX):
            if move_each(*arguments) + swap_each(*arguments) == 0.0:
                break
        excess = np.maximum(load - model.capacity, 0)
        overflow = int(excess[model.publisher_row]) if model.publisher_row != NO_ROW else 0
        assert excess.sum() == overflow, "only the publisher may feed more than it should"
        value = float(model.cost[columns].sum()) + overflow * self._penalty
        if value < self.value:
            self.columns, self.overflow, self.value = columns, overflow, value
        excuse = f", {overflow} nodes too many at the publisher" if overflow else ""
        self._tell(f"use {model.cost[columns].sum():.8g}, bound {self._dual.value:.8g}{excuse}")
