"""What every workload gives: a catalog, and lines of the file contract made as they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Workload:
    """Lines carry no line end. Each iterator can be run through once, independently of the other."""

    catalog_sql: str
    subscriptions: Iterator[bytes]
    changes: Iterator[bytes]


class Generator(Protocol):
    def __call__(self, *, seed: int, rows: int, subscriptions: int, changes: int) -> Workload:
        """`rows`: about how many rows the largest table starts with; 0: a number that suits the number of changes."""
        ...
