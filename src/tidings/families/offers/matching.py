"""What it means that two constraints match, in plain Python, one pair at a time: the definition that everything else follows.

A pair of disjuncts matches iff every attribute of the publication is constrained by the subscription, and on each of these
their sets meet. In a table with classic matching every attribute of the subscription must be constrained by the publication.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidings.families.offers.constraint import Box
from tidings.model.codes import CODE_MAX, CODE_MIN


def matching_disjuncts(
    publication: Sequence[Box], subscription: Sequence[Box], *, is_classic: bool = False
) -> Iterator[tuple[int, int]]:
    """(disjunct of the publication, disjunct of the subscription) of each pair that matches."""
    for i, ours in enumerate(publication):
        for j, theirs in enumerate(subscription):
            if meet(theirs, ours) if is_classic else meet(ours, theirs):
                yield i, j


def meet(box: Box, other: Box) -> bool:
    """Whether `other` has every axis of `box`, and their intervals meet on all of these."""
    places = {axis: place for place, axis in enumerate(other.axes)}
    for i, axis in enumerate(box.axes):
        j = places.get(axis)
        if j is None or box.lo[i] > other.hi[j] or other.lo[j] > box.hi[i]:
            return False
        ours, theirs = box.texts[i], other.texts[j]
        if ours is not None and theirs is not None and not (_below(ours[0], theirs[1]) and _below(theirs[0], ours[1])):
            return False
    return True


def _below(lo: bytes | None, hi: bytes | None) -> bool:
    return lo is None or hi is None or lo < hi


def attained(
    publication: Sequence[Box],
    subscription: Sequence[Box],
    axis: int,
    *,
    is_highest: bool,
    is_classic: bool = False,
) -> int | None:
    """The best code on an axis that both constraints allow: the attained end of their intersection. None if they do not match.

    is_highest: whether greater codes are better. Where neither constrains the axis it is the least, or greatest, code.
    """
    found: list[int] = []
    for i, j in matching_disjuncts(publication, subscription, is_classic=is_classic):
        ends = [_end(box, axis, is_highest=is_highest) for box in (publication[i], subscription[j])]
        found.append(min(ends) if is_highest else max(ends))
    if not found:
        return None
    return max(found) if is_highest else min(found)


def _end(box: Box, axis: int, *, is_highest: bool) -> int:
    if axis not in box.axes:
        return CODE_MAX if is_highest else CODE_MIN
    place = box.axes.index(axis)
    return box.hi[place] if is_highest else box.lo[place]
