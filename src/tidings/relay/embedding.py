"""Which views can help to compute which: embeddings of one pattern in another, and what they cover.

An embedding of a source pattern in a target maps each node of the source to a node of the target such that
- labels are equal;
- the image of a `/` step is a `/` step below its parent's image, that of a `//` step anything below it;
- the image of a first step `/` is the target's first step, which has `/` too;
- what the source demands, the target demands as well: a source's constant is also the constant of the image.

Then every embedding of the target in a document gives one of the source, so that the source's matches at a node contain the
target's matches at its image. A set of sources that covers all a target needs is a rewriting: intersect the matches, apply
the predicates that are left, reduce by the structure, and the target's matches remain.

This module is the definition, for one pair of patterns; `rewriting/` does the same for all pairs of a large set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import IntEnum

from tidings.relay.pattern import Axis, Pattern, PatternNode, Returned


class Need(IntEnum):
    """What a target needs to know of the document nodes that match one of its nodes."""

    ID = 0
    """Where they are."""
    PREDICATE = 1
    """Whether their text is the constant: the source has the same constant, or their texts."""
    VAL = 2
    CONT = 3


def carried(step: PatternNode) -> Returned:
    """What messages of a view carry for matches of a node, besides ids: CONT brings the text too, and a constant is known."""
    if Returned.CONT in step.returns:
        return Returned.CONT
    if Returned.VAL in step.returns and step.constant is None:
        return Returned.VAL
    return Returned.ID


def carried_pattern(pattern: Pattern) -> str:
    """Equal for views whose messages are equal, up to the order of nodes: they can feed each other as they are."""
    return _carried(pattern.root).canonical().text


def _carried(step: PatternNode) -> PatternNode:
    following = None if step.following is None else _carried(step.following)
    return replace(step, branches=tuple(map(_carried, step.branches)), returns=(carried(step),), following=following)


def needs(target: Pattern) -> list[tuple[int, Need]]:
    """All that is to be covered, node by node; the place in this list is the number of the bit in `coverage`."""
    found = []
    for number, step in enumerate(target.nodes):
        found.append((number, Need.ID))
        if step.constant is not None:
            found.append((number, Need.PREDICATE))
        match carried(step):
            case Returned.VAL:
                found.append((number, Need.VAL))
            case Returned.CONT:
                found.append((number, Need.CONT))
    return found


def images(source: Pattern, target: Pattern) -> tuple[int, ...] | None:
    """Per node of the source, its images in all embeddings: a mask, one bit for each node of the target. None: no embedding."""
    children, below = _below(target)
    found = [_alike(step, target) for step in source.nodes]
    if source.root.axis is Axis.CHILD:
        found[0] &= 1 if target.root.axis is Axis.CHILD else 0
    # In preorder, children are behind their parents.
    for number in range(len(found) - 1, 0, -1):
        reach = children if source.nodes[number].axis is Axis.CHILD else below
        found[source.parents[number]] &= _mask(node for node, mask in enumerate(reach) if mask & found[number])
    if not found[0]:
        return None
    for number in range(1, len(found)):
        reach = children if source.nodes[number].axis is Axis.CHILD else below
        parents = found[source.parents[number]]
        allowed = 0
        for node, mask in enumerate(reach):
            if parents >> node & 1:
                allowed |= mask
        found[number] &= allowed
    return tuple(found)


def coverage(source: Pattern, target: Pattern) -> int | None:
    """What the source knows of what the target needs, over all embeddings: a bit for each of `needs`. None: no embedding."""
    found = images(source, target)
    if found is None:
        return None
    return _mask(bit for bit, need in enumerate(needs(target)) if _covers(source, found, need))


def is_rewriting(sources: Sequence[Pattern], target: Pattern) -> bool:
    """Whether the target can be computed from the sources alone; all of them must embed in it."""
    masks = [coverage(source, target) for source in sources]
    covered = 0
    for mask in masks:
        if mask is None:
            return False
        covered |= mask
    return covered == (1 << len(needs(target))) - 1


def _covers(source: Pattern, found: tuple[int, ...], need: tuple[int, Need]) -> bool:
    node, what = need
    steps = [step for step, mask in zip(source.nodes, found, strict=True) if mask >> node & 1]
    match what:
        case Need.ID:
            return bool(steps)
        case Need.PREDICATE:
            return any(step.constant is not None or carried(step) is not Returned.ID for step in steps)
        case Need.VAL:
            return any(carried(step) is not Returned.ID for step in steps)
        case Need.CONT:
            return any(carried(step) is Returned.CONT for step in steps)


def _alike(step: PatternNode, target: Pattern) -> int:
    return _mask(
        number
        for number, other in enumerate(target.nodes)
        if other.label == step.label and step.constant in (None, other.constant)
    )


def _below(pattern: Pattern) -> tuple[list[int], list[int]]:
    """Per node, masks of its `/` children and of all its descendants."""
    children = [0] * len(pattern.nodes)
    below = [0] * len(pattern.nodes)
    for number in range(len(pattern.nodes) - 1, 0, -1):
        parent = pattern.parents[number]
        if pattern.nodes[number].axis is Axis.CHILD:
            children[parent] |= 1 << number
        below[parent] |= below[number] | 1 << number
    return children, below


def _mask(numbers: Iterable[int]) -> int:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found
