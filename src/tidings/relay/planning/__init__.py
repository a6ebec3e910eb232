"""Which node feeds which: plans of least use, and then of less latency, within capacities.

`solve` plans an `Instance`; `violations` says what is wrong with a plan.
"""

from tidings.relay.planning.instance import NO_SITE, UNLIMITED, Columns, Instance
from tidings.relay.planning.reference import publisher_feeds, violations
from tidings.relay.planning.solve import Infeasible, Solution, solve

__all__ = [
    "NO_SITE",
    "UNLIMITED",
    "Columns",
    "Infeasible",
    "Instance",
    "Solution",
    "publisher_feeds",
    "solve",
    "violations",
]
