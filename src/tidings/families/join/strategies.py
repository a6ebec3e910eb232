"""The message strategy of joins: `auto`. Rows are sent as semijoins.

They go to the subscriptions that select a row and have a partner for it, and later, when a first partner arrives, to those
that then have one. A table is filtered by one neighbour, by several, or by none, whichever costs least.
"""

from __future__ import annotations

from tidings.families.join.semijoin.server import SemijoinServer
from tidings.families.join.semijoin.skylines import MergedClusters
from tidings.families.optional import FamilyServer
from tidings.model.catalog import Catalog


class FamilySemijoins(SemijoinServer, FamilyServer):
    """Semijoins for all forms of the family: forms that need the same rows share messages."""


def server_of(catalog: Catalog) -> FamilySemijoins:
    return FamilySemijoins(catalog, MergedClusters(), is_free=True)
