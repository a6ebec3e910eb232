"""Integer programs given to HiGHS. The only file that knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tidings.kernels.arrays import F64, I32, I64
from tidings.model.errors import UsageError

SECONDS_MAX = 120.0
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


def minimise(program: Program, start: F64 | None = None, nodes_max: int | None = None) -> Outcome:
    """Solves a program: to optimality, unless the search takes more than `nodes_max` nodes. `start`: one to begin with."""
    highspy = _highspy()
    solver = _solver(highspy, mip_rel_gap=0.0, mip_abs_gap=0.0)
    if nodes_max is not None:
        solver.setOptionValue("mip_max_nodes", nodes_max)
    linear = _linear_program(highspy, program)
    linear.integrality_ = [highspy.HighsVarType.kInteger] * len(program.cost)
    solver.passModel(linear)
    if start is not None:
        solution = highspy.HighsSolution()
        solution.col_value = start.tolist()
        solver.setSolution(solution)
    solver.run()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return Outcome(None, np.inf)
    information = solver.getInfo()
    found = information.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.round(np.array(solver.getSolution().col_value)) if found else None
    if values is not None and status == highspy.HighsModelStatus.kOptimal:
        return Outcome(values, float(program.cost @ values))
    return Outcome(values, information.mip_dual_bound)


def relaxed(program: Program) -> F64 | None:
    """The best values between 0 and 1, most of them 0 or 1: a corner of the polytope. None if there are none."""
    highspy = _highspy()
    solver = _solver(highspy, solver="ipm", run_crossover="on")
    solver.passModel(_linear_program(highspy, program))
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.array(solver.getSolution().col_value)


def _solver(highspy: Any, **options: Any) -> Any:
    solver = highspy.Highs()
    always = {"output_flag": False, "threads": 1, "parallel": "off", "random_seed": 0, "time_limit": SECONDS_MAX}
    for name, value in (always | options).items():
        solver.setOptionValue(name, value)
    return solver


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
    return linear


def _highspy() -> Any:
    try:
        import highspy
    except ImportError:
        raise UsageError("plans need HiGHS: pip install '.[relay]' in the clone") from None
    return highspy
