"""Which node feeds which: plans of least use, and then of less latency, within capacities.

`solve` plans an `Instance`, `reduce_latency` makes a plan faster, `LivePlan` follows nodes that come and go, and `violations`
says what is wrong with a plan.
"""

from tidings.relay.planning.instance import NO_SITE, UNLIMITED, Columns, Instance
from tidings.relay.planning.latency import Paths, paths_of, reduce_latency, total_latency
from tidings.relay.planning.live import LivePlan, NoRoom
from tidings.relay.planning.reference import publisher_feeds, violations
from tidings.relay.planning.snapshot import Column, Snapshot
from tidings.relay.planning.solve import Infeasible, Solution, solve

__all__ = [
    "NO_SITE",
    "UNLIMITED",
    "Column",
    "Columns",
    "Infeasible",
    "Instance",
    "LivePlan",
    "NoRoom",
    "Paths",
    "Snapshot",
    "Solution",
    "paths_of",
    "publisher_feeds",
    "reduce_latency",
    "solve",
    "total_latency",
    "violations",
]
