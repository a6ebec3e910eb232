"""Where a row of a top-k matters in the plane of ranges (l, r): a staircase of at most k boxes.

r |      :::::            Ranges that hold a row at x begin at x or before and end at x or after. They have it among their
  |   ::::::::            first k if they hold fewer than k better rows: the more of these at the left, the fewer at the right.
  |  :::::::::x
  +--------------- l
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappush, heappushpop
from typing import Any, NamedTuple

from tidings.model.codes import CODE_MAX, CODE_MIN

Ranking = Sequence[tuple[Any, int]]


class Tile(NamedTuple):
    """A box of ranges: (least l, least r), (greatest l, greatest r)."""

    lo: tuple[int, int]
    hi: tuple[int, int]


def staircase(x: int, better: Sequence[int], k: int) -> list[Tile]:
    """The ranges that have a row at x among their first k. better: where the better rows are."""
    left = sorted((y for y in better if y <= x), reverse=True)[:k]
    right = sorted(y for y in better if y > x)[:k]
    tiles = []
    for count in range(min(k, len(left) + 1)):
        # Ranges with so many of the better rows at the left.
        last = left[count - 1] if count else x
        first = left[count] + 1 if count < len(left) else CODE_MIN
        beyond = k - 1 - count
        end = right[beyond] - 1 if beyond < len(right) else CODE_MAX
        if first <= last:
            tiles.append(Tile((first, x), (last, end)))
    return tiles


def gained(x: int, before: Sequence[Tile], after: Sequence[Tile]) -> list[Tile]:
    """The part of a row's staircase that was not in the one it had before, at the same x."""
    end = before[-1].lo[0] - 1 if before else x
    steps = [(tile.lo[0], tile.hi[0], tile.hi[1]) for tile in before]
    if not before or before[-1].lo[0] > CODE_MIN:
        steps.append((CODE_MIN, end, x - 1))
    found = []
    for tile in after:
        for first, last, top in steps:
            lo, hi = (max(first, tile.lo[0]), top + 1), (min(last, tile.hi[0]), tile.hi[1])
            if lo[0] <= hi[0] and lo[1] <= hi[1]:
                found.append(Tile(lo, hi))
    return found


def entering(before: Ranking, after: Ranking, moved: Any, k: int) -> Iterator[tuple[Any, list[Tile]]]:
    """The rows that enter answers because another one has left or has become worse, best first, and where they do.

    before, after: (key, x) of each row, best first. moved: key of the other one; all but it are there before and after, in the
    same order. It may be missing in either.
    """
    was = next((place for place, (key, _) in enumerate(before) if key == moved), len(before))
    place_after = {key: place for place, (key, _) in enumerate(after)}
    for place in _within_reach(before, was, k):
        key, x = before[place]
        steps = staircase(x, [y for _, y in before[:place]], k)
        tiles = gained(x, steps, staircase(x, [y for _, y in after[: place_after[key]]], k))
        if tiles:
            yield key, tiles


def _within_reach(ranking: Ranking, was: int, k: int) -> list[int]:
    """Places of the rows behind that at `was` that share a range with it in which fewer than k others are better."""
    found: list[int] = []
    if was == len(ranking):
        return found
    centre = ranking[was][1]
    sides = (
        [place for place, (_, x) in enumerate(ranking) if place != was and x <= centre],
        [place for place, (_, x) in enumerate(ranking) if x > centre],
    )
    for side in sides:
        nearest: list[int] = []
        """The best k of those that are nearer, negative, the worst of them first."""
        for place in sorted(side, key=lambda place: (abs(ranking[place][1] - centre), place)):
            if len(nearest) < k:
                heappush(nearest, -place)
            elif -nearest[0] < place:
                continue
            else:
                heappushpop(nearest, -place)
            if place > was:
                found.append(place)
    return sorted(found)
