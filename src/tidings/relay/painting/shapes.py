"""What pictures are made of: paths, circles, rectangles and texts, in pixels from the upper left corner."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

TEXT = "#333"
FAINT = "#666"
BLUE = "#2b7bba"
ORANGE = "#e07b39"
"""House colours: dots and bars, and those at capacity."""

Point = tuple[float, float]
Step = tuple[Literal["M", "L", "C", "Z"], tuple[Point, ...]]
"""Move to a point, a line to one, a Bezier curve by two to a third, or back to where the path began: as in SVG."""


@dataclass(frozen=True, slots=True)
class Path:
    steps: tuple[Step, ...]
    stroke: str | None = None
    width: float = 1.0
    fill: str | None = None
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Circle:
    x: float
    y: float
    radius: float
    fill: str
    hint: str = ""
    """Shown by a browser when the pointer is on it."""


@dataclass(frozen=True, slots=True)
class Rectangle:
    x: float
    y: float
    width: float
    height: float
    fill: str
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Text:
    """x: of the end that `anchor` names. y: of the baseline."""

    x: float
    y: float
    text: str
    size: float = 12.0
    colour: str = TEXT
    anchor: Literal["start", "middle", "end"] = "start"
    is_bold: bool = False


Shape = Path | Circle | Rectangle | Text


@dataclass(frozen=True)
class Picture:
    """Later shapes lie on earlier ones."""

    width: float
    height: float
    shapes: Sequence[Shape]


def curve(points: Sequence[Point], stroke: str, width: float = 1.0, opacity: float = 1.0) -> Path:
    """A line from left to right through all points, level at each of them."""
    steps: list[Step] = [("M", (points[0],))]
    steps += [_bend(one, other) for one, other in itertools.pairwise(points)]
    return Path(tuple(steps), stroke, width, None, opacity)


def ribbon(start: Point, end: Point, height: float, fill: str, opacity: float) -> Path:
    """A band of one height from left to right; the points are its upper corners."""
    lower_start, lower_end = (start[0], start[1] + height), (end[0], end[1] + height)
    steps: tuple[Step, ...] = (
        ("M", (start,)),
        _bend(start, end),
        ("L", (lower_end,)),
        _bend(lower_end, lower_start),
        ("Z", ()),
    )
    return Path(steps, None, 0.0, fill, opacity)


def text_width(text: str, size: float) -> float:
    """About, and rather too much: fonts differ."""
    return size * sum(_letter_width(letter) for letter in text)


def shown(text: str, most: int) -> str:
    """An id in one line, with no more letters than this, the middle left out, and none that cannot be printed."""
    # Marks above and below letters can be piled up without end.
    letters = [letter if letter.isprintable() else "\ufffd" for letter in text if not unicodedata.combining(letter)]
    if len(letters) > most:
        tail = (most - 1) // 3
        letters[most - 1 - tail : len(letters) - tail] = "…"
    found = "".join(letters)
    return found if found.strip() else f'"{found}"'


def _bend(one: Point, other: Point) -> Step:
    middle = (one[0] + other[0]) / 2
    return ("C", ((middle, one[1]), (middle, other[1]), other))


def _letter_width(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.35
    if letter in "mwMW@%—…\ufffd<>&=+~#":
        return 1.0
    if letter in "ijl.,:;'|!()[] ":
        return 0.36
    return 0.72 if letter.isupper() else 0.64
