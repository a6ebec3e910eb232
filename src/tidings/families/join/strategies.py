"""Ways to turn changes into join messages; all give the same notifications.

`auto` sends semijoins with merged skylines, and filters tables by several neighbours, or by none, where that costs less.
`ref-sj:SKYLINE` sends rows as semijoins: to those who select a row and have a partner for it, and later, when a first partner
comes, to those who now have one. `enum-sj` does the same, to each subscription on its own. `rel-sel` sends a row to all who
select it, partner or not. `ref-j` sends whole joined rows, `ref-j+` those that somebody wants, `enum-j` to each on its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidings.families.join.circle import payload_of
from tidings.families.join.meeting import Arrival
from tidings.families.join.relaxed import RelaxedServer
from tidings.families.join.results import ResultServer
from tidings.families.join.semijoin import SemijoinServer
from tidings.families.join.skylines import Tuples, skyline_of
from tidings.families.join.subscription import spec_of
from tidings.families.optional import FamilyServer
from tidings.families.protocols import Server
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.message import MessageBatch


def server_of(catalog: Catalog, strategy: str) -> Server:
    kind, _, skyline = strategy.partition(":")
    match kind:
        case "auto":
            return FamilySemijoins(catalog, skyline_of("clu+"), is_free=True)
        case "ref-sj":
            return FamilySemijoins(catalog, skyline_of(skyline))
        case "enum-sj":
            return EnumeratedSemijoins(catalog)
        case "ref-j" | "ref-j+":
            return ResultServer(catalog, is_checked=kind == "ref-j+")
        case "enum-j":
            return EnumeratedResults(catalog)
    return RelaxedServer(catalog)


class FamilySemijoins(SemijoinServer, FamilyServer):
    """Rows go out once for all forms that want the same of them."""


class EnumeratedSemijoins(SemijoinServer):
    """One message per affected subscription, where there would be one to a region."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog, Tuples())

    def _messages(self, arrival: Arrival) -> Iterator[MessageBatch]:
        for messages in super()._messages(arrival):
            # There is but one form: servers that enumerate are not shared.
            form = Form.from_key(messages.to[0])
            space, payload = spec_of(form, self._catalog).space, payload_of(form, messages, self._catalog)
            own = messages.heard(form.key, space, payload)
            affected = self.circles[messages.form].audience.affected(messages.regions)
            addressed = self.roster.address(own, affected)
            if addressed is not None:
                yield addressed


class EnumeratedResults(ResultServer):
    """One message per affected subscription, where there would be one to a region."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog, is_checked=False)

    def _messages(self, arrival: Arrival) -> Iterator[MessageBatch]:
        for messages in super()._messages(arrival):
            addressed = self.roster.address(messages, self.audiences[messages.form].affected(messages.regions))
            if addressed is not None:
                yield addressed
