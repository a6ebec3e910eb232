"""Parts that pictures of plans have in common: the title, and charts of bars."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.relay.load import Loads
from tidings.relay.painting.shapes import BLUE, FAINT, Rectangle, Shape, Text, text_width
from tidings.relay.plan import RelayPlan
from tidings.relay.summary import counted, number, percent

MARGIN = 28.0
HEADING = 66.0
"""Height of the title and the line below it."""
ROW = 19.0
"""Height of a bar and the room below it."""


def heading(plan: RelayPlan) -> list[Text]:
    """What the plan is, and how good."""
    views = len(plan.inputs)
    title = f"Relay plan: {counted(views, 'views')}"
    if views:
        title += f", {plan.feeds:,} of them ({plan.feeds / views:.1%}) fed by the publisher"
    figures = []
    if plan.use is not None:
        figures.append(f"use {number(plan.use)} bytes per document")
    if plan.gap is not None:
        least = "" if plan.least_use is None else f"least use {number(plan.least_use)}, "
        figures.append(f"{least}gap {percent(plan.gap)}")
    if plan.latency is not None and views:
        figures.append(f"latency {plan.latency / views:.2f} hops on average")
    levels = max(plan.levels.values(), default=0)
    figures.append(counted(levels, "levels"))
    return [
        Text(MARGIN, 34, title, 17, is_bold=True),
        Text(MARGIN, 55, "   ·   ".join(figures), 12.5, FAINT),
    ]


def width_of(texts: Sequence[Text]) -> float:
    """What the widest takes, margins included."""
    return 2 * MARGIN + max(text_width(text.text, text.size) for text in texts)


def chart(
    x: float, y: float, width: float, title: str, rows: Sequence[tuple[str, int]], colours: Sequence[str] = ()
) -> list[Shape]:
    """Bars to the right, one per row, with names and counts. colours: of the rows, if not all have the same."""
    shapes: list[Shape] = [Text(x, y + 12, title, 12.5, is_bold=True)]
    names = max((text_width(name, 11.5) for name, _ in rows), default=0.0)
    counts = max((text_width(f"{count:,}", 11.5) for _, count in rows), default=0.0)
    left, room = x + names + 8, width - names - counts - 16
    greatest = max(1, *(count for _, count in rows)) if rows else 1
    for place, (name, count) in enumerate(rows):
        top = y + 24 + place * ROW
        length = max(1.0, room * count / greatest) if count else 0.0
        shapes.append(Text(left - 8, top + 11, name, 11.5, FAINT, "end"))
        if count:
            shapes.append(Rectangle(left, top, length, ROW - 5, colours[place] if colours else BLUE))
        shapes.append(Text(left + length + 6, top + 11, f"{count:,}", 11.5))
    return shapes


def at_capacity(loads: Loads) -> str:
    common = loads.common_capacity
    own = "site" if loads.noun == "sites" else "view"
    return f"{own} at capacity" if common is None else f"{own} at capacity: feeds {common:,}"
