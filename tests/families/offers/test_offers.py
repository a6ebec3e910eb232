"""The offers family keeps the contract of all families, also through gateways, with expiry and best offers first."""

import pytest

from tidings.families.offers.evaluator import OffersEvaluator
from tidings.testing import CHECKS, check_family, offers_workloads
from tidings.testing.checks import check_exact, check_only_affected_are_told, check_replicas


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    check_family("offers", offers_workloads(), checks=[check], examples=6)


@pytest.mark.parametrize("check", [check_exact, check_only_affected_are_told, check_replicas])
def test_offers_that_expire_at_a_time(check):
    check_family("offers", offers_workloads(has_times=True), checks=[check], examples=4)


@pytest.mark.parametrize("check", [check_exact, check_replicas])
def test_many_publications_and_many_matches(check, monkeypatch):
    """What is done only where there are many: an index of publications, and portions of micro-batches."""
    monkeypatch.setattr(OffersEvaluator, "publications_min", 1)
    monkeypatch.setattr(OffersEvaluator, "portion_min", 1)
    monkeypatch.setattr(OffersEvaluator, "matches_max", 2)
    check_family("offers", offers_workloads(), checks=[check], examples=5)
