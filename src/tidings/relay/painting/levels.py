"""The picture of a large plan: a bar per level, bands from each level to those that it feeds, and charts of loads and inputs.

Bands are as thick as there are feeds. What a level feeds beyond the next one runs along below the bars, and gets thinner at
each level that takes its part.

    publisher |==| 1 |=====| 2 |====| 3 |
                     \\_____________/
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tidings.relay.load import Loads, histogram
from tidings.relay.painting.parts import HEADING, MARGIN, ROW, chart, heading, width_of
from tidings.relay.painting.shapes import FAINT, ORANGE, TEXT, Picture, Rectangle, Shape, Text, ribbon, text_width
from tidings.relay.plan import PUBLISHER, RelayPlan
from tidings.relay.summary import counted, level_groups, levels_shown

COLUMNS_MAX = 20
"""Bars of levels; if there are more levels, some share one."""
_COLOURS = ("#2b7bba", "#3d9970", "#8e5bb5", "#c9a227", "#c0507a", "#5b8a8a", "#7a6a58")
_HEIGHT = 400.0
_WIDTH_MIN = 960.0
_LEVEL_NAMES = 44.0
_BAR = 20.0
_COLUMN_MIN, _COLUMN_MAX = 74.0, 150.0
_EDGE = 66.0
"""Left and right of the bars: what is written above the first and the last is wider than they are."""
_LANE_GAP = 5.0
_THIN = 0.5
"""The least thickness that is seen."""
_INPUTS_MAX = 6


@dataclass(frozen=True)
class _Flows:
    """Column 0 is the publisher; the levels follow, or groups of them.

    views: per column. feeds: how many go from one column to another. passing: per column, what earlier ones feed beyond it.
    """

    views: list[int]
    names: list[str]
    feeds: Counter[tuple[int, int]]
    passing: list[dict[int, int]]

    def into(self, column: int) -> int:
        return sum(self.feeds[source, column] for source in range(column))

    def out_of(self, column: int) -> int:
        return sum(self.feeds[column, end] for end in range(column + 1, len(self.views)))

    def height(self, column: int) -> int:
        """Of the bar."""
        return max(self.into(column), self.out_of(column), self.views[column])


def paint_levels(plan: RelayPlan, loads: Loads) -> Picture:
    flows = _flows(plan)
    titles = heading(plan)
    gaps = len(flows.views) - 1
    width = max(width_of(titles), _WIDTH_MIN, 2 * _EDGE + gaps * _COLUMN_MIN + _BAR)
    step = min(_COLUMN_MAX, (width - 2 * _EDGE - _BAR) / max(gaps, 1))
    # A few levels stand in the middle.
    left = (width - gaps * step - _BAR) / 2
    lefts = [left + column * step for column in range(len(flows.views))]
    top = HEADING + _LEVEL_NAMES
    shapes: list[Shape] = [*titles, *_names(flows, lefts, step), *_bars_and_bands(flows, lefts, top)]
    y = top + _HEIGHT + 34
    about = "Bands: feeds, in the colour of the level that feeds; as thick as they are many.   "
    about += "Bars: levels; solid their views, pale their feeds in or out."
    shapes.append(Text(width / 2, y, about, 11.5, FAINT, "middle"))
    charts, height = _charts(plan, loads, width, y + 24)
    return Picture(round(width), round(y + 24 + height + MARGIN), [*shapes, *charts])


def _flows(plan: RelayPlan) -> _Flows:
    groups = enumerate(level_groups(plan, COLUMNS_MAX), 1)
    column_of = {level: number for number, group in groups for level in group}
    column = {view: column_of[level] for view, level in plan.levels.items()}
    column[PUBLISHER] = 0
    feeds: Counter[tuple[int, int]] = Counter()
    for view, inputs in plan.inputs.items():
        for source in inputs:
            # Those between levels that share a bar are not seen.
            if column[source] < column[view]:
                feeds[column[source], column[view]] += 1
    shown = levels_shown(plan, COLUMNS_MAX)
    columns = range(len(shown) + 1)
    passing = [
        {
            source: count
            for source in range(at - 1, -1, -1)
            if (count := sum(feeds[source, end] for end in columns if end > at))
        }
        for at in columns
    ]
    views = [0, *(count for _, count in shown)]
    return _Flows(views, ["publisher", *(f"level {name}" for name, _ in shown)], feeds, passing)


def _names(flows: _Flows, lefts: list[float], step: float) -> list[Text]:
    """In fewer words where columns are narrow."""
    found = []
    for column, (left, name) in enumerate(zip(lefts, flows.names, strict=True)):
        count = flows.views[column] if column else flows.out_of(0)
        below = counted(count, "views") if column else f"feeds {count:,}"
        above = name if text_width(name, 11) <= step else name.removeprefix("level ")
        below = below if text_width(below, 12) <= step else f"{count:,}"
        middle = left + _BAR / 2
        found.append(Text(middle, HEADING + 12, above, 11, FAINT, "middle", is_bold=True))
        found.append(Text(middle, HEADING + 28, below, 12, TEXT, "middle"))
    return found


def _bars_and_bands(flows: _Flows, lefts: list[float], top: float) -> list[Shape]:
    columns = range(len(flows.views))
    units = max(flows.height(column) + sum(flows.passing[column].values()) for column in columns)
    lanes = max(len(passing) for passing in flows.passing)
    scale = (_HEIGHT - (lanes + 2) * _LANE_GAP) / max(units, 1)

    def thick(feeds: int) -> float:
        return max(feeds * scale, _THIN)

    bar_top: list[float] = []
    lane_top: list[dict[int, float]] = []
    for column in columns:
        passing = flows.passing[column]
        bar = thick(flows.height(column))
        total = bar + sum(_LANE_GAP + thick(feeds) for feeds in passing.values()) + (2 * _LANE_GAP if passing else 0.0)
        at = top + (_HEIGHT - total) / 2
        bar_top.append(at)
        at += bar + 2 * _LANE_GAP
        lane_top.append({})
        for source, feeds in passing.items():
            at += _LANE_GAP
            lane_top[column][source] = at
            at += thick(feeds)

    shapes: list[Shape] = []
    for column in columns[:-1]:
        start, end = lefts[column] + _BAR, lefts[column + 1]
        into = bar_top[column + 1] + (thick(flows.height(column + 1)) - thick(flows.into(column + 1))) / 2
        own = bar_top[column] + (thick(flows.height(column)) - thick(flows.out_of(column))) / 2
        for source, at in [(column, own), *lane_top[column].items()]:
            colour = _COLOURS[source % len(_COLOURS)] if source else TEXT
            if feeds := flows.feeds[source, column + 1]:
                shapes.append(ribbon((start, at), (end, into), thick(feeds), colour, 0.32))
                at += feeds * scale
                into += feeds * scale
            if feeds := flows.passing[column + 1].get(source, 0):
                lane = lane_top[column + 1][source]
                shapes.append(ribbon((start, at), (end, lane), thick(feeds), colour, 0.32))
                shapes.append(Rectangle(end, lane, _BAR, thick(feeds), colour, 0.32))
    for column in columns:
        colour = _COLOURS[column % len(_COLOURS)] if column else TEXT
        whole = max(thick(flows.height(column)), 2.0)
        solid = max(thick(flows.views[column] if column else flows.height(column)), 2.0)
        shapes.append(Rectangle(lefts[column], bar_top[column], _BAR, whole, colour, 0.4))
        shapes.append(Rectangle(lefts[column], bar_top[column] + (whole - solid) / 2, _BAR, solid, colour))
    return shapes


def _charts(plan: RelayPlan, loads: Loads, width: float, y: float) -> tuple[list[Shape], float]:
    """Loads on the left, inputs on the right; and their height."""
    noun = loads.noun
    rows = histogram(loads.fed.values(), loads.common_capacity)
    colours = [_COLOURS[0]] * len(rows)
    if loads.capacity:
        rows.append(("at capacity", len(loads.full_sites)))
        colours.append(ORANGE)
    each = (width - 3 * MARGIN) / 2
    others = "views elsewhere" if noun == "sites" else "others"
    limit = "" if loads.common_capacity is None else f" (capacity {loads.common_capacity:,})"
    shapes = chart(MARGIN, y, each, f"{noun.capitalize()} by how many {others} they feed{limit}", rows, colours)
    inputs = Counter(min(len(found), _INPUTS_MAX) for found in plan.inputs.values() if found != (PUBLISHER,))
    most = max(inputs, default=0)
    named = [
        (f"{count} or more" if count == _INPUTS_MAX else f"{count}", inputs[count]) for count in range(1, most + 1)
    ]
    right = [("publisher", plan.feeds), *named]
    shapes += chart(2 * MARGIN + each, y, each, "Views by how many inputs they are computed from", right)
    return shapes, 24 + ROW * max(len(rows), len(right))
