"""A scene as SVG: points, tiles in one colour per message, and a legend in the order of sending."""

from __future__ import annotations

from html import escape

import numpy as np

from tidings.painting.scale import Scale, scale_for
from tidings.painting.scene import Scene, Sent

_SIZE = 520
_LEFT, _TOP, _BOTTOM, _LEGEND = 80, 50, 70, 400
_COLOURS = ("#2b7bba", "#e07b39", "#3d9970", "#8e5bb5", "#c9a227", "#c0507a", "#5b8a8a", "#7a6a58")
_POINTS_MAX = 4_000
_LEGEND_MAX = 14


def draw(scene: Scene) -> str:
    """The picture, as the text of an SVG file."""
    codes = np.concatenate([scene.points.ravel(), *(np.r_[sent.lo.ravel(), sent.hi.ravel()] for sent in scene.sent)])
    scale = scale_for(scene.column.type, codes, _SIZE)
    width, height = _LEFT + _SIZE + _LEGEND, _TOP + _SIZE + _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        _text(_LEFT, 28, scene.title, 'font-weight="bold" font-size="15"'),
        f'<g transform="translate({_LEFT},{_TOP})">',
        *_axes(scale, scene.column.name),
        *(line for i, sent in enumerate(scene.sent) for line in _tiles(scale, sent, _colour(i))),
        *_points(scale, scene),
        "</g>",
        f'<g transform="translate({_LEFT + _SIZE + 24},{_TOP + 10})">',
        *_legend(scene),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _axes(scale: Scale, name: str) -> list[str]:
    lines = [
        f'<rect width="{_SIZE}" height="{_SIZE}" fill="none" stroke="#333"/>',
        f'<line x1="0" y1="{_SIZE}" x2="{_SIZE}" y2="0" stroke="#bbb" stroke-dasharray="4 4"/>',
        _text(_SIZE / 2, _SIZE + 52, f"range of {name} begins at", 'text-anchor="middle"'),
        _text(0, 0, "ends at", f'text-anchor="middle" transform="translate(-62,{_SIZE / 2}) rotate(-90)"'),
    ]
    for at, text in scale.ticks():
        lines.append(f'<path d="M{at:.1f} {_SIZE}v5M0 {_SIZE - at:.1f}h-5" stroke="#333"/>')
        lines.append(_text(at, _SIZE + 20, text, 'text-anchor="middle" fill="#555" font-size="11"'))
        lines.append(_text(-9, _SIZE - at + 4, text, 'text-anchor="end" fill="#555" font-size="11"'))
    return lines


def _tiles(scale: Scale, sent: Sent, colour: str) -> list[str]:
    left, right = scale.place(sent.lo[:, 0]), scale.place(sent.hi[:, 0])
    bottom, top = scale.place(sent.lo[:, 1]), scale.place(sent.hi[:, 1])
    return [
        f'<rect x="{x:.1f}" y="{_SIZE - t:.1f}" width="{max(r - x, 1):.1f}" height="{max(t - b, 1):.1f}" '
        f'fill="{colour}" fill-opacity=".28" stroke="{colour}"/>'
        for x, r, b, t in zip(left, right, bottom, top, strict=True)
    ]


def _points(scale: Scale, scene: Scene) -> list[str]:
    points = scene.points
    if len(points) > _POINTS_MAX:
        points = points[np.linspace(0, len(points) - 1, _POINTS_MAX).astype(np.int64)]
    radius = 3.0 if len(points) < 300 else 1.4
    x, y = scale.place(points[:, 0]), _SIZE - scale.place(points[:, 1])
    dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{radius}"/>' for a, b in zip(x, y, strict=True))
    lines = [f'<g fill="#333" fill-opacity=".6">{dots}</g>']
    if scene.marked is not None:
        a, b = (float(at) for at in scale.place(np.array(scene.marked)))
        lines.append(f'<circle cx="{a:.1f}" cy="{_SIZE - b:.1f}" r="7" fill="none" stroke="#c00" stroke-width="2"/>')
    return lines


def _legend(scene: Scene) -> list[str]:
    lines = []
    y = 0
    for i, sent in enumerate(scene.sent[:_LEGEND_MAX]):
        tiles = "1 tile" if len(sent.lo) == 1 else f"{len(sent.lo)} tiles"
        reached = "1 subscription" if sent.reached == 1 else f"{sent.reached:,} subscriptions"
        lines.append(f'<rect y="{y - 11}" width="14" height="14" fill="{_colour(i)}" fill-opacity=".5"/>')
        lines.append(_text(22, y, f"{i + 1}. {sent.label}"))
        lines.append(_text(22, y + 16, f"{tiles}, {reached}", 'fill="#555"'))
        y += 38
    if len(scene.sent) > _LEGEND_MAX:
        lines.append(_text(22, y, f"and {len(scene.sent) - _LEGEND_MAX} more messages", 'fill="#555"'))
        y += 38
    shown = f"{len(scene.points):,} subscriptions"
    lines.append(_text(22, y, shown if len(scene.points) <= _POINTS_MAX else f"{shown}, {_POINTS_MAX:,} of them shown"))
    if scene.marked is not None:
        lines.append(_text(22, y + 18, "the one asked for is circled", 'fill="#c00"'))
    return lines


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _text(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {attributes}>{escape(text)}</text>'
