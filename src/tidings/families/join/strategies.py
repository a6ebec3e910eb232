"""Ways to turn changes into join messages; all give the same notifications.

`ref-sj:SKYLINE` sends rows as semijoins: to those who select a row and have a partner for it, and later, when a first
partner comes, to those who now have one. `auto` does so with merged skylines, and filters tables by several neighbours, or
by none, where that costs less. The others are in `baselines.py`.
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
    """Rows go out once for all forms that want the same of them."""
