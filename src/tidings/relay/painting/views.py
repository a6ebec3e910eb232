"""The picture of a small plan: every view a dot, a column per level, a line from each view to those that it feeds.

A line that passes a level has a place there, between the views; lines of one view that pass it share the place.
"""

from __future__ import annotations

import itertools
from math import sqrt

from tidings.relay.load import Loads
from tidings.relay.painting.layered import order_layers, place_layers
from tidings.relay.painting.parts import HEADING, MARGIN, at_capacity, heading, width_of
from tidings.relay.painting.shapes import (
    BLUE,
    FAINT,
    ORANGE,
    TEXT,
    Circle,
    Path,
    Picture,
    Point,
    Rectangle,
    Shape,
    Text,
    curve,
    shown,
    text_width,
)
from tidings.relay.plan import PUBLISHER, RelayPlan
from tidings.relay.summary import counted

_Node = tuple[str, int]
"""A view or the publisher at its own level, or at one that lines from it pass."""

_HEIGHT = 640.0
_ROOM_MIN, _ROOM_MAX = 12.0, 26.0
_PASSING = 0.35
"""Of the room of a view, what a line takes that passes."""
_GAP_MIN, _GAP_MAX = 110.0, 220.0
"""Between the ids of one level and the dots of the next."""
_LEVEL_NAME, _LEVEL_NAMES = 56.0, 40.0
"""Width of one, and height."""
_LEGEND = 54.0
_ID_MAX, _HINT_MAX = 14, 200
_RADIUS_MAX = 6.5
_LINES = (("#8fb3d1", "only input"), ("#4f7fa8", "one of two inputs"), ("#1d3b57", "one of three or more"))
"""By the number of inputs of the view that is fed."""
_PUBLISHER_LINE = "#b9b9b9"


def paint_views(plan: RelayPlan, loads: Loads) -> Picture:
    columns, segments = _graph(plan)
    columns = order_layers(columns, segments)
    units = max(sum(1.0 if _is_own(node, plan) else _PASSING for node in column) for column in columns)
    each = min(max(_HEIGHT / units, _ROOM_MIN), _ROOM_MAX)
    room = {node: each if _is_own(node, plan) else each * _PASSING for column in columns for node in column}
    height = units * each
    heights = place_layers(columns, segments, room, height)

    size = min(12.0, each * 0.8)
    names = {node: shown(node[0], _ID_MAX) for column in columns for node in column if _is_own(node, plan)}
    ends = {node: 14 + text_width(name, size) for node, name in names.items()}
    legend, legend_width = _legend(loads, HEADING + _LEVEL_NAMES + height + 34)
    widths = [max(_LEVEL_NAME, *(ends.get(node, 0.0) for node in column)) for column in columns]
    width = max(width_of(heading(plan)), legend_width + MARGIN)
    gap = (width - 2 * MARGIN - _RADIUS_MAX - sum(widths)) / max(1, len(columns) - 1)
    gap = min(max(gap, _GAP_MIN), _GAP_MAX)
    left, lefts = MARGIN + _RADIUS_MAX, []
    for column_width in widths:
        lefts.append(left)
        left += column_width + gap
    top = HEADING + _LEVEL_NAMES
    places = {node: (lefts[node[1]], top + at) for node, at in heights.items()}

    shapes: list[Shape] = [*heading(plan), *_level_names(plan, lefts)]
    shapes += _lines(plan, places, ends)
    for node, name in names.items():
        shapes += _dot(plan, loads, node, name, places[node], size, each)
    width = max(width, left - gap + MARGIN)
    return Picture(round(width), round(top + height + _LEGEND), [*shapes, *legend])


def _is_own(node: _Node, plan: RelayPlan) -> bool:
    return node[1] == (0 if node[0] == PUBLISHER else plan.levels[node[0]])


