"""Recorded input for the Spark tests: a small market with churn, as files, and what the inline engine makes of it."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

from tidings.engine import Engine
from tidings.sql import parse_catalog
from tidings.workloads.market import CATALOG_SQL, market


class Recorded:
    """catalog.sql, subscriptions.jsonl and changes.jsonl in a folder."""

    def __init__(self, folder: Path, seed: int, subscriptions: int, changes: int) -> None:
        self.catalog = folder / "catalog.sql"
        self.subscriptions = folder / "subscriptions.jsonl"
        self.changes = folder / "changes.jsonl"
        recorded = market(seed=seed, rows=60, subscriptions=subscriptions, changes=changes)
        self.catalog.write_text(CATALOG_SQL)
        self.subscriptions.write_bytes(b"".join(line + b"\n" for line in recorded.subscriptions))
        self.changes.write_bytes(b"".join(line + b"\n" for line in recorded.changes))

    def options(self, out: Path) -> list[str]:
        files = {"catalog": self.catalog, "subscriptions": self.subscriptions, "changes": self.changes, "out": out}
        return [word for name, path in files.items() for word in (f"--{name}", str(path))]

    def spoil(self, rng: random.Random, count: int) -> None:
        """Puts bad records between the good ones."""
        lines = self.changes.read_bytes().splitlines()
        bad = [b"{", b"[1]", b'{"seq": 1, "table": "stocks", "op": "insert", "row": {}}', b'{"seq": 5}', lines[3]]
        for _ in range(count):
            lines.insert(rng.randrange(10, len(lines)), rng.choice(bad))
        self.changes.write_bytes(b"\n".join(lines))

    def inline(self) -> tuple[list[str], list[str]]:
        """Notification lines and quarantine lines of the inline engine."""
        engine = Engine(parse_catalog(CATALOG_SQL))
        refused = engine.door.read(self.subscriptions.read_bytes().splitlines())
        told: list[str] = []
        lines = iter(self.changes.read_bytes().splitlines())
        while chunk := list(islice(lines, 173)):
            result = engine.feed(chunk)
            told.extend(result.notifications.lines())
            refused.extend(result.refused)
        told.extend(engine.finish().notifications.lines())
        return told, [entry.line() for entry in refused]
