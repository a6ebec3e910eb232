"""The grid: rows of servers that share the matching of publications with subscriptions, by the codes of one attribute.

Clients send constraints straight to the rows that hold them; a directory says which those are, in versions. Read
`tidings.exchange.grid.partition` (who holds what, who reports), `row.py` (a server, from loading to retiring),
`directory.py` (from one version to the next), `client.py`. All of it is values in, values out: transports carry the messages
of `messages.py`.
"""

from research.grid.client import Client
from research.grid.directory import Directory, Phase, RepartitionError
from research.grid.messages import Kind, Message, Report, ToClient, ToDirectory, ToServer
from research.grid.row import Farm, Match, RowServer
from tidings.exchange.grid.partition import (
    Constraint,
    Interval,
    Intervals,
    Partition,
    ServerAddress,
    Side,
    balanced_cuts,
    report_code,
    report_codes,
    route,
)

__all__ = [
    "Client",
    "Constraint",
    "Directory",
    "Farm",
    "Interval",
    "Intervals",
    "Kind",
    "Match",
    "Message",
    "Partition",
    "Phase",
    "RepartitionError",
    "Report",
    "RowServer",
    "ServerAddress",
    "Side",
    "ToClient",
    "ToDirectory",
    "ToServer",
    "balanced_cuts",
    "report_code",
    "report_codes",
    "route",
]
