"""How cost grows, as lines in a picture written by hand: no library. Both axes are logarithmic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

_COLORS = ("#1f6f5c", "#7ab8a6", "#c58b2a", "#8a8a8a", "#5b4b9a", "#b0413e")
_LEFT, _TOP, _WIDTH, _HEIGHT, _RIGHT, _BOTTOM = 70, 40, 420, 320, 210, 50

Point = tuple[float, float]


def svg(title: str, lines: Mapping[str, Sequence[Point]]) -> str:
    """A line for each of *lines*: items and milliseconds, all above 0."""
    points = [point for line in lines.values() for point in line]
    xs, ys = _decades([x for x, _ in points]), _decades([y for _, y in points])

    def at(x: float, y: float) -> Point:
        return _LEFT + _WIDTH * _share(x, xs), _TOP + _HEIGHT * (1 - _share(y, ys))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + _RIGHT}" height="{_TOP + _HEIGHT + _BOTTOM}"'
        ' font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="12" y="20" font-size="14">{escape(title)}</text>',
    ]
    for exponent in range(ys[0], ys[1] + 1):
        _, y = at(10 ** xs[0], 10**exponent)
        parts.append(f'<path d="M{_LEFT} {y:.1f}h{_WIDTH}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10**exponent:g} ms</text>')
    for exponent in range(xs[0], xs[1] + 1):
        x, _ = at(10**exponent, 10 ** ys[0])
        parts.append(f'<text x="{x:.1f}" y="{_TOP + _HEIGHT + 18}" text-anchor="middle">{10**exponent:,}</text>')
    for place, (name, line) in enumerate(lines.items()):
        parts += _line(name, [at(*point) for point in line], place)
    return "\n".join([*parts, "</svg>\n"])


def _line(name: str, points: Sequence[Point], place: int) -> list[str]:
    color = _COLORS[place % len(_COLORS)]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    top = _TOP + 18 * place
    return [
        f'<polyline points="{corners}" fill="none" stroke="{color}" stroke-width="2"/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points),
        f'<rect x="{_LEFT + _WIDTH + 20}" y="{top}" width="10" height="10" fill="{color}"/>',
        f'<text x="{_LEFT + _WIDTH + 35}" y="{top + 9}">{escape(name)}</text>',
    ]


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around *values*."""
    low = math.floor(math.log10(min(values)))
    return low, max(low + 1, math.ceil(math.log10(max(values))))


def _share(value: float, decades: tuple[int, int]) -> float:
    return (math.log10(value) - decades[0]) / (decades[1] - decades[0])
