"""The checks of the contract suite, one promise per file. Each takes a `Case` and raises AssertionError if it is broken."""

from tidings.testing.checks.affected import check_only_affected_are_told
from tidings.testing.checks.agreement import check_batches_do_not_matter, check_strategies_agree
from tidings.testing.checks.case import Case
from tidings.testing.checks.exact import check_exact
from tidings.testing.checks.regions import check_regions
from tidings.testing.checks.replicas import check_replicas
from tidings.testing.checks.restart import check_restart
from tidings.testing.checks.sharding import check_sharding
from tidings.testing.checks.wire import check_wire

ENGINE_CHECKS = (
    check_exact,
    check_only_affected_are_told,
    check_strategies_agree,
    check_batches_do_not_matter,
)
"""Checks of notification lines only, which can be run on any engine."""
STAGE_CHECKS = (check_replicas, check_restart, check_sharding)
"""Checks that lines do not depend on how stages are sharded and restarted."""
MESSAGE_CHECKS = (check_regions, check_wire)
"""Checks of which points messages reach, and of their encoding."""
CHECKS = (*ENGINE_CHECKS, *STAGE_CHECKS, *MESSAGE_CHECKS)

SHARED_CHECKS = (check_exact, check_only_affected_are_told, check_batches_do_not_matter, check_replicas)
"""Those that say something of families evaluated over shared rows alone."""

__all__ = [
    "CHECKS",
    "ENGINE_CHECKS",
    "MESSAGE_CHECKS",
    "SHARED_CHECKS",
    "STAGE_CHECKS",
    "Case",
    *(check.__name__ for check in CHECKS),
]
