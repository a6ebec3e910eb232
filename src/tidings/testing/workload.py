"""Workloads: a catalog, subscriptions and changes as plain records, the input of every check."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tidings.model.catalog import Catalog
from tidings.pipeline.commits import micro_batches
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

    def commits(self) -> list[list[Record]]:
        """The changes by commit: consecutive ones with the same `tx` are one."""
        found: list[list[Record]] = []
        for record in self.changes:
            if found and record.get("tx") is not None and str(found[-1][-1].get("tx")) == str(record["tx"]):
                found[-1].append(record)
            else:
                found.append([record])
        return found

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
    """The lines in micro-batches of these sizes, longer where a transaction would be split; what is left makes a last one."""
    return micro_batches(lines, [*sizes, len(lines)])
