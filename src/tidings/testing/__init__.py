"""Contract checks and workload strategies for tests: of the families in the package, and of a user's own.

    from tidings.testing import check_family, select_workloads

    def test_select():
        check_family("select", select_workloads())

Needs hypothesis.
"""

from tidings.testing.checks import CHECKS, ENGINE_CHECKS, Case
from tidings.testing.drift_inputs import drift_workloads
from tidings.testing.engines import RunEngine, run_inline
from tidings.testing.join_inputs import join_workloads
from tidings.testing.offers_inputs import offers_workloads
from tidings.testing.oracle import Expected, oracle_lines, recompute
from tidings.testing.select_inputs import select_workloads, workload_strategy
from tidings.testing.suite import check_family
from tidings.testing.topk_inputs import topk_workloads
from tidings.testing.transactions import with_transactions
from tidings.testing.workload import Workload

FAMILY_WORKLOADS = {
    "select": select_workloads(),
    "drift": drift_workloads(),
    "topk": topk_workloads(),
    "join": join_workloads(),
    "offers": offers_workloads(),
}
"""Workloads of every family in the package."""

__all__ = [
    "CHECKS",
    "ENGINE_CHECKS",
    "FAMILY_WORKLOADS",
    "Case",
    "Expected",
    "RunEngine",
    "Workload",
    "check_family",
    "drift_workloads",
    "join_workloads",
    "offers_workloads",
    "oracle_lines",
    "recompute",
    "run_inline",
    "select_workloads",
    "topk_workloads",
    "with_transactions",
    "workload_strategy",
]
