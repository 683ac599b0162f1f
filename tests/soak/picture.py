"""Curves over time as one SVG, a small chart for each thing that was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, TOP = 760, 170, 70, 28
COLORS = ("#1b6ca8", "#c8553d", "#588157", "#6d597a", "#b08900", "#3d405b", "#8d99ae")

Curve = Sequence[tuple[float, float]]


def picture(charts: Mapping[str, Mapping[str, Curve]]) -> str:
    """The charts below each other; `charts[title][name]` are points (seconds, value)."""
    parts = [_chart(title, curves, n * HEIGHT) for n, (title, curves) in enumerate(charts.items())]
    size = f'width="{WIDTH}" height="{HEIGHT * len(charts)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">{"".join(parts)}</svg>\n'


def _chart(title: str, curves: Mapping[str, Curve], top: int) -> str:
    points = [point for curve in curves.values() for point in curve] or [(0.0, 0.0)]
    most_time, most = max(at for at, _ in points) or 1.0, max(value for _, value in points) or 1.0
    width, height = WIDTH - LEFT - 150, HEIGHT - TOP - 30

    def place(at: float, value: float) -> str:
        return f"{LEFT + at / most_time * width:.1f},{top + TOP + height - value / most * height:.1f}"

    lines = [
        f'<text x="{LEFT}" y="{top + 16}" font-weight="bold">{escape(title)}</text>',
        f'<text x="{LEFT - 6}" y="{top + TOP + 8}" text-anchor="end">{most:,.0f}</text>',
        f'<text x="{LEFT - 6}" y="{top + TOP + height}" text-anchor="end">0</text>',
        f'<text x="{LEFT + width}" y="{top + TOP + height + 16}" text-anchor="end">{most_time:,.0f} s</text>',
        f'<polyline fill="none" stroke="#999" points="{place(0, most)} {place(0, 0)} {place(most_time, 0)}"/>',
    ]
    for n, (name, curve) in enumerate(curves.items()):
        color = COLORS[n % len(COLORS)]
        path = " ".join(place(at, value) for at, value in curve)
        lines.append(f'<polyline fill="none" stroke="{color}" stroke-width="1.5" points="{path}"/>')
        lines.append(f'<text x="{LEFT + width + 12}" y="{top + TOP + 10 + n * 14}" fill="{color}">{escape(name)}</text>')
    return "".join(lines)
