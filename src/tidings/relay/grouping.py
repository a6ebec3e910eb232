"""From views to a planner's instance: who can feed whom, at what cost, within which capacity.

Views with the same query are one node of the instance, a group: one member, the head, is fed from outside, the others from
within.

- Views without a site are each a site of their own. Those with the same query form one group, with the capacity of all its
  members together, less the members that are fed from within: s * B - (s - 1).
- Views with the same query at one site form one group. They feed each other for nothing, and outside they share the capacity
  of the site with all other views there.
- Groups with the same query at several sites are different nodes that can feed each other, the earlier the later.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tidings.kernels.arrays import I32, I64
from tidings.relay.costs import column_costs, column_delays
from tidings.relay.embedding import carried_pattern
from tidings.relay.files import PUBLISHER, Site, View
from tidings.relay.limits import LARGE, Limits
from tidings.relay.partial import Rests
from tidings.relay.pattern import Pattern
from tidings.relay.planning.instance import NO_SITE, UNLIMITED, Instance
from tidings.relay.rewriting import Rewritings
from tidings.relay.rewriting.kernels.groups import columns_of_groups
from tidings.relay.rewriting.rewritings import REWRITINGS_MAX
from tidings.relay.row_views.query import carried_query
from tidings.relay.sizes import ViewSizes

VARIANTS = 3
"""Groups with the same query that a rewriting chooses from, where they are at several sites."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Views, sorted into groups.

    query_of: per view the number of its query; equal queries have one number. heads: per query, the first view with it.
    group_of: per view. query, site: per group; site is the place among the sites, NO_SITE for views that are alone.
    members[first_member[g] : first_member[g + 1]]: the views of group g, the head first.
    """

    query_of: I64
    heads: I64
    group_of: I64
    query: I64
    site: I32
    first_member: I64
    members: I64

    def __len__(self) -> int:
        return len(self.query)

    def of(self, group: int) -> list[int]:
        found: list[int] = self.members[self.first_member[group] : self.first_member[group + 1]].tolist()
        return found

    @property
    def sizes(self) -> I64:
        return np.diff(self.first_member)


def group_views(views: Sequence[View], sites: Sequence[Site]) -> Groups:
    """Groups in the order in which their heads stand among the views. Queries over rows have numbers behind all patterns."""
    places = {site.id: place for place, site in enumerate(sites)}
    patterns: dict[Hashable, int] = {}
    rows: dict[Hashable, int] = {}
    query_of = []
    for number, view in enumerate(views):
        if isinstance(view.query, Pattern):
            query_of.append(patterns.setdefault(carried_pattern(view.query), number))
        else:
            query_of.append(rows.setdefault(carried_query(view.query), number))
    heads = np.array([*patterns.values(), *rows.values()], np.int64)
    query_at = np.empty(len(views), np.int64)
    query_at[heads] = np.arange(len(heads))
    queries = query_at[query_of]
    groups: dict[tuple[int, int], int] = {}
    group_of = []
    for view, query in zip(views, queries.tolist(), strict=True):
        place = NO_SITE if view.site is None else places.setdefault(view.site, len(places))
        group_of.append(groups.setdefault((query, place), len(groups)))
    of_view = np.array(group_of, np.int64)
    keys = np.array(list(groups), np.int64)
    return Groups(
        queries,
        heads,
        of_view,
        keys[:, 0],
        keys[:, 1].astype(np.int32),
        np.concatenate([[0], np.cumsum(np.bincount(of_view))]),
        np.argsort(of_view, kind="stable"),
    )


def split_alone(groups: Groups, limits: Limits, sizes: ViewSizes) -> Groups:
    """Views without sites that cannot send their message even once are groups of their own: none feeds its equals."""
    cannot = (groups.site == NO_SITE) & (limits.of_views(sizes.bytes[groups.query]) == 0)
    of_view = cannot[groups.group_of]
    if not of_view.any():
        return groups
    # A group for each such view, behind the others; numbered anew by where their heads stand.
    own = np.where(of_view, len(groups) + np.arange(len(of_view)), groups.group_of)
    _, head, number = np.unique(own, return_index=True, return_inverse=True)
    order = np.argsort(head, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    group_of = place[number].astype(np.int64)
    old = groups.group_of[head[order]]
    first_member = np.concatenate([[0], np.cumsum(np.bincount(group_of))])
    members = np.argsort(group_of, kind="stable")
    return replace(
        groups,
        group_of=group_of,
        query=groups.query[old],
        site=groups.site[old],
        first_member=first_member,
        members=members,
    )


def build_instance(
    groups: Groups,
    limits: Limits,
    rewritings: Rewritings,
    sizes: ViewSizes,
    publisher_capacity: int | None = None,
    columns_max: int = REWRITINGS_MAX,
    rests: Rests | None = None,
) -> Instance:
    """rewritings, sizes: of queries. columns_max: ways to compute a group, beside the publisher's, at most. rests: of queries
    whose rewritings are partial."""
    first_column, first_source, sources = _columns(groups, rewritings, columns_max)
    query = groups.query
    owner = np.repeat(np.arange(len(groups)), np.diff(first_column))
    of_group = sizes.of(query)
    is_alone = groups.site == NO_SITE
    site_count = _site_count(groups)
    pool = np.where(is_alone, site_count + np.arange(len(groups)), groups.site).astype(np.int32)
    position = np.full((site_count, 2), np.nan)
    publisher = (np.nan, np.nan)
    for place, site in enumerate(limits.sites):
        if site.id == PUBLISHER:
            publisher_capacity = site.capacity if publisher_capacity is None else publisher_capacity
            publisher = site.position or publisher
        if place < site_count:
            position[place] = site.position or np.nan
    positions = np.full((len(groups), 2), np.nan)
    positions[~is_alone] = position[groups.site[~is_alone]]
    cost = column_costs(of_group, owner, first_source, sources)
    delay = column_delays(of_group, first_source, sources)
    is_published = np.diff(first_source) == 0
    if rests is not None:
        in_part = np.flatnonzero(~is_published & (rests.share[query[owner]] > 0))
        # The other columns are those of equal queries.
        in_part = in_part[query[sources[first_source[in_part]]] != query[owner[in_part]]]
        cost[in_part] += rests.cost[query[owner[in_part]]]
        delay[in_part] += rests.delay[query[owner[in_part]]]
        is_published[in_part] = True
    capacity, bandwidth = pool_limits(groups, limits, sizes)
    return Instance(
        first_column=first_column,
        cost=cost,
        first_source=first_source,
        sources=sources,
        pool=pool,
        capacity=capacity,
        site=groups.site,
        publisher_capacity=UNLIMITED if publisher_capacity is None else min(publisher_capacity, UNLIMITED),
        is_published=is_published,
        sent=np.ceil(of_group.bytes).astype(np.int32),
        bandwidth=bandwidth,
        delay=delay,
        position=positions,
        publisher_position=publisher,
        weight=groups.sizes,
    )


def pool_limits(groups: Groups, limits: Limits, sizes: ViewSizes) -> tuple[I64, I64]:
    """Capacity and bandwidth of sites, by their places, then of groups that are alone."""
    count, members = _site_count(groups), groups.sizes
    capacity, bandwidth = limits.of_sites(count)
    each = limits.of_views(sizes.bytes[groups.query])
    # Not less than nothing: groups at sites do not use theirs.
    of_members = np.maximum(members * np.minimum(each, LARGE) - (members - 1), 0)
    alone = np.where(each >= UNLIMITED, UNLIMITED, of_members)
    return np.append(capacity, alone), np.append(bandwidth, np.full(len(groups), UNLIMITED))


def _site_count(groups: Groups) -> int:
    return int(groups.site.max(initial=NO_SITE)) + 1


def _columns(groups: Groups, rewritings: Rewritings, most: int) -> tuple[I64, I64, I32]:
    order = np.argsort(groups.query, kind="stable")
    first_group = np.concatenate([[0], np.cumsum(np.bincount(groups.query))])
    counts = np.empty(len(groups), np.int64)
    columns, members = 0, 0
    while True:
        ends, sources = np.empty(columns, np.int64), np.empty(members, np.int32)
        columns, members, fits = columns_of_groups(
            groups.query, groups.site, first_group, order, rewritings.first, rewritings.first_source, rewritings.sources,
            VARIANTS, most, counts, ends, sources,
        )  # fmt: skip
        if fits:
            return np.concatenate([[0], np.cumsum(counts)]), np.concatenate([[0], ends]), sources
