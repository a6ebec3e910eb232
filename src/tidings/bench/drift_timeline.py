"""A drift workload as arrays: which item moves to what, and who comes to follow which item, with what reach, and when."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.model.codes import Int64Array
from tidings.workloads.workload import Workload

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Timeline:
    """Moves in order, and members in the order they come. An item has no value before its first move."""

    names: tuple[str, ...]
    move_item: Int64Array
    move_value: FloatArray
    member_item: Int64Array
    member_reach: FloatArray
    member_after: Int64Array
    """How many moves there are before the member comes; ascending."""

    @staticmethod
    def of(workload: Workload) -> Timeline:
        """Every subscription must be `symbol = '..' AND moved(price) >= r`, and stay."""
        numbers: dict[str, int] = {}
        subscription, change = msgspec.json.Decoder(_Subscription), msgspec.json.Decoder(_Change)
        moves = [change.decode(line).row for line in workload.changes]
        item = np.fromiter((numbers.setdefault(row.symbol, len(numbers)) for row in moves), np.int64, len(moves))
        members = [subscription.decode(line) for line in workload.subscriptions]
        symbols = (member.sql.split("'", 2)[1] for member in members)
        follows = np.fromiter((numbers.setdefault(symbol, len(numbers)) for symbol in symbols), np.int64, len(members))
        reach = np.array([float(member.sql.rpartition(" ")[2]) for member in members], np.float64)
        after = np.array([member.after for member in members], np.int64)
        return Timeline(tuple(numbers), item, np.array([row.price for row in moves]), follows, reach, after)

    @property
    def size(self) -> int:
        return len(self.member_reach)

    @property
    def moves(self) -> int:
        return len(self.move_value)

    @property
    def settled(self) -> int:
        """The number of moves after which nobody comes any more and every item has a value."""
        _, first = np.unique(self.move_item, return_index=True)
        return int(max(self.member_after.max(initial=0), first.max(initial=-1) + 1))

    def early(self, moves: int) -> Timeline:
        """The same with everybody coming sooner, in the same order: within the first so many moves."""
        return replace(self, member_after=self.member_after * moves // max(1, self.moves))

    def sql(self, member: int) -> str:
        name, reach = self.names[self.member_item[member]], float(self.member_reach[member])
        return f"SELECT * FROM quotes WHERE symbol = '{name}' AND moved(price) >= {reach!r}"


class _Subscription(msgspec.Struct):
    sql: str
    after: int


class _Row(msgspec.Struct):
    symbol: str
    price: float


class _Change(msgspec.Struct):
    row: _Row
