"""The core problem: the integer program over the few columns that a better plan could take.

The slack of a column is its reduced cost less that of its node's best column. A plan that takes a column of slack s costs at
least the dual value + s. So columns whose slack exceeds the gap are in no better plan, and can be left out for good. If even
those that remain are too many for the solver, the ones of least slack are taken. The result may then not be the optimum; plans
with a column left out cost at least the dual value + the least slack left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.kernels.arrays import F64, I32, I64
from tidings.relay.planning.highs import Program, minimise
from tidings.relay.planning.instance import Columns
from tidings.relay.planning.kernels.uses import most_units, only_rows
from tidings.relay.planning.model import NO_ROW, Model


@dataclass(frozen=True, eq=False)
class Core:
    """columns: candidates, those of a node one after the other; each node has its column of the plan at least.
    excluded_slack: the least slack of those left out that could be in a better plan; infinite if there are none."""

    columns: I64
    excluded_slack: float


def core_of(model: Model, slack: F64, gap: float, plan: Columns, columns_max: int) -> Core:
    """The columns of slack up to the gap, at most about `columns_max` of those whose node has a choice."""
    candidate = slack <= gap
    candidate[plan] = True
    count = int(candidate.sum()) - model.nodes
    if count <= columns_max:
        return Core(np.flatnonzero(candidate), np.inf)
    others = np.flatnonzero(candidate)
    others = others[~np.isin(others, plan)]
    by_slack = others[np.argsort(slack[others], kind="stable")]
    return Core(np.sort(np.append(plan, by_slack[:columns_max])), float(slack[by_slack[columns_max]]))


@dataclass(frozen=True, eq=False)
class CoreOutcome:
    """plan: as good as the one given, or better. bound: no plan within the core costs less."""

    plan: Columns
    bound: float


def solve_core(model: Model, core: Core, plan: Columns, nodes_max: int) -> CoreOutcome:
    rows = model.rows
    node = rows.node_of[core.columns]
    has_choice = np.bincount(node, minlength=model.nodes) > 1
    fixed = plan[~has_choice]
    fixed_cost = float(model.cost[fixed].sum())
    free = core.columns[has_choice[node]]
    if len(free) == 0:
        return CoreOutcome(plan, fixed_cost)
    left = model.capacity - load_of(model, fixed)
    first_use, use_row, use_units = _uses_of(model, free)
    of_node = np.append(np.flatnonzero(np.diff(rows.node_of[free], prepend=-1)), len(free)).astype(np.int64)
    contested = np.flatnonzero(most_units(of_node, first_use, use_row, use_units, len(left)) > left)
    number = np.full(len(left), NO_ROW, np.int32)
    number[contested] = np.arange(len(contested))
    first_use, use_row, use_units = only_rows(first_use, use_row, use_units, number)
    # Costs of about 1 each suit the solver's tolerances.
    scale = max(float(model.cost[plan].mean()), np.finfo(np.float64).tiny)
    program = _program(of_node, model.cost[free] / scale, first_use, use_row, use_units, left[contested])
    start = (plan[rows.node_of[free]] == free).astype(np.float64)
    outcome = minimise(program, start, nodes_max)
    bound = fixed_cost + outcome.bound * scale
    if outcome.values is None:
        return CoreOutcome(plan, bound)
    better = plan.copy()
    taken = free[outcome.values > 0.5]
    better[rows.node_of[taken]] = taken
    return CoreOutcome(better if model.cost[better].sum() < model.cost[plan].sum() else plan, bound)


def load_of(model: Model, columns: I64) -> I64:
    """What some columns together use of each row."""
    _, use_row, use_units = _uses_of(model, columns)
    return np.bincount(use_row, use_units, minlength=len(model.capacity)).astype(np.int64)


def _uses_of(model: Model, columns: I64) -> tuple[I64, I32, I32]:
    """The uses of some columns, as if there were no others: first_use, rows, units."""
    rows = model.rows
    lengths = rows.first_use[columns + 1] - rows.first_use[columns]
    first_use = np.append(0, np.cumsum(lengths))
    places = np.repeat(rows.first_use[columns] - first_use[:-1], lengths) + np.arange(first_use[-1])
    return first_use, rows.use_row[places], rows.use_units[places]


def _program(first_column: I64, cost: F64, first_use: I64, use_row: I32, use_units: I32, capacity: I64) -> Program:
    """One row per node, then those of capacities. The matrix has one entry more per column, that of its node."""
    nodes = len(first_column) - 1
    columns = np.arange(len(cost))
    first_entry = first_use + np.arange(len(first_use))
    entry_row = np.empty(first_entry[-1], np.int32)
    entry_value = np.ones(len(entry_row))
    entry_row[first_entry[:-1]] = np.repeat(np.arange(nodes), np.diff(first_column))
    places = np.arange(len(use_row)) + np.repeat(columns, np.diff(first_use)) + 1
    entry_row[places] = nodes + use_row
    entry_value[places] = use_units
    ones = np.ones(nodes)
    lower = np.append(ones, np.zeros(len(capacity)))
    return Program(cost, first_entry, entry_row, entry_value, lower, np.append(ones, capacity))
