"""A picture as PNG, drawn by matplotlib."""

from __future__ import annotations

import warnings
from io import BytesIO
from typing import Any

from tidings.model.errors import UsageError
from tidings.relay.painting.shapes import Circle, Path, Picture, Point, Rectangle, Shape, Text

_INCH = 100
"""Pixels of a picture in one inch of a figure."""
_POINT = 72 / _INCH
_SIDE_MAX = 16_000
"""Pixels of an image; larger pictures are drawn with less detail."""
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def png(picture: Picture, scale: float = 2.0) -> bytes:
    """The contents of a PNG file. scale: pixels of the image per pixel of the picture. UsageError if matplotlib is missing."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "matplotlib":
            raise
        raise UsageError(
            "pictures in PNG need the package matplotlib: pip install '.[research]' in the clone; those in SVG do not"
        ) from None
    scale = min(scale, _SIDE_MAX / max(picture.width, picture.height))
    figure = Figure(figsize=(picture.width / _INCH, picture.height / _INCH), dpi=_INCH * scale, facecolor="#fff")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, picture.width)
    axes.set_ylim(picture.height, 0)
    for order, shape in enumerate(picture.shapes):
        axes.add_artist(_artist(shape, order))
    image = BytesIO()
    with warnings.catch_warnings():
        # Ids may have letters that no font has.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        canvas.print_png(image)
    return image.getvalue()


def _artist(shape: Shape, order: int) -> Any:
    from matplotlib import patches, text

    match shape:
        case Path():
            stroke = {"edgecolor": shape.stroke or "none", "linewidth": shape.width * _POINT if shape.stroke else 0}
            fill = shape.fill or "none"
            return patches.PathPatch(_path(shape), facecolor=fill, alpha=shape.opacity, zorder=order, **stroke)
        case Circle():
            return patches.Circle((shape.x, shape.y), shape.radius, color=shape.fill, linewidth=0, zorder=order)
        case Rectangle():
            corner, alpha = (shape.x, shape.y), shape.opacity
            return patches.Rectangle(
                corner, shape.width, shape.height, color=shape.fill, linewidth=0, alpha=alpha, zorder=order
            )
        case Text():
            return text.Text(
                shape.x,
                shape.y,
                shape.text,
                color=shape.colour,
                fontsize=shape.size * _POINT,
                fontweight="bold" if shape.is_bold else "normal",
                ha=_ANCHORS[shape.anchor],
                va="baseline",
                # A view's id may have dollar signs, which are no formula.
                parse_math=False,
                zorder=order,
            )


def _path(shape: Path) -> Any:
    from matplotlib.path import Path as Drawn

    codes: list[Any] = []
    points: list[Point] = []
    for letter, through in shape.steps:
        code = {"M": Drawn.MOVETO, "L": Drawn.LINETO, "C": Drawn.CURVE4, "Z": Drawn.CLOSEPOLY}[letter]
        codes += [code] * (len(through) or 1)
        points += through or [(0.0, 0.0)]
    return Drawn(points, codes)
