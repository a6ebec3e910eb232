"""Ways to turn changes into join messages; all give the same notifications.

`auto` sends semijoins with merged skylines, and filters tables by several neighbours, or by none, where that costs less.
`ref-sj:SKYLINE` sends rows as semijoins: to those who select a row and have a partner for it, and later, when a first partner
comes, to those who now have one. `enum-sj` does the same, to each subscription on its own. `rel-sel` sends a row to all who
select it, partner or not. `ref-j` sends whole joined rows, `ref-j+` those that somebody wants, `enum-j` to each on its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidings.families.base import Server
from tidings.families.join.relation import Moves
from tidings.families.join.relaxed import RelaxedServer
from tidings.families.join.results import ResultServer
from tidings.families.join.semijoin import SemijoinServer, Step
from tidings.families.join.skylines import Tuples, skyline_of
from tidings.families.join.subscription import Space
from tidings.model.change import TableChanges
from tidings.model.message import MessageBatch


def server_of(space: Space, strategy: str) -> Server:
    kind, _, skyline = strategy.partition(":")
    match kind:
        case "auto":
            return SemijoinServer(space, skyline_of("clu+"), is_free=True)
        case "ref-sj":
            return SemijoinServer(space, skyline_of(skyline))
        case "enum-sj":
            return EnumeratedSemijoins(space)
        case "ref-j" | "ref-j+":
            return ResultServer(space, is_checked=kind == "ref-j+")
        case "enum-j":
            return EnumeratedResults(space)
    return RelaxedServer(space)


class _Enumerated(SemijoinServer):
    """One message per affected subscription, where there would be one to a region."""

    def _messages(
        self, number: int, changes: TableChanges, moves: Moves, steps: dict[tuple[int, int], Step]
    ) -> Iterator[MessageBatch]:
        for messages in super()._messages(number, changes, moves, steps):
            addressed = self.audience.address(messages)
            if addressed is not None:
                yield addressed


class EnumeratedSemijoins(_Enumerated):
    def __init__(self, space: Space) -> None:
        super().__init__(space, Tuples())


class EnumeratedResults(_Enumerated, ResultServer):
    def __init__(self, space: Space) -> None:
        ResultServer.__init__(self, space, is_checked=False)
