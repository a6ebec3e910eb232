"""The servers of the strategies of joins.

`auto` sends rows as semijoins. They go to the subscriptions that select a row and have a partner for it, and later, when a
first partner arrives, to those that then have one. A table is filtered by one neighbour, by several, or by none, whichever
costs least.
"""

from __future__ import annotations

from research.servers.protocols import FamilyServer, Server
from research.strategies.join.baselines import EnumeratedResults, EnumeratedSemijoins, RelaxedServer, ResultServer
from research.strategies.join.long_semijoins import LongSemijoins
from research.strategies.join.semijoin.server import SemijoinServer
from research.strategies.join.semijoin.skylines import MergedClusters
from research.strategies.join.skylines import skyline_of
from tidings.families.spec import Form
from tidings.model.catalog import Catalog


class FamilySemijoins(SemijoinServer, FamilyServer):
    """Semijoins for all forms of the family: forms that need the same rows share messages."""


def server(form: Form, catalog: Catalog, strategy: str) -> Server:
    return server_of(catalog, strategy)


def server_of(catalog: Catalog, strategy: str) -> Server:
    """strategy: `auto`, or one of `research.strategies.JOINS`."""
    kind, _, skyline = strategy.partition(":")
    match kind:
        case "auto":
            return FamilySemijoins(catalog, MergedClusters(), is_free=True)
        case "ref-sj":
            return FamilySemijoins(catalog, skyline_of(skyline))
        case "long-sj":
            return LongSemijoins(catalog)
        case "enum-sj":
            return EnumeratedSemijoins(catalog)
        case "ref-j" | "ref-j+":
            return ResultServer(catalog, is_checked=kind == "ref-j+")
        case "enum-j":
            return EnumeratedResults(catalog)
    return RelaxedServer(catalog)
