"""The plan of least use within capacities, with a proof of how good it is.

prices      dual coordinate ascent: what a unit of each capacity is worth; a lower bound of the use of any plan
a plan      nodes are placed by reduced cost, who loses most first; then moved, and swapped, as long as that gains
the core    HiGHS, over the columns that prices leave open
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tidings.kernels.arrays import F64, I64
from tidings.model.errors import TidingsError
from tidings.relay.planning.core import core_of, load_of, solve_core
from tidings.relay.planning.instance import UNLIMITED, Columns, Instance
from tidings.relay.planning.kernels.ascent import INFEASIBLE, ascend, reduce_costs
from tidings.relay.planning.kernels.moves import move_each, place_by_regret, swap_each
from tidings.relay.planning.model import NO_ROW, Model, model_of

GAIN_MIN = 5e-5
"""Sweeps over the prices go on while the bound rises by more than this part of it."""
SWEEPS_MAX = 200
SHARE = 0.5
"""Any price between two thresholds is as good for its own row. Half way leaves others most to gain."""
PASSES_MAX = 20
"""Of moves and swaps."""
CORE_COLUMNS_MAX = 30_000
CORE_NODES_MAX = 200
"""Nodes of the solver's search tree."""

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
        proof = f"it must feed at least {needed}" if needed > capacity else "whether there is one is not known"
        super().__init__(
            f"no plan in which the publisher feeds at most {capacity} nodes: {proof}; with {fed} there is a plan"
        )

    @property
    def is_proven(self) -> bool:
        return self.needed > self.capacity


@dataclass(eq=False)
class _Dual:
    """Prices of rows, and what follows from them: reduced cost of each column, the best column of each node, loads, value."""

    price: F64
    reduced: F64
    best: I64
    load: I64
    value: float


@dataclass(eq=False)
class _Plan:
    columns: Columns
    load: I64


def solve(
    instance: Instance,
    *,
    progress: Progress | None = None,
    core_columns_max: int = CORE_COLUMNS_MAX,
    core_nodes_max: int = CORE_NODES_MAX,
) -> Solution:
    """The best plan found. Raises `Infeasible` if the publisher would have to feed more nodes than it may, as far as is known.

    progress: called with a sentence after each step.
    core_columns_max: how many columns, beyond one per node, the integer program has at most; 0: it is left out.
    core_nodes_max: how many nodes its search tree has at most.
    """
    limits = (core_columns_max, core_nodes_max)
    tell = progress or (lambda sentence: None)
    only_publisher = int((np.diff(instance.first_column) == 1).sum())
    solution = None
    if only_publisher <= instance.publisher_capacity:
        solution = _solve(instance, None, tell, *limits)
    if solution is not None:
        return solution
    tell("no plan yet within the publisher's capacity: looking for the least it must feed")
    fewest = _solve(_counting_publisher(instance), None, tell, *limits)
    assert fewest is not None
    fed = int(fewest.use + 0.5)
    allowed = max(fed, instance.publisher_capacity)
    solution = _solve(replace(instance, publisher_capacity=allowed), fewest.columns, tell, *limits)
    assert solution is not None
    if allowed > instance.publisher_capacity:
        raise Infeasible(instance.publisher_capacity, int(np.ceil(fewest.bound - 1e-6)), fed, solution)
    return solution


def _counting_publisher(instance: Instance) -> Instance:
    """The same nodes; the cost of a plan is how many of them the publisher feeds, as many as need be."""
    cost = np.zeros(len(instance.cost))
    cost[instance.first_column[:-1]] = 1.0
    return replace(instance, cost=cost, publisher_capacity=UNLIMITED)


def _solve(
    instance: Instance, start: Columns | None, tell: Progress, core_columns_max: int, core_nodes_max: int
) -> Solution | None:
    """`start` is a valid plan to fall back on. None if no plan was found."""
    model = model_of(instance)
    tell(f"{model.nodes} nodes, {len(model.cost)} columns, {len(model.capacity)} capacities that could be exceeded")
    dual = _prices(model, tell)
    plan = _build(model, dual)
    if start is not None:
        other = _Plan(start.copy(), load_of(model, start))
        _improve(model, other)
        if not _is_valid(model, plan) or model.cost[other.columns].sum() < model.cost[plan.columns].sum():
            plan = other
    if not _is_valid(model, plan):
        return None
    use = float(model.cost[plan.columns].sum())
    tell(f"use {use:.6g}, bound {dual.value:.6g}")
    bound = dual.value
    slack = dual.reduced - np.repeat(dual.reduced[dual.best], np.diff(instance.first_column))
    if core_columns_max > 0 and use > bound:
        core = core_of(model, slack, use - bound, plan.columns, core_columns_max)
        outcome = solve_core(model, core, plan.columns, core_nodes_max)
        bound = max(bound, min(outcome.bound, dual.value + core.excluded_slack))
        plan = _Plan(outcome.plan.copy(), load_of(model, outcome.plan))
        _improve(model, plan)
        use = float(model.cost[plan.columns].sum())
        tell(f"core of {len(core.columns)} columns: use {use:.6g}, bound {bound:.6g}")
    prices = np.zeros(instance.pools + 1)
    prices[model.pool_of_row] = dual.price
    return Solution(plan.columns, use, min(bound, use), prices[:-1], float(prices[-1]))


def _prices(model: Model, tell: Progress) -> _Dual:
    nodes, rows = model.nodes, len(model.capacity)
    dual = _Dual(np.zeros(rows), np.empty(len(model.cost)), np.empty(nodes, np.int64), np.empty(rows, np.int64), 0.0)
    dual.value = reduce_costs(model.rows, model.cost, dual.price, dual.reduced, dual.best, dual.load)
    order = np.argsort(-dual.load, kind="stable").astype(np.int32)
    if model.publisher_row != NO_ROW:
        order = np.append(np.int32(model.publisher_row), order[order != model.publisher_row])
    found = np.empty(int(model.rows.user_units.sum()) + 1)
    for _ in range(SWEEPS_MAX):
        value = ascend(model.rows, order, SHARE, dual.price, dual.reduced, dual.best, dual.load, found)
        assert value != INFEASIBLE, "nodes that only the publisher can feed were counted before"
        gain = value - dual.value
        dual.value = value
        if gain <= GAIN_MIN * abs(value):
            break
    # Rounding errors of many small changes are gone.
    dual.value = reduce_costs(model.rows, model.cost, dual.price, dual.reduced, dual.best, dual.load)
    tell(f"bound {dual.value:.6g}, {np.count_nonzero(dual.price)} capacities have a price")
    return dual


def _build(model: Model, dual: _Dual) -> _Plan:
    plan = _Plan(np.full(model.nodes, -1, np.int64), np.zeros(len(model.capacity), np.int64))
    place_by_regret(model.rows, dual.reduced, plan.columns, plan.load)
    _improve(model, plan)
    return plan


def _improve(model: Model, plan: _Plan) -> None:
    penalty = float(model.cost.max(initial=1.0)) * model.nodes
    arguments = (model.rows, model.cost, model.publisher_row, penalty, plan.columns, plan.load)
    for _ in range(PASSES_MAX):
        if move_each(*arguments) + swap_each(*arguments) == 0.0:
            break


def _is_valid(model: Model, plan: _Plan) -> bool:
    return bool((plan.load <= model.capacity).all())
