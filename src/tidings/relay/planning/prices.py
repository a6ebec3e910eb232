"""Prices of capacities: what a unit of each is worth, and with them a lower bound of the use of any plan.

Coordinate ascent comes close in a few sweeps, and then is stuck where no single price can be better, though all together could.
Steps along a subgradient, what is used beyond each capacity, get away from there. Last sweeps put each price in the middle
between the thresholds that bound it: plans built from such prices are better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.kernels.arrays import F64, I32, I64
from tidings.relay.planning.kernels.ascent import INFEASIBLE, ascend, reduce_costs
from tidings.relay.planning.model import NO_ROW, Model

GAIN_MIN = 5e-5
"""Sweeps go on while the bound rises by more than this part of it."""
SWEEPS_MAX = 6
LAST_SWEEPS = 3
SHARE = 0.5
"""Any price between two thresholds is as good for its own row. Half way leaves others most to gain."""
STEPS = 150
FIRST_STEP = 3e-3
"""The length of a step would raise the bound by this part of it, if it rose as at the start of the step."""
SHORTENING = 0.7
PATIENCE = 4
"""Steps get shorter after so many without a better bound."""
MEMORY = 0.5
"""A step goes this far in the direction of the last one, which dampens zigzags."""


@dataclass(eq=False)
class Dual:
    """Prices of rows, and what follows from them.

    reduced: of each column, its cost and the price of all it uses. best: of each node, the column where that is least.
    load: what these columns use of each row. value: no plan costs less.
    """

    price: F64
    reduced: F64
    best: I64
    load: I64
    value: float = 0.0

    def slack(self, model: Model) -> F64:
        """Of each column, how much its reduced cost is above that of the best column of its node."""
        slack: F64 = self.reduced - np.repeat(self.reduced[self.best], np.diff(model.rows.first_column))
        return slack


def find_prices(model: Model) -> Dual:
    """Nodes that only the publisher can feed must be no more than it may feed."""
    nodes, rows = model.nodes, len(model.capacity)
    dual = Dual(np.zeros(rows), np.empty(len(model.cost)), np.empty(nodes, np.int64), np.empty(rows, np.int64))
    _follow(model, dual)
    order = np.argsort(-dual.load, kind="stable").astype(np.int32)
    if model.publisher_row != NO_ROW:
        order = np.append(np.int32(model.publisher_row), order[order != model.publisher_row])
    _sweep(model, dual, order, SWEEPS_MAX)
    _step(model, dual)
    _sweep(model, dual, order, LAST_SWEEPS)
    # Sweeps change reduced costs little by little: rounding errors are gone now.
    _follow(model, dual)
    return dual


def _follow(model: Model, dual: Dual) -> None:
    dual.value = reduce_costs(model.rows, model.cost, dual.price, dual.reduced, dual.best, dual.load)


def _sweep(model: Model, dual: Dual, order: I32, sweeps_max: int) -> None:
    if not len(order):
        return
    for _ in range(sweeps_max):
        before = dual.value
        dual.value = ascend(model.rows, order, SHARE, dual.price, dual.reduced, dual.best, dual.load)
        assert dual.value != INFEASIBLE, "more nodes than the publisher may feed have no other column"
        if dual.value - before <= GAIN_MIN * abs(before):
            break


def _step(model: Model, dual: Dual) -> None:
    """Leaves the best prices that were met."""
    best_price, best_value = dual.price.copy(), dual.value
    length = FIRST_STEP
    failures = 0
    direction = np.zeros(len(dual.price))
    for _ in range(STEPS):
        excess = (dual.load - model.capacity).astype(np.float64)
        excess[(dual.price <= 0.0) & (excess < 0.0)] = 0.0
        direction = MEMORY * direction + (1 - MEMORY) * excess
        square = float(direction @ direction)
        if square == 0.0:
            break
        dual.price = np.maximum(0.0, dual.price + length * abs(best_value) / square * direction)
        _follow(model, dual)
        if dual.value > best_value:
            best_price, best_value = dual.price.copy(), dual.value
            failures = 0
        else:
            failures += 1
            if failures == PATIENCE:
                length *= SHORTENING
                failures = 0
    dual.price = best_price
    _follow(model, dual)
