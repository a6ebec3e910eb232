"""Two charts of a run as SVG: what each broker sent, and after how many hops messages arrived."""

from __future__ import annotations

from collections.abc import Sequence

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 360, 220, 70, 50, 110
_BARS_MAX = 60


def draw(out_bytes: Sequence[int], hops: Sequence[int], title: str) -> str:
    """out_bytes: of each broker; hops[h]: deliveries after h hops."""
    busiest = sorted(out_bytes, reverse=True)
    step = max(1, -(-len(busiest) // _BARS_MAX))
    shown = [max(busiest[i : i + step]) for i in range(0, len(busiest), step)]
    width, height = 2 * _WIDTH + _LEFT + _GAP + 30, _HEIGHT + _TOP + 60
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            f'<text x="{_LEFT}" y="24" font-weight="bold" font-size="15">{title}</text>',
            *_bars(_LEFT, shown, "bytes sent by each broker, the busiest first", [1, len(busiest)]),
            *_bars(_LEFT + _WIDTH + _GAP, hops[1:], "deliveries by hops from the server", [1, max(len(hops) - 1, 1)]),
            "</svg>\n",
        ]
    )


def _bars(left: float, values: Sequence[int], label: str, ends: Sequence[int]) -> list[str]:
    most = max([*values, 1])
    wide = _WIDTH / max(len(values), 1)
    base = _TOP + _HEIGHT
    parts = [
        f'<rect x="{left + i * wide:.1f}" y="{base - _HEIGHT * value / most:.1f}" width="{max(wide - 1, 0.5):.1f}" '
        f'height="{_HEIGHT * value / most:.1f}" fill="#2b7bba"/>'
        for i, value in enumerate(values)
    ]
    return [
        *parts,
        f'<path d="M{left} {_TOP}V{base}H{left + _WIDTH}" fill="none" stroke="#333"/>',
        f'<text x="{left - 8}" y="{_TOP + 10}" text-anchor="end" fill="#555">{most:,}</text>',
        f'<text x="{left}" y="{base + 18}" fill="#555">{ends[0]:,}</text>',
        f'<text x="{left + _WIDTH}" y="{base + 18}" text-anchor="end" fill="#555">{ends[1]:,}</text>',
        f'<text x="{left + _WIDTH / 2}" y="{base + 38}" text-anchor="middle">{label}</text>',
    ]
