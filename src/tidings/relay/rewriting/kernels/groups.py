"""Ways to compute each group of equal views, from the ways to compute their query."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.jit import kernel


@kernel
def columns_of_groups(
    query: Any, site: Any, first_group: Any, groups: Any, first: Any, first_source: Any, sources: Any, variants: Any, most: Any,
    counts: Any, ends: Any, members: Any,
) -> Any:  # fmt: skip
    """Columns of each group: the publisher's, which has no sources, then at most `most` others.

    query: per group the number of its query; site: per group, negative where it is alone. groups[first_group[q] :
    first_group[q + 1]] are those of query q, rising. first, first_source, sources: rewritings of queries. A source of which
    there are several groups is the one at the same site, or `variants` others in turn. Groups of one query feed later ones.

    counts: columns per group; the sources of the j-th column of all are members[ends[j - 1] : ends[j]]. Returns the number of
    columns, and whether `members` and `ends` had room for all; if not, nothing in them is to be used.
    """
    column, end, fits = np.int64(0), np.int64(0), True
    chosen = np.empty(64, np.int64)
    for group in range(len(query)):
        begin = column
        column, end, fits = _put(chosen, 0, ends, members, column, end, fits)
        own = query[group]
        earlier = 0
        while groups[first_group[own] + earlier] != group:
            earlier += 1
        for turn in range(min(earlier, variants)):
            chosen[0] = groups[first_group[own] + (group + turn) % earlier]
            column, end, fits = _put(chosen, 1, ends, members, column, end, fits)
        for turn in range(variants):
            for rewriting in range(first[own], first[own + 1]):
                if column - begin > most:
                    break
                size, choices = 0, 1
                for at in range(first_source[rewriting], first_source[rewriting + 1]):
                    chosen[size], several = _group_for(group, site, first_group, groups, sources[at], turn)
                    choices = max(choices, several)
                    size += 1
                if turn < choices:
                    column, end, fits = _put(chosen, size, ends, members, column, end, fits)
        counts[group] = column - begin
    return column, end, fits


@kernel
def _group_for(group: Any, site: Any, first_group: Any, groups: Any, query: Any, turn: Any) -> Any:
    """A group of a query that is to feed this group, and how many there are to choose from."""
    start = first_group[query]
    count = first_group[query + 1] - start
    if site[group] >= 0:
        for at in range(start, start + count):
            if site[groups[at]] == site[group]:
                return np.int64(groups[at]), np.int64(1)
    return np.int64(groups[start + (group + query + turn) % count]), np.int64(count)


@kernel
def _put(chosen: Any, size: Any, ends: Any, members: Any, column: Any, end: Any, fits: Any) -> Any:
    if column >= len(ends) or end + size > len(members):
        return column + 1, end + size, False
    for i in range(size):
        members[end + i] = chosen[i]
    ends[column] = end + size
    return column + 1, end + size, fits


@kernel
def columns_of_views(
    group_of: Any, place: Any, first_member: Any, members: Any, first_column: Any, first_source: Any, sources: Any,
    first_input: Any, inputs: Any, others: Any, counts: Any, ends: Any, found: Any,
) -> Any:  # fmt: skip
    """Columns of each view: the publisher's, the one by its inputs if it has some, those by `others` members of its group that
    stand before it, then those of its group.

    place: of a view among its group's members, members[first_member[g] : first_member[g + 1]]. first_column, first_source,
    sources: columns of groups; one of its members, in turn, stands for a group. inputs[first_input[v] : first_input[v + 1]]:
    of a view by the plan there is.

    counts: columns per view. ends, found: as in `columns_of_groups`, and so is what is returned.
    """
    column, end, fits = np.int64(0), np.int64(0), True
    chosen = np.empty(64, np.int64)
    for view in range(len(group_of)):
        begin = column
        group, turn = group_of[view], place[view]
        column, end, fits = _put(chosen, 0, ends, found, column, end, fits)
        size = first_input[view + 1] - first_input[view]
        if size:
            chosen[:size] = inputs[first_input[view] : first_input[view + 1]]
            column, end, fits = _put(chosen, size, ends, found, column, end, fits)
        for back in range(min(turn, others)):
            chosen[0] = members[first_member[group] + (turn - 1) // (back + 1)]
            column, end, fits = _put(chosen, 1, ends, found, column, end, fits)
        for at in range(first_column[group] + 1, first_column[group + 1]):
            size = 0
            for source in sources[first_source[at] : first_source[at + 1]]:
                first, behind = first_member[source], first_member[source + 1]
                chosen[size] = members[first + turn % (behind - first)]
                size += 1
            column, end, fits = _put(chosen, size, ends, found, column, end, fits)
        counts[view] = column - begin
    return column, end, fits