def _graph(plan: RelayPlan) -> tuple[list[list[_Node]], list[tuple[_Node, _Node]]]:
    """The nodes of each level, and the parts of lines from one level to the next, each once."""
    columns: list[list[_Node]] = [[] for _ in range(max(plan.levels.values(), default=0) + 1)]
    columns[0].append((PUBLISHER, 0))
    for view in plan.order:
        columns[plan.levels[view]].append((view, plan.levels[view]))
    segments: dict[tuple[_Node, _Node], None] = {}
    passing: set[_Node] = set()
    for view in plan.order:
        for source in plan.inputs[view]:
            way = _way(plan, source, view)
            for node in way[1:-1]:
                if node not in passing:
                    passing.add(node)
                    columns[node[1]].append(node)
            segments.update(dict.fromkeys(itertools.pairwise(way)))
    return columns, list(segments)


def _way(plan: RelayPlan, source: str, view: str) -> list[_Node]:
    start = 0 if source == PUBLISHER else plan.levels[source]
    return [*((source, level) for level in range(start, plan.levels[view])), (view, plan.levels[view])]


def _lines(plan: RelayPlan, places: dict[_Node, Point], ends: dict[_Node, float]) -> list[Path]:
    """Those of views with fewest inputs first: the dark ones lie on top."""
    widest: dict[int, float] = {}
    for node, end in ends.items():
        widest[node[1]] = max(widest.get(node[1], 0.0), end)
    found = []
    for view in sorted(plan.order, key=lambda view: len(plan.inputs[view])):
        inputs = plan.inputs[view]
        for source in inputs:
            way = _way(plan, source, view)
            x, y = places[way[0]]
            points = [(x + ends[way[0]], y)]
            for node in way[1:-1]:
                x, y = places[node]
                points += [(x, y), (x + widest[node[1]], y)]
            points.append(places[way[-1]])
            stroke = _PUBLISHER_LINE if source == PUBLISHER else _LINES[min(len(inputs), len(_LINES)) - 1][0]
            found.append(curve(points, stroke, 1.0 if source == PUBLISHER else 1.3, 0.75))
    return found


def _dot(plan: RelayPlan, loads: Loads, node: _Node, name: str, place: Point, size: float, room: float) -> list[Shape]:
    x, y = place
    label = Text(x + 11, y + size * 0.36, name, size, TEXT, is_bold=node[0] == PUBLISHER)
    if node[0] == PUBLISHER:
        half = _RADIUS_MAX
        return [Rectangle(x - half, y - half, 2 * half, 2 * half, TEXT), label]
    fed = len(plan.dependants[node[0]])
    radius = min(_RADIUS_MAX, room * 0.42, 2.6 + 1.1 * sqrt(fed))
    inputs = ", ".join(shown(source, _ID_MAX) for source in plan.inputs[node[0]][:10])
    hint = f"{shown(node[0], _HINT_MAX)}: level {node[1]}, computed from {inputs}, feeds {counted(fed, 'views')}"
    return [Circle(x, y, radius, ORANGE if loads.is_full(node[0]) else BLUE, hint), label]


def _level_names(plan: RelayPlan, lefts: list[float]) -> list[Text]:
    counts = [0] * len(lefts)
    for level in plan.levels.values():
        counts[level] += 1
    found = []
    for level, left in enumerate(lefts):
        if level:
            found.append(Text(left - _RADIUS_MAX, HEADING + 12, f"level {level}", 11, FAINT, is_bold=True))
            found.append(Text(left - _RADIUS_MAX, HEADING + 26, counted(counts[level], "views"), 11, FAINT))
    return found


def _legend(loads: Loads, y: float) -> tuple[list[Shape], float]:
    """And where it ends."""
    shapes: list[Shape] = []
    x = MARGIN

    def add(text: str) -> None:
        nonlocal x
        shapes.append(Text(x, y, text, 11.5, FAINT))
        x += text_width(text, 11.5) + 22

    dots = [(BLUE, "view, larger if it feeds more")]
    if loads.capacity:
        dots.append((ORANGE, at_capacity(loads)))
    for colour, text in dots:
        shapes.append(Circle(x + 5, y - 4, 5, colour))
        x += 16
        add(text)
    for colour, text in _LINES:
        shapes.append(curve([(x, y - 4), (x + 24, y - 4)], colour, 1.8))
        x += 30
        add(text)
    return shapes, x
