"""Positions: `EPOCH-SEQ`. seq is one total order, so one position serves many subscriptions, every transport and gateway."""

from __future__ import annotations

import re
from typing import NamedTuple

_TEXT = re.compile(r"([A-Za-z0-9]{1,32})-(\d{1,19})")
SEQ_MAX = 2**63 - 1


class Position(NamedTuple):
    epoch: str
    seq: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.seq}"

    @staticmethod
    def parse(text: str) -> Position | None:
        """None if it is none."""
        found = _TEXT.fullmatch(text)
        if found is None or int(found[2]) > SEQ_MAX:
            return None
        return Position(found[1], int(found[2]))
