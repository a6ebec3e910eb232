"""A picture as SVG."""

from __future__ import annotations

from html import escape

from tidings.relay.painting.shapes import Circle, Path, Picture, Rectangle, Shape, Text


def svg(picture: Picture) -> str:
    """The text of an SVG file."""
    size = f"{picture.width:g} {picture.height:g}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        *map(_element, picture.shapes),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _element(shape: Shape) -> str:
    match shape:
        case Path():
            drawing = "".join(
                letter + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) for letter, points in shape.steps
            )
            stroke = "" if shape.stroke is None else f' stroke="{shape.stroke}" stroke-width="{shape.width:g}"'
            return f'<path d="{drawing}" fill="{shape.fill or "none"}"{stroke}{_opacity(shape.opacity)}/>'
        case Circle():
            inside = f"><title>{escape(shape.hint)}</title></circle>" if shape.hint else "/>"
            return f'<circle cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="{shape.radius:.1f}" fill="{shape.fill}"{inside}'
        case Rectangle():
            corner = f'x="{shape.x:.1f}" y="{shape.y:.1f}"'
            size = f'width="{shape.width:.1f}" height="{shape.height:.1f}"'
            return f'<rect {corner} {size} fill="{shape.fill}"{_opacity(shape.opacity)}/>'
        case Text():
            anchor = "" if shape.anchor == "start" else f' text-anchor="{shape.anchor}"'
            weight = ' font-weight="bold"' if shape.is_bold else ""
            place = f'x="{shape.x:.1f}" y="{shape.y:.1f}" font-size="{shape.size:g}"'
            return f'<text {place} fill="{shape.colour}"{anchor}{weight}>{escape(shape.text)}</text>'


def _opacity(opacity: float) -> str:
    return "" if opacity == 1 else f' opacity="{opacity:g}"'
