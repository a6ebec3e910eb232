"""The types of workloads: a catalog with lazily made lines of the file contract."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class WorkloadLines:
    """Lines have no newline. Each iterator can be consumed once, independently of the other."""

    catalog_sql: str
    subscriptions: Iterator[bytes]
    changes: Iterator[bytes]


class Generator(Protocol):
    def __call__(self, *, seed: int, rows: int, subscriptions: int, changes: int) -> WorkloadLines:
        """rows: approximate number of rows of the largest table at the start; 0: a number that suits the number of changes."""
        ...
