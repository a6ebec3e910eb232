"""The mix bench of the product over two workloads of offers, marketplace and places."""

from __future__ import annotations

from functools import partial

from research.bench import FamilyOptions
from research.workloads.offers.marketplace import offers_marketplace
from research.workloads.offers.places import offers_places
from tidings.bench import Say, mix
from tidings.bench.mix.cases import Case, between
from tidings.bench.report import Report

CASES = {
    case.key: case
    for case in (
        Case("offers", "offers, marketplace", offers_marketplace, partial(between, 20, 5_000, 0.2), 1.0, 20_000),
        Case("places", "offers, places", offers_places, partial(between, 20, 5_000, 0.2), 1.0, 20_000),
    )
}


def run(options: FamilyOptions, say: Say) -> Report:
    return mix.run(options, say, CASES)
