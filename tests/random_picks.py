"""Random picks that take one draw, however many things there are: with Hypothesis, drawing is what takes the time."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def some_of(random: Random, things: Sequence[T]) -> list[T]:
    """Any of the things, in order. At most 24 with Hypothesis: it draws mostly small numbers where more bits are asked for."""
    picked = random.getrandbits(len(things))
    return [thing for at, thing in enumerate(things) if picked >> at & 1]


def turned(random: Random, things: Sequence[T]) -> list[T]:
    """All of the things, any of them first."""
    at = random.randrange(len(things)) if things else 0
    return [*things[at:], *things[:at]]
