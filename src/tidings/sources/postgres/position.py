"""Positions of the stream: Spark's offsets, as they stand in its checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidings.sources.postgres.settings import lsn_of, lsn_text


@dataclass(frozen=True)
class Position:
    """All transactions that end at `lsn` or before are read.

    snapshot: the one that the stream began with, while it matters; chunks: how many of its chunks are read.
    """

    lsn: int
    snapshot: str = ""
    chunks: int = 0

    def as_json(self) -> dict[str, Any]:
        more = {"snapshot": self.snapshot, "chunks": self.chunks} if self.snapshot else {}
        return {"lsn": lsn_text(self.lsn), **more}

    @staticmethod
    def of(known: Mapping[str, Any]) -> Position:
        return Position(lsn_of(known["lsn"]), known.get("snapshot", ""), int(known.get("chunks", 0)))
