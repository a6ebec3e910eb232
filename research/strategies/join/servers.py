"""The server of a strategy of joins."""

from __future__ import annotations

from research.strategies.join.baselines import EnumeratedResults, EnumeratedSemijoins, RelaxedServer, ResultServer
from research.strategies.join.skylines import skyline_of
from tidings.families.join import strategies
from tidings.families.join.strategies import FamilySemijoins
from tidings.families.protocols import Server
from tidings.families.spec import Form
from tidings.model.catalog import Catalog


def server(form: Form, catalog: Catalog, strategy: str) -> Server:
    return server_of(catalog, strategy)


def server_of(catalog: Catalog, strategy: str) -> Server:
    """strategy: `auto`, or one of `research.strategies.JOINS`."""
    kind, _, skyline = strategy.partition(":")
    match kind:
        case "auto":
            return strategies.server_of(catalog)
        case "ref-sj":
            return FamilySemijoins(catalog, skyline_of(skyline))
        case "enum-sj":
            return EnumeratedSemijoins(catalog)
        case "ref-j" | "ref-j+":
            return ResultServer(catalog, is_checked=kind == "ref-j+")
        case "enum-j":
            return EnumeratedResults(catalog)
    return RelaxedServer(catalog)
