"""Engines as functions for checks: contents of the input files in, notification lines out."""

from __future__ import annotations

from typing import Protocol

from tidings.engine import Engine
from tidings.families.registry import sending_strategies
from tidings.placed import PlacedEngine
from tidings.sql import parse_catalog
from tidings.testing.workload import chunks


class RunEngine(Protocol):
    """Runs a whole workload through an engine.

    `batch_sizes` are changes per micro-batch, as far as the engine can honour them; `strategy` maps families to names.
    """

    def __call__(
        self,
        catalog_sql: str,
        subscription_lines: list[bytes],
        change_lines: list[bytes],
        batch_sizes: list[int],
        strategy: dict[str, str],
    ) -> list[str]: ...


def run_inline(
    catalog_sql: str,
    subscription_lines: list[bytes],
    change_lines: list[bytes],
    batch_sizes: list[int],
    strategy: dict[str, str],
) -> list[str]:
    """The inline engine's lines; with a strategy by which rows find gateways those of a single one."""
    catalog = parse_catalog(catalog_sql)
    chosen = sending_strategies(strategy)
    engine = PlacedEngine(catalog, 1, strategies=chosen) if chosen else Engine(catalog, strategy)
    engine.door.read(subscription_lines)
    lines: list[str] = []
    for chunk in chunks(change_lines, batch_sizes):
        lines.extend(engine.feed(chunk).notifications.lines())
    lines.extend(engine.finish().notifications.lines())
    return lines
