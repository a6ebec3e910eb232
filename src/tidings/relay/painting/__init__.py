"""Pictures of relay plans: who feeds whom, from the publisher on the left to the deepest level on the right.

    plan --(small: every view; large: levels)--> shapes --> SVG or PNG

`paint_plan` makes the picture, `svg` and `png` the contents of a file.
"""

from __future__ import annotations

from tidings.relay.load import Loads, loads_of
from tidings.relay.painting.levels import paint_levels
from tidings.relay.painting.png import png
from tidings.relay.painting.shapes import Picture
from tidings.relay.painting.svg import svg
from tidings.relay.painting.views import paint_views
from tidings.relay.plan import RelayPlan

__all__ = ["VIEWS_MAX", "paint_plan", "png", "svg"]

VIEWS_MAX = 150
"""Plans with more views are drawn as levels."""
LEVELS_MAX = 40
"""So are plans with more levels."""


def paint_plan(plan: RelayPlan, loads: Loads | None = None) -> Picture:
    """loads: of `loads_of`, with the capacities; without them no view is known to be at capacity."""
    if loads is None:
        loads = loads_of(plan)
    is_small = len(plan.inputs) <= VIEWS_MAX and max(plan.levels.values(), default=0) <= LEVELS_MAX
    return paint_views(plan, loads) if is_small else paint_levels(plan, loads)
