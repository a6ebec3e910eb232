"""Message strategies of joins. All give the same notifications.

`ref-sj:SKYLINE` sends rows as semijoins: to the subscriptions that select a row and have a partner for it, and later, when a
first partner arrives, to those that then have one. `auto` does so with merged skylines, and filters tables by several
neighbours, or by none, if that costs less. The other strategies are in `baselines.py`.
"""

from __future__ import annotations

from tidings.families.join.baselines import EnumeratedResults, EnumeratedSemijoins, RelaxedServer, ResultServer
from tidings.families.join.semijoin.server import SemijoinServer
from tidings.families.join.semijoin.skylines import skyline_of
from tidings.families.optional import FamilyServer
from tidings.families.protocols import Server
from tidings.model.catalog import Catalog


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
    """Semijoins for all forms of the family: forms that need the same rows share messages."""
