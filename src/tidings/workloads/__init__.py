"""Seeded workloads in the file contract: realistic data for demos, tests and measurements.

A workload is one module with a function `(seed, rows, subscriptions, changes) -> WorkloadLines`, and an entry here. One of
other files has a function `(seed, **options) -> tuple[GeneratedFiles, ...]`, and its entry names the options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tidings.model.errors import UsageError
from tidings.workloads.workload import Generator, WorkloadLines

if TYPE_CHECKING:
    from tidings.files import GeneratedFiles

__all__ = ["LINES", "WORKLOADS", "Entry", "WorkloadLines", "find"]

LINES = 100_000
"""Subscriptions, and changes, unless others are asked for."""


@dataclass(frozen=True)
class Entry:
    """A workload in the registry; its module is imported only when it is used."""

    description: str
    function: str
    """`module:function`"""
    options: tuple[str, ...] = ("subscriptions", "changes", "rows")
    """What the function takes beside the seed."""

    def load(self) -> Generator:
        generator: Generator = self._load()
        return generator

    def outputs(self, seed: int, given: dict[str, int | str]) -> tuple[GeneratedFiles, ...]:
        """The files of the workload. given: among the options above."""
        values = {option: LINES for option in ("subscriptions", "changes") if option in self.options} | given
        made: WorkloadLines | tuple[GeneratedFiles, ...] = self._load()(seed=seed, **values)
        return made if isinstance(made, tuple) else _outputs(made, values)

    def _load(self) -> Any:
        module, _, name = self.function.partition(":")
        return getattr(import_module(module), name)


def _outputs(made: WorkloadLines, values: Mapping[str, Any]) -> tuple[GeneratedFiles, ...]:
    from tidings.files import GeneratedFiles

    return (
        GeneratedFiles(None, 0, {"catalog.sql": iter(made.catalog_sql.encode().splitlines())}),
        GeneratedFiles("lines of subscriptions", values["subscriptions"], {"subscriptions.jsonl": made.subscriptions}),
        GeneratedFiles("lines of changes", values["changes"], {"changes.jsonl": made.changes}),
    )


WORKLOADS: Mapping[str, Entry] = {
    "market": Entry(
        "stocks, reviews, analysts and offers with skewed popularity; screens, alerts and watchlists as subscriptions",
        "tidings.workloads.market:market",
    ),
    "auctions": Entry(
        "people, auctions and bids that all change; searches, IN lists, joins of two and three tables and leaderboards",
        "tidings.workloads.auctions:auctions",
    ),
    "shapes": Entry(
        "homes on one table, and saved searches of a thousand different shapes",
        "tidings.workloads.shapes:shapes",
    ),
}


def find(name: str, known: Mapping[str, Entry] = WORKLOADS) -> Entry:
    if name not in known:
        raise UsageError(
            f"unknown workload {name!r}; there are: {', '.join(known)}; those of published work are made in a clone:"
            " python -m research workload list"
        )
    return known[name]
