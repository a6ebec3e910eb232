"""The types of workloads: a catalog with lazily made lines of the file contract, or other files made as lazily."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class WorkloadLines:
    """Lines have no newline. Each iterator can be consumed once, independently of the other."""

    catalog_sql: str
    subscriptions: Iterator[bytes]
    changes: Iterator[bytes]


@dataclass(frozen=True)
class Output:
    """Files of one kind.

    unit: what is counted, "lines of changes" or "documents"; None where nothing is.
    total: how many of them there will be, as far as it is known.
    files: lines by the file's name, which is relative to the output folder. Each iterator can be consumed once.
    """

    unit: str | None
    total: int
    files: Mapping[str, Iterator[bytes]]


class Generator(Protocol):
    def __call__(self, *, seed: int, rows: int, subscriptions: int, changes: int) -> WorkloadLines:
        """rows: approximate number of rows of the largest table at the start; 0: a number that suits the number of changes."""
        ...
