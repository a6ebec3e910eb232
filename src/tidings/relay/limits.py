"""What sites may feed: so many views elsewhere, and so many bytes a second that they send them.

Bytes count as messages have them on average, over sample documents, times the rate at which documents come. A view that is its
own site sends the same message to all whom it feeds: its bandwidth is a number of views, like its capacity. Where several views
share a site, their messages differ, and the bandwidth is a capacity of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tidings.kernels.arrays import F64, I64
from tidings.model.errors import UsageError
from tidings.relay.files import PUBLISHER, Site, View
from tidings.relay.plan import RelayPlan, site_of
from tidings.relay.planning.instance import UNLIMITED

LARGE = 10**9
"""No site feeds so many: greater capacities count as this one."""


@dataclass(frozen=True)
class Limits:
    """capacity, bandwidth: of sites that do not say their own, a view without a site being its own; None: without limit.

    bandwidth: bytes a second. rate: documents a second.
    """

    sites: Sequence[Site] = ()
    capacity: int | None = None
    bandwidth: float | None = None
    rate: float = 1.0

    def __post_init__(self) -> None:
        if any(site.id == PUBLISHER and site.bandwidth is not None for site in self.sites):
            raise UsageError(f"the site {PUBLISHER!r} has a bandwidth: what it feeds is limited by its capacity only")

    def with_slack(self, slack: float) -> Limits:
        """So many times as much. The publisher has no slack."""

        def room(each: int | None) -> int | None:
            return None if each is None else int(each * slack)

        def line(each: float | None) -> float | None:
            return None if each is None else each * slack

        sites = [
            site
            if site.id == PUBLISHER
            else replace(site, capacity=room(site.capacity), bandwidth=line(site.bandwidth))
            for site in self.sites
        ]
        return replace(self, sites=sites, capacity=room(self.capacity), bandwidth=line(self.bandwidth))

    @property
    def has_bandwidth(self) -> bool:
        return self.bandwidth is not None or any(site.bandwidth is not None for site in self.sites)

    def of_views(self, bytes: F64) -> I64:
        """How many views a view that is its own site may feed. bytes: of its message."""
        found = np.full(len(bytes), UNLIMITED if self.capacity is None else min(self.capacity, LARGE))
        if self.bandwidth is None:
            return found
        messages: I64 = np.minimum(self.bandwidth / (self.rate * np.ceil(bytes)), LARGE).astype(np.int64)
        return np.where(messages < found, messages, found)

    def of_sites(self, count: int) -> tuple[I64, I64]:
        """How many views elsewhere the first sites may feed, and how many bytes per document they may send."""
        capacity, bandwidth = self._capacity(None), self._line(None)
        found = np.full(count, capacity), np.full(count, bandwidth)
        for place, site in enumerate(self.sites[:count]):
            found[0][place], found[1][place] = self._capacity(site), self._line(site)
        return found

    def capacities(self, views: Sequence[View]) -> dict[str, int]:
        """By site, those that have a limit: as `check_capacities` takes them."""
        everywhere = {} if self.capacity is None else dict.fromkeys(map(site_of, views), self.capacity)
        return everywhere | {site.id: site.capacity for site in self.sites if site.capacity is not None}

    def check_bandwidths(self, plan: RelayPlan, views: Sequence[View], bytes: Mapping[str, float]) -> None:
        """UsageError if a site sends more than it may. bytes: of each view's message."""
        own = {site.id: site.bandwidth for site in self.sites if site.bandwidth is not None}
        for site, sent in self.sent(plan, views, bytes).items():
            most = own.get(site, self.bandwidth)
            if most is not None and sent > most * (1 + _ROUNDING):
                raise UsageError(
                    f"the plan lets {site!r} send {sent:,.0f} bytes a second; its bandwidth is {most:,.0f}"
                )

    def sent(self, plan: RelayPlan, views: Sequence[View], bytes: Mapping[str, float]) -> dict[str, float]:
        """By site, the bytes a second that it sends elsewhere."""
        site = {view.id: site_of(view) for view in views}
        found: dict[str, float] = dict.fromkeys(site.values(), 0.0)
        for view, inputs in plan.inputs.items():
            for source in inputs:
                if source != PUBLISHER and site[source] != site[view]:
                    found[site[source]] += self.rate * bytes[source]
        return found

    def _capacity(self, site: Site | None) -> int:
        own = self.capacity if site is None or site.capacity is None else site.capacity
        return UNLIMITED if own is None else min(own, LARGE)

    def _line(self, site: Site | None) -> int:
        own = self.bandwidth if site is None or site.bandwidth is None else site.bandwidth
        return UNLIMITED if own is None else int(min(own / self.rate, UNLIMITED))


_ROUNDING = 1e-9
