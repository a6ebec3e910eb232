"""From a plan for groups to the inputs of each view: who of a group feeds whom.

A group of equal views without sites is a tree: the head is fed from outside, and feeds as many as it can, first those members
that must feed others because one view alone cannot feed all, then whoever most others wait for.

    outside -> head -> member -> outside        D to feed, B at most by one: the head and ceil(D / B) - 1 members feed
                  \\        \\-> member
                   \\-> outside

At a site, members feed each other for nothing and share the site's capacity outside: the head feeds all.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidings.kernels.arrays import I64
from tidings.relay.files import PUBLISHER, View
from tidings.relay.grouping import Groups
from tidings.relay.planning.instance import NO_SITE, Columns, Instance
from tidings.relay.planning.latency import order_of, paths_of

Inputs = list[tuple[int, ...]]
"""Per view, the views it is fed by, and FROM_PUBLISHER if that is the publisher."""
FROM_PUBLISHER = -1


def inputs_by_id(views: Sequence[View], inputs: Inputs) -> dict[str, tuple[str, ...]]:
    """As plans have them."""
    return {
        view.id: tuple(PUBLISHER if source == FROM_PUBLISHER else views[source].id for source in sources)
        for view, sources in zip(views, inputs, strict=True)
    }


def wire(groups: Groups, instance: Instance, columns: Columns, each: I64) -> Inputs:
    """each: per group, how many a view of it may feed that has no site."""
    heads = groups.members[groups.first_member[:-1]].tolist()
    sources = [instance.sources_of(column) for column in columns.tolist()]
    users: list[list[int]] = [[] for _ in heads]
    for group, fed_by in enumerate(sources):
        for source in fed_by:
            users[source].append(group)
    waiting = _waiting(instance, columns)
    found: Inputs = [(FROM_PUBLISHER,)] * len(groups.group_of)
    feeders: dict[tuple[int, int], int] = {}
    for group, size in enumerate(groups.sizes.tolist()):
        if size == 1 or groups.site[group] != NO_SITE:
            for member in groups.of(group)[1:]:
                found[member] = (heads[group],)
            continue
        outside = sorted(users[group], key=lambda user: -waiting[user])
        for feeder, fed, is_member in _tree(groups.of(group), outside, int(each[group])):
            if is_member:
                found[fed] = (feeder,)
            else:
                feeders[group, fed] = feeder
    is_published = instance.is_published[columns].tolist()
    for group, fed_by in enumerate(sources):
        own = tuple(feeders.get((source, group), heads[source]) for source in fed_by)
        found[heads[group]] = (*own, FROM_PUBLISHER) if is_published[group] else own
    return found


def _tree(members: Sequence[int], outside: Sequence[int], capacity: int) -> list[tuple[int, int, bool]]:
    """Who feeds whom: a member, whom it feeds, and whether that is a member too."""
    demand = len(members) - 1 + len(outside)
    relays = max(0, -(-demand // capacity) - 1)
    fed = [
        *((member, True) for member in members[1 : 1 + relays]),
        *((user, False) for user in outside),
        *((member, True) for member in members[1 + relays :]),
    ]
    # Who feeds is fed before: the first `relays` stand first, and each feeds the next ones in the row.
    return [(members[place // capacity], one, is_member) for place, (one, is_member) in enumerate(fed)]


def _waiting(instance: Instance, columns: Columns) -> list[int]:
    """Per group, how many views wait for it longest, its own included."""
    order = order_of(instance)
    critical = paths_of(instance, columns, order).critical
    weights = instance.weight.copy()
    for group in order[::-1].tolist():
        if critical[group] >= 0:
            weights[critical[group]] += weights[group]
    found: list[int] = weights.tolist()
    return found
