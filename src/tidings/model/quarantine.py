"""Quarantine: where unusable records go, each with the reason and its raw text, so that nothing disappears."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from dataclasses import dataclass

from tidings.model.change import SEQ_MAX, Op

_CATEGORIES = {
    "withdrawn": re.compile("withdrawn: "),
    "unreadable": re.compile("not JSON|not a JSON object|record of "),
    "duplicate": re.compile(r"seq \d+ is (a duplicate|out of order)|no seq is left"),
    "contradiction": re.compile("(insert|update|delete) of key"),
    "unknown_table": re.compile("unknown table|table '.*' holds constraints"),
}
CATEGORIES = (*_CATEGORIES, "unusable")
"""Kinds of reasons, for counting. `unusable`: readable, but with a wrong type, an unknown column or the like."""


@dataclass(frozen=True)
class Quarantined:
    """One refused record. `seq` is None where it could not be read.

    position: its 0-based place in the source; of a stream, with a partition, the offset there.
    """

    source: str
    position: int
    seq: int | None
    reason: str
    raw: str
    partition: str | None = None

    @property
    def category(self) -> str:
        """The one of CATEGORIES that the reason belongs to."""
        return next((name for name, start in _CATEGORIES.items() if start.match(self.reason)), CATEGORIES[-1])

    def line(self) -> str:
        record = {"seq": self.seq, "reason": self.reason, "raw": self.raw, "source": self.source}
        if self.partition is None:
            return json.dumps({**record, "line": self.position + 1})
        return json.dumps({**record, "partition": self.partition, "offset": self.position})


def out_of_order(seq: int) -> str:
    """The reason for refusing a record with this seq, or one that would get it."""
    if seq > SEQ_MAX:
        return "no seq is left for a record without one"
    return f"seq {seq} is out of order: it is not above every seq before it"


def repeated(seq: int) -> str:
    """The reason for refusing a record of a stream with this seq of its own."""
    return f"seq {seq} is a duplicate or out of order: it is not above every seq before it in its partition"


def withdrawn(reason: str) -> str:
    """The reason for refusing a record whose row is deleted, as it is no longer what its database has."""
    return f"withdrawn: {reason}"


def contradiction(op: int, table: str, key: Hashable) -> str:
    """The reason for refusing a change that contradicts the rows: an insert of a present row, or a change of an absent one."""
    if op == Op.INSERT:
        return f"insert of key {key!r}, which table {table!r} has already"
    return f"{'update' if op == Op.UPDATE else 'delete'} of key {key!r}, which table {table!r} does not have"


def raw_text(raw: bytes) -> str:
    """The text of a raw record; bytes that are not UTF-8 are kept as escapes."""
    return raw.decode("utf-8", "backslashreplace")
