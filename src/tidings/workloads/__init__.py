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

__all__ = ["DEFAULTS", "WORKLOADS", "Entry", "WorkloadLines", "find"]

DEFAULTS: Mapping[str, int | str | None] = {
    "subscriptions": 100_000,
    "changes": 100_000,
    "rows": 0,
    "views": 100_000,
    "distinct": None,
    "values": 50,
    "sites": None,
    "capacity": None,
    "documents": 200,
    "format": "xml",
}
"""What options of workloads are unless they are given."""


@dataclass(frozen=True)
class Entry:
    """A workload in the registry; its module is imported only when it is used."""

    description: str
    function: str
    """`module:function`"""
    options: tuple[str, ...] = ("subscriptions", "changes", "rows")
    """Of DEFAULTS, which the function takes beside the seed."""

    def load(self) -> Generator:
        generator: Generator = self._load()
        return generator

    def outputs(self, seed: int, given: Mapping[str, int | str]) -> tuple[GeneratedFiles, ...]:
        """The files of the workload. given: among the options above."""
        values = {option: given.get(option, DEFAULTS[option]) for option in self.options}
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
    "views": Entry(
        "tree patterns over documents of an auction site, distinct or with duplicates, and the sites that hold them",
        "tidings.relay.workloads.outputs:views",
        ("views", "distinct", "values", "format", "sites", "capacity"),
    ),
    "documents": Entry(
        "documents of an auction site, of 10 to 40 kB, in which most of these views find something; XML or JSON",
        "tidings.relay.workloads.outputs:documents",
        ("documents", "values", "format"),
    ),
}


def find(name: str) -> Entry:
    if name not in WORKLOADS:
        raise UsageError(
            f"unknown workload {name!r}; there are: {', '.join(WORKLOADS)}; those of published work are made in a clone:"
            " python -m research workload list"
        )
    return WORKLOADS[name]
