"""Workloads: a catalog, subscriptions and changes as plain records, the input of every check."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tidings.model.catalog import Catalog
from tidings.sql import parse_catalog

Record = dict[str, Any]


@dataclass(frozen=True)
class Workload:
    """What the three files of the contract hold; records are dicts as `json.dumps` takes them."""

    catalog_sql: str
    subscriptions: list[Record]
    changes: list[Record]

    @cached_property
    def catalog(self) -> Catalog:
        return parse_catalog(self.catalog_sql)

    def subscription_lines(self) -> list[bytes]:
        return [_line(record) for record in self.subscriptions]

    def change_lines(self) -> list[bytes]:
        return [_line(record) for record in self.changes]


def _line(record: Record) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode()


def random_sizes(total: int, rng: random.Random) -> list[int]:
    """Sizes of micro-batches, some of them empty, that make up the total."""
    sizes: list[int] = []
    left = total
    while left:
        # The largest first: this is what hypothesis shrinks to.
        size = min(left, rng.choice([13, 8, 5, 3, 2, 1, 1, 0]))
        sizes.append(size)
        left -= size
    return sizes


def chunks(lines: list[bytes], sizes: list[int]) -> Iterator[list[bytes]]:
    """The lines in micro-batches of these sizes; what is left over makes a last one."""
    start = 0
    for size in sizes:
        yield lines[start : start + size]
        start += size
    if start < len(lines):
        yield lines[start:]
