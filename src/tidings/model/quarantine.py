"""Quarantine: where unusable records go, each with the reason and its raw text, so that nothing disappears."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Quarantined:
    """One refused record. `position` is its 0-based place in the source; `seq` is None where it could not be read."""

    source: str
    position: int
    seq: int | None
    reason: str
    raw: str

    def line(self) -> str:
        record = {"seq": self.seq, "reason": self.reason, "raw": self.raw}
        return json.dumps({**record, "source": self.source, "line": self.position + 1})


def raw_text(raw: bytes) -> str:
    """The text of a raw record; bytes that are not UTF-8 are kept as escapes."""
    return raw.decode("utf-8", "backslashreplace")
