"""How many views each site of a plan feeds, and which can feed no more: for people who look at a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tidings.relay.plan import OWN, PUBLISHER, RelayPlan, own_site, site_of

if TYPE_CHECKING:
    from tidings.relay.files import Site, View

_STEPS = (2, 5, 10)
"""Bins end at 2, 5, 10, then 20, 50, 100 and so on."""


@dataclass(frozen=True)
class Loads:
    """site: of each view; a view without one is its own. fed: per site, how many views elsewhere it feeds.

    capacity: per site, how many it may feed; sites without limit are not in it.
    """

    site: Mapping[str, str]
    fed: Mapping[str, int]
    capacity: Mapping[str, int]

    @cached_property
    def full_sites(self) -> frozenset[str]:
        """Those that feed something, and can feed nothing more."""
        return frozenset(site for site, count in self.fed.items() if 0 < count >= self.capacity.get(site, count + 1))

    def is_full(self, view: str) -> bool:
        return self.site[view] in self.full_sites

    @property
    def common_capacity(self) -> int | None:
        """What all sites have; None if they differ or have no limit."""
        found = {self.capacity.get(site) for site in self.fed}
        return found.pop() if len(found) == 1 else None

    @property
    def noun(self) -> str:
        """What to call those that feed."""
        return "sites" if any(not site.startswith(OWN) for site in self.site.values()) else "views"


def loads_of(
    plan: RelayPlan, views: Iterable[View] = (), sites: Iterable[Site] = (), capacity: int | None = None
) -> Loads:
    """views: to know their sites; without them each view is its own. capacity: of sites that do not say their own."""
    places = {view.id: site_of(view) for view in views}
    site = {view: places.get(view, own_site(view)) for view in plan.inputs}
    fed: Counter[str] = Counter(dict.fromkeys(site.values(), 0))
    for view, inputs in plan.inputs.items():
        for source in inputs:
            if source != PUBLISHER and site[source] != site[view]:
                fed[site[source]] += 1
    own = {place.id: place.capacity for place in sites if place.capacity is not None}
    limits = {id: own.get(id, capacity) for id in fed}
    return Loads(site, fed, {id: limit for id, limit in limits.items() if limit is not None})


def histogram(counts: Iterable[int], last: int | None = None) -> list[tuple[str, int]]:
    """How many of the counts are 0, 1-2, 3-5, 6-10 and so on, up to the greatest; no bin goes beyond `last` if none does."""
    counted = Counter(counts)
    greatest = max(counted, default=0)
    bins = [("0", counted[0])]
    low, number = 1, 0
    while low <= greatest:
        high = _STEPS[number % len(_STEPS)] * 10 ** (number // len(_STEPS))
        if last is not None and greatest <= last:
            high = min(high, last)
        number += 1
        within = sum(many for count, many in counted.items() if low <= count <= high)
        bins.append((str(low) if low == high else f"{low}-{high}", within))
        low = high + 1
    return bins
