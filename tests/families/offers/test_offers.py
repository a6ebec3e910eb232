"""The offers family keeps the contract of all families, by shared rows and by messages, with expiry and best offers first."""

import pytest

from tidings.families.offers.evaluator import OffersEvaluator
from tidings.families.optional import SHARED
from tidings.testing import CHECKS, SHARED_CHECKS, check_family, offers_workloads
from tidings.testing.checks import check_exact, check_only_affected_are_told, check_replicas


def _is_exact(shape, catalog):
    """A point says all, and a change of a publication always shows."""
    table = catalog.table(shape.tables[0])
    return shape.projection is None and not any(axis.type.is_lossy for axis in table.axes)


@pytest.mark.parametrize("check", SHARED_CHECKS, ids=lambda check: check.__name__)
def test_contract_over_shared_rows(check):
    check_family("offers", offers_workloads(), checks=[check], examples=6, strategies=[SHARED])


@pytest.mark.extended
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    # Several publications change at one seq where some expire.
    check_family(
        "offers",
        offers_workloads(),
        checks=[check],
        examples=6,
        has_exact_regions=_is_exact,
        may_hear_twice=True,
    )


@pytest.mark.parametrize("check", [check_exact, check_only_affected_are_told, check_replicas])
def test_offers_that_expire_at_a_time(check):
    check_family("offers", offers_workloads(has_times=True), checks=[check], examples=4, strategies=[SHARED])


@pytest.mark.parametrize("check", [check_exact, check_replicas])
def test_many_publications_and_many_matches(check, monkeypatch):
    """What is done only where there are many: an index of publications, and portions of micro-batches."""
    monkeypatch.setattr(OffersEvaluator, "publications_min", 1)
    monkeypatch.setattr(OffersEvaluator, "portion_min", 1)
    monkeypatch.setattr(OffersEvaluator, "matches_max", 2)
    check_family("offers", offers_workloads(), checks=[check], examples=5, strategies=[SHARED])
