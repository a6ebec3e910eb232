"""The core problem: the integer program over the few columns that a better plan is likely to take.

The slack of a column is its reduced cost less that of its node's best column. A plan that takes a column of slack s costs at
least the dual value + s. So columns whose slack exceeds the gap are in no better plan, and can be left out for good. If even
those that remain are too many, the ones of least slack are taken. The result may then not be the optimum; plans with a column
left out cost at least the dual value + the least slack left out.

A core too large for the integer program is relaxed first. In the linear program's solution most nodes have one whole column,
and keep it: the integer program is for the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.kernels.arrays import F64, I32, I64
from tidings.relay.planning.highs import Program, minimise, relaxed
from tidings.relay.planning.instance import Columns
from tidings.relay.planning.kernels.uses import most_units, only_rows
from tidings.relay.planning.model import NO_ROW, Model

WHOLE = 1 - 1e-6


@dataclass(frozen=True, eq=False)
class Core:
    """columns: candidates, those of a node one after the other; each node has its column of the plan at least.
    excluded_slack: the least slack of those left out that could be in a better plan; infinite if there are none."""

    columns: I64
    excluded_slack: float


@dataclass(frozen=True, eq=False)
class CoreOutcome:
    """plan: None if none was found. bound: no plan within the core costs less."""

    plan: Columns | None
    bound: float


def core_of(slack: F64, gap: float, plan: Columns, columns_max: int) -> Core:
    """The columns of slack up to the gap, but no more than `columns_max` beside those of the plan."""
    candidate = slack <= gap
    candidate[plan] = False
    others = np.flatnonzero(candidate)
    excluded_slack = np.inf
    if len(others) > columns_max:
        others = others[np.argsort(slack[others], kind="stable")]
        excluded_slack = float(slack[others[columns_max]])
        others = others[:columns_max]
    return Core(np.sort(np.append(plan, others)), excluded_slack)


def solve_core(model: Model, core: Core, plan: Columns, nodes_max: int) -> CoreOutcome:
    """The integer program. `plan` is one to begin with."""
    part = _Part(model, core, plan)
    if len(part.free) == 0:
        return CoreOutcome(plan, part.fixed_cost)
    start = (plan[model.rows.node_of[part.free]] == part.free).astype(np.float64)
    outcome = minimise(part.program, start, nodes_max)
    bound = part.fixed_cost + outcome.bound * part.scale
    if outcome.values is None:
        return CoreOutcome(None, bound)
    return CoreOutcome(part.plan_with(part.free[outcome.values > 0.5]), bound)


def round_core(model: Model, core: Core, plan: Columns) -> Columns | None:
    """The whole columns of the linear program's solution, -1 for nodes that have parts of several. None if it has none."""
    part = _Part(model, core, plan)
    if len(part.free) == 0:
        return plan
    values = relaxed(part.program)
    if values is None:
        return None
    rounded = plan.copy()
    rounded[model.rows.node_of[part.free]] = -1
    whole = part.free[values > WHOLE]
    rounded[model.rows.node_of[whole]] = whole
    return rounded


def load_of(model: Model, columns: I64) -> I64:
    """What some columns together use of each row."""
    _, use_row, use_units = _uses_of(model, columns)
    return np.bincount(use_row, use_units, minlength=len(model.capacity)).astype(np.int64)


class _Part:
    """The program over the nodes that have a choice within the core; the others keep the plan's column.

    free: the columns it is about. scale: its unit of cost. fixed_cost: that of the other nodes.
    """

    def __init__(self, model: Model, core: Core, plan: Columns) -> None:
        node = model.rows.node_of[core.columns]
        has_choice = np.bincount(node, minlength=model.nodes) > 1
        fixed = plan[~has_choice]
        self._plan = plan
        self._node_of = model.rows.node_of
        self.fixed_cost = float(model.cost[fixed].sum())
        self.free = core.columns[has_choice[node]]
        # Costs of about 1 each suit the solver's tolerances.
        self.scale = max(float(model.cost[plan].mean()), np.finfo(np.float64).tiny) if len(plan) else 1.0
        self.program = _program(model, self.free, model.cost[self.free] / self.scale, load_of(model, fixed))

    def plan_with(self, columns: I64) -> Columns:
        plan = self._plan.copy()
        plan[self._node_of[columns]] = columns
        return plan


def _program(model: Model, free: I64, cost: F64, fixed_load: I64) -> Program:
    """One row per node, then those of capacities that could be exceeded."""
    left = model.capacity - fixed_load
    first_column = np.append(np.flatnonzero(np.diff(model.rows.node_of[free], prepend=-1)), len(free)).astype(np.int64)
    first_use, use_row, use_units = _uses_of(model, free)
    contested = np.flatnonzero(most_units(first_column, first_use, use_row, use_units, len(left)) > left)
    number = np.full(len(left), NO_ROW, np.int32)
    number[contested] = np.arange(len(contested))
    first_use, use_row, use_units = only_rows(first_use, use_row, use_units, number)
    nodes = len(first_column) - 1
    # Each column has an entry for its node before those of the capacities it uses.
    first_entry = first_use + np.arange(len(first_use))
    entry_row = np.empty(first_entry[-1], np.int32)
    entry_value = np.ones(len(entry_row))
    entry_row[first_entry[:-1]] = np.repeat(np.arange(nodes), np.diff(first_column))
    places = np.arange(len(use_row)) + np.repeat(np.arange(len(free)), np.diff(first_use)) + 1
    entry_row[places] = nodes + use_row
    entry_value[places] = use_units
    ones = np.ones(nodes)
    lower = np.append(ones, np.full(len(contested), -np.inf))
    return Program(cost, first_entry, entry_row, entry_value, lower, np.append(ones, left[contested]))


def _uses_of(model: Model, columns: I64) -> tuple[I64, I32, I32]:
    """The uses of some columns, as if there were no others: first_use, rows, units."""
    rows = model.rows
    lengths = rows.first_use[columns + 1] - rows.first_use[columns]
    first_use = np.append(0, np.cumsum(lengths))
    places = np.repeat(rows.first_use[columns] - first_use[:-1], lengths) + np.arange(first_use[-1])
    return first_use, rows.use_row[places], rows.use_units[places]
