"""What notifications of a service mean: a `Change` for each, and the answer that they leave."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from tidings.client.errors import ServiceError
from tidings.client.following import Told
from tidings.embedded import Change
from tidings.model.row_bag import RowBag, Tail

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_change = msgspec.json.Decoder(Change).decode
_tail = msgspec.json.Decoder(Tail).decode
_row = msgspec.json.Decoder(dict[str, Any]).decode


def change_of(told: Told) -> Change:
    """A notification as callers get it; one that came in parts is whole again."""
    first, *others = map(_change, told.lines)
    for part in others:
        first.changes.extend(part.changes)
    return first


def change_of_line(line: bytes) -> Change:
    """A line of out.jsonl."""
    return _change(line)


class FollowedView:
    """The answer of one subscription of a service. Any thread may read it while another one keeps it up to date."""

    def __init__(self, id: str, sql: str = "", order: dict[str, Any] | None = None) -> None:
        self.id = id
        self.sql = sql
        self._order = order
        self._bag = RowBag()
        self._moved = threading.Condition()
        self._passed = -1
        self._error: Exception | None = None
        self._end: str | None = None

    @property
    def seq(self) -> int:
        """The last change that the answer has had."""
        with self._moved:
            return self._bag.seq

    @property
    def ended(self) -> str | None:
        """Why the subscription has ended: dropped or revoked; None while it lives. The last rows stay."""
        with self._moved:
            return self._end

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows now; those of a query with ORDER BY in this order. Raises what ended the following, if something did."""
        with self._moved:
            if self._error is not None:
                raise self._error
            texts = self._bag.rows()
        found = [_row(text) for text in texts]
        if self._order is not None and all(self._order["by"] in row for row in found):
            name = self._order["by"]
            found.sort(key=lambda row: row[name], reverse=bool(self._order.get("descending")))
        return found

    def to_arrow(self) -> pa.Table:
        """The rows as a table of Arrow."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a data frame of pandas, which must be installed."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def __len__(self) -> int:
        with self._moved:
            return len(self._bag)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return f"<view {self.id!r} of {len(self)} rows: {self.sql}>"

    def has_passed(self, seq: int) -> bool:
        """Whether the answer includes everything up to this seq. Raises what ended the following, if something did."""
        with self._moved:
            if self._error is not None:
                raise self._error
            return self._passed >= seq or self._end is not None

    def wait_for(self, seq: int = 0, timeout_seconds: float = 30.0) -> None:
        """Waits until the answer includes everything up to this seq: your own change too, with `feed(..).seq`.

        A view hears that it is up to date when it changes, and otherwise every 15 seconds at the latest.
        """
        with self._moved:
            if not self._moved.wait_for(lambda: self._error is not None or self.has_passed(seq), timeout_seconds):
                raise ServiceError(0, "timeout", f"view {self.id!r} has not reached seq {seq} in {timeout_seconds:g} s")
            if self._error is not None:
                raise self._error

    # Called by whoever follows the stream.

    def fold(self, told: Told) -> None:
        """Does to the rows what a notification says."""
        first, *others = map(_tail, told.lines)
        for part in others:
            first.changes.extend(part.changes)
        with self._moved:
            self._bag.fold(first)
            self._passed = told.seq if told.snapshot else max(self._passed, told.seq)
            self._moved.notify_all()

    def pass_to(self, seq: int) -> None:
        """Says that nothing more is to come up to this seq."""
        with self._moved:
            if 0 <= self._passed < seq:
                self._passed = seq
                self._moved.notify_all()

    def stop(self, *, ended: str | None = None, error: Exception | None = None) -> None:
        """Says that nothing more is to come at all."""
        with self._moved:
            self._end = self._end or ended
            self._error = self._error or error
            self._moved.notify_all()
