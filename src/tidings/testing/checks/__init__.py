"""The checks of the contract suite, one promise per file. Each takes a `Case` and raises AssertionError if it is broken."""

from tidings.testing.checks.affected import check_only_affected_are_told
from tidings.testing.checks.agreement import check_batches_do_not_matter, check_strategies_agree
from tidings.testing.checks.case import Case
from tidings.testing.checks.exact import check_exact
from tidings.testing.checks.places import check_places
from tidings.testing.checks.replicas import check_replicas

ENGINE_CHECKS = (
    check_exact,
    check_only_affected_are_told,
    check_strategies_agree,
    check_batches_do_not_matter,
)
"""Checks of notification lines only, which can be run on any engine."""
CHECKS = (*ENGINE_CHECKS, check_replicas, check_places)
"""Also those that lines do not depend on where subscriptions are evaluated, and on restarts."""

__all__ = [
    "CHECKS",
    "ENGINE_CHECKS",
    "Case",
    *(check.__name__ for check in CHECKS),
]
