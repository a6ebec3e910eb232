"""Integer programs given to HiGHS. The only file that knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tidings.kernels.arrays import F64, I32, I64
from tidings.model.errors import UsageError

SECONDS_MAX = 600.0
"""A safety net. Work is limited by the size of programs and by the nodes of the search, so that results are repeatable."""


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise cost over 0/1 variables, such that lower <= rows <= upper. The matrix is given column by column."""

    cost: F64
    first_entry: I64
    entry_row: I32
    entry_value: F64
    lower: F64
    upper: F64


@dataclass(frozen=True, eq=False)
class Outcome:
    """values: 0 or 1 each; None if none were found. bound: no solution costs less; infinite if there is none."""

    values: F64 | None
    bound: float
    is_optimal: bool


def minimise(program: Program, start: F64 | None = None, nodes_max: int | None = None, gap: float = 0.0) -> Outcome:
    """Solves a program: to optimality, unless the search takes more than `nodes_max` nodes. `start`: one to begin with."""
    highspy = _highspy()
    solver = highspy.Highs()
    options = {"output_flag": False, "threads": 1, "parallel": "off", "random_seed": 0, "time_limit": SECONDS_MAX}
    options |= {"mip_rel_gap": gap, "mip_abs_gap": 0.0}
    if nodes_max is not None:
        options["mip_max_nodes"] = nodes_max
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(_linear_program(highspy, program))
    if start is not None:
        solution = highspy.HighsSolution()
        solution.col_value = start.tolist()
        solver.setSolution(solution)
    solver.run()
    status = solver.getModelStatus()
    kinds = highspy.HighsModelStatus
    if status == kinds.kInfeasible:
        return Outcome(None, np.inf, True)
    information = solver.getInfo()
    found = information.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.round(np.array(solver.getSolution().col_value)) if found else None
    is_optimal = status in (kinds.kOptimal, kinds.kModelEmpty)
    bound = float(program.cost @ values) if is_optimal and values is not None else information.mip_dual_bound
    return Outcome(values, bound if gap == 0.0 else information.mip_dual_bound, is_optimal)


def _linear_program(highspy: Any, program: Program) -> Any:
    columns = len(program.cost)
    linear = highspy.HighsLp()
    linear.num_col_ = columns
    linear.num_row_ = len(program.lower)
    linear.col_cost_ = program.cost
    linear.col_lower_ = np.zeros(columns)
    linear.col_upper_ = np.ones(columns)
    linear.row_lower_ = program.lower
    linear.row_upper_ = program.upper
    linear.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    linear.a_matrix_.start_ = program.first_entry.astype(np.int32)
    linear.a_matrix_.index_ = program.entry_row
    linear.a_matrix_.value_ = program.entry_value
    linear.integrality_ = [highspy.HighsVarType.kInteger] * columns
    return linear


def _highspy() -> Any:
    try:
        import highspy
    except ImportError:
        raise UsageError("plans need HiGHS: pip install 'tidings[relay]'") from None
    return highspy
