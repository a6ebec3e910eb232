"""What is left to the publisher where views know a part of what another one asks for: a query for the rest.

    //item[/name="gold"]/stock/price{val}      asks for
    //item[/name="gold"]/stock{id}             knows all but prices
    //price{val}                               is the rest

The rest of a pattern has the nodes of which something is not known, and those at which paths to such nodes part. It embeds in
the pattern, and covers what is missing: with the rest as one input more, the views are a rewriting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidings.relay.embedding import Need, coverage, needs
from tidings.relay.pattern import Axis, Pattern, PatternNode, Returned
from tidings.relay.row_views.embedding import RowNeed, row_coverage, row_needs
from tidings.relay.row_views.query import RowQuery


def rest_of(target: Pattern | RowQuery, sources: Sequence[Pattern | RowQuery]) -> Pattern | RowQuery | None:
    """What the sources do not know of the target; those that do not embed in it know nothing. None: they know all."""
    if isinstance(target, Pattern):
        patterns = [source for source in sources if isinstance(source, Pattern)]
        known = _union([coverage(source, target) for source in patterns])
        missing: dict[int, Need] = {}
        for bit, (node, need) in enumerate(needs(target)):
            if not known >> bit & 1:
                missing[node] = max(need, missing.get(node, need))
        return _part(target, missing) if missing else None
    rows = [source for source in sources if isinstance(source, RowQuery)]
    known = _union([row_coverage(source, target) for source in rows])
    unknown = [each for bit, each in enumerate(row_needs(target)) if not known >> bit & 1]
    names = {name for need, name in unknown if need is RowNeed.VALUE}
    return replace(target, columns=tuple(each for each in target.columns if each.name in names)) if unknown else None


def missing_share(target: Pattern | RowQuery, rest: Pattern | RowQuery) -> float:
    """How much of the publisher's work for the target is left with the rest: of nodes to match, or of columns to read."""
    if isinstance(target, Pattern) and isinstance(rest, Pattern):
        return len(rest.nodes) / len(target.nodes)
    assert isinstance(target, RowQuery) and isinstance(rest, RowQuery)
    return (1 + len(rest.carried)) / (1 + len(target.carried))


def _union(masks: Sequence[int | None]) -> int:
    known = 0
    for mask in masks:
        known |= mask or 0
    return known


def _part(target: Pattern, missing: dict[int, Need]) -> Pattern:
    """missing: per node of which something is, the greatest of these needs, which brings the others."""
    top = [-1] * len(target.nodes)
    for number in range(len(target.nodes) - 1, -1, -1):
        below = [top[child] for child in target.children[number] if top[child] >= 0]
        # Where two paths part, the node keeps them together.
        top[number] = number if number in missing or len(below) > 1 else below[0] if below else -1

    def built(number: int, axis: Axis) -> PatternNode:
        step = target.nodes[number]
        branches = []
        for child in target.children[number]:
            if top[child] >= 0:
                is_next = top[child] == child and target.nodes[child].axis is Axis.CHILD
                branches.append(built(top[child], Axis.CHILD if is_next else Axis.DESCENDANT))
        returns = (_RETURNED.get(missing[number], Returned.ID),) if number in missing else ()
        return PatternNode(step.label, axis, tuple(branches), step.constant, returns)

    is_anchored = top[0] == 0 and target.root.axis is Axis.CHILD
    return Pattern(built(top[0], Axis.CHILD if is_anchored else Axis.DESCENDANT)).canonical


_RETURNED = {Need.VAL: Returned.VAL, Need.CONT: Returned.CONT}
