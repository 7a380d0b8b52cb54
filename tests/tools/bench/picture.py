"""How cost grows, as lines in a picture written by hand: no library. Both axes are logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

_COLORS = ("#1f6f5c", "#7ab8a6", "#c58b2a", "#8a8a8a", "#5b4b9a", "#b0413e")
_SHADES = ("#9fd0c2", "#3d9580", "#0d4237", "#b9b9b9")
"""Of percentiles, from the middle to the tail, and of a baseline."""
_LEFT, _TOP, _WIDTH, _HEIGHT, _RIGHT, _BOTTOM = 70, 40, 420, 320, 210, 50
_PANEL_LEFT, _PANEL_TOP, _PANEL_WIDTH, _PANEL_HEIGHT, _GAP_X, _GAP_Y = 62, 100, 216, 128, 62, 54

_MARGIN = 0.12
"""Decades to the left and the right of what a panel shows."""

Point = tuple[float, float]
Lines = Mapping[str, Sequence[Point]]


class _Frame(NamedTuple):
    """Where a chart is, and which decades its axes show."""

    left: float
    top: float
    width: float
    height: float
    xs: tuple[float, float]
    ys: tuple[int, int]

    def at(self, x: float, y: float) -> Point:
        """The position of a point."""
        return self.left + self.width * _share(x, self.xs), self.top + self.height * (1 - _share(y, self.ys))


def svg(title: str, lines: Lines) -> str:
    """A line for each of *lines*: items and milliseconds, all above 0."""
    xs, ys = _axes([lines])
    frame = _Frame(_LEFT, _TOP, _WIDTH, _HEIGHT, xs, ys)
    parts = [*_rows(frame), *_columns(frame, [10**exponent for exponent in range(xs[0], xs[1] + 1)])]
    for place, (name, line) in enumerate(lines.items()):
        color, top = _COLORS[place % len(_COLORS)], _TOP + 18 * place
        parts += [
            *_line(frame, line, color),
            f'<rect x="{_LEFT + _WIDTH + 20}" y="{top}" width="10" height="10" fill="{color}"/>',
            f'<text x="{_LEFT + _WIDTH + 35}" y="{top + 9}">{escape(name)}</text>',
        ]
    return _picture(_LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BOTTOM, title, parts)


def panels(title: str, below: str, charts: Mapping[str, Lines], *, columns: int = 3) -> str:
    """Charts with the same axes beside one another, each with the same lines.

    The first three lines are percentiles, from the middle to the tail; a fourth is a baseline. All but the first may
    lack points. *below* is a second, smaller line of the title.
    """
    _, ys = _axes(charts.values())
    marks = sorted({x for lines in charts.values() for line in lines.values() for x, _ in line})
    rows = math.ceil(len(charts) / columns)
    width = _PANEL_LEFT + columns * (_PANEL_WIDTH + _GAP_X)
    height = _PANEL_TOP + rows * (_PANEL_HEIGHT + _GAP_Y)
    parts = [f'<text x="12" y="42" fill="#555">{escape(below)}</text>', *_legend([*next(iter(charts.values()))])]
    span = (math.log10(marks[0]) - _MARGIN, math.log10(marks[-1]) + _MARGIN)
    for number, (name, lines) in enumerate(charts.items()):
        left = _PANEL_LEFT + number % columns * (_PANEL_WIDTH + _GAP_X)
        top = _PANEL_TOP + number // columns * (_PANEL_HEIGHT + _GAP_Y)
        frame = _Frame(left, top, _PANEL_WIDTH, _PANEL_HEIGHT, span, ys)
        parts += [
            f'<text x="{left}" y="{top - 8}" font-weight="bold">{escape(name)}</text>',
            *_rows(frame, labels=number % columns == 0),
            *_columns(frame, marks),
            *_panel(frame, [*lines.values()]),
        ]
    return _picture(width, height, title, parts)


def _panel(frame: _Frame, lines: Sequence[Sequence[Point]]) -> list[str]:
    """The lines, the area between the percentiles, and the values of the first and the last one at the right edge."""
    low, *_, high = lines[:3]
    medians = dict(low)
    parts = []
    for run in _runs(high, low):
        around = [*((x, medians[x]) for x, _ in run), *reversed(run)]
        area = " ".join(f"{x:.1f},{y:.1f}" for x, y in (frame.at(*point) for point in around))
        parts.append(f'<polygon points="{area}" fill="{_SHADES[0]}" fill-opacity="0.25"/>')
    for line, color in zip(lines, _SHADES, strict=False):
        for run in _runs(line, low):
            parts += _line(frame, run, color)
    right, lowest = frame.at(*low[-1])
    if high and high[-1][0] == low[-1][0]:
        highest = frame.at(*high[-1])[1]
        lowest = max(lowest, highest + 12)
        parts.append(_value(high[-1][1], right, highest, _SHADES[2]))
    return [*parts, _value(low[-1][1], right, lowest, _SHADES[1])]


def _runs(line: Sequence[Point], whole: Sequence[Point]) -> list[list[Point]]:
    """*line*, cut where it lacks a point that *whole* has."""
    places = {x: place for place, (x, _) in enumerate(whole)}
    runs: list[list[Point]] = []
    for point in line:
        if runs and places[point[0]] == places[runs[-1][-1][0]] + 1:
            runs[-1].append(point)
        else:
            runs.append([point])
    return runs


def _value(milliseconds: float, left: float, middle: float, color: str) -> str:
    """A time in two digits, beside the point that it is of."""
    shown = _time(float(f"{milliseconds:.2g}"))
    return f'<text x="{left + 7:.1f}" y="{middle + 4:.1f}" fill="{color}">{shown}</text>'


def _picture(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
            ' font-family="sans-serif" font-size="11">',
            '<rect width="100%" height="100%" fill="white"/>',
            f'<text x="12" y="22" font-size="15">{escape(title)}</text>',
            *parts,
            "</svg>\n",
        ]
    )


def _legend(names: Sequence[str]) -> list[str]:
    parts, left = [], 12.0
    for name, color in zip(names, _SHADES, strict=False):
        parts.append(f'<path d="M{left:.0f} 60h18" stroke="{color}" stroke-width="3"/>')
        parts.append(f'<text x="{left + 24:.0f}" y="64">{escape(name)}</text>')
        left += 50 + 7 * len(name)
    return parts


def _rows(frame: _Frame, *, labels: bool = True) -> list[str]:
    """A line at each power of ten milliseconds."""
    parts = []
    for exponent in range(frame.ys[0], frame.ys[1] + 1):
        _, y = frame.at(10 ** frame.xs[0], 10**exponent)
        parts.append(f'<path d="M{frame.left} {y:.1f}h{frame.width}" stroke="#ddd"/>')
        if labels:
            parts.append(f'<text x="{frame.left - 6}" y="{y + 4:.1f}" text-anchor="end">{_time(10.0**exponent)}</text>')
    return parts


def _columns(frame: _Frame, marks: Sequence[float]) -> list[str]:
    """The numbers below a chart."""
    return [
        f'<text x="{frame.at(mark, 10 ** frame.ys[0])[0]:.1f}" y="{frame.top + frame.height + 16}"'
        f' text-anchor="middle">{_number(mark)}</text>'
        for mark in marks
    ]


def _line(frame: _Frame, line: Sequence[Point], color: str) -> list[str]:
    points = [frame.at(*point) for point in line]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return [
        f'<polyline points="{corners}" fill="none" stroke="{color}" stroke-width="2"/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points),
    ]


def _number(number: float) -> str:
    """Such as 500, 10k, 1M."""
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return f"{number:g}"


def _time(milliseconds: float) -> str:
    return f"{milliseconds:g} ms" if milliseconds < 1000 else f"{milliseconds / 1000:g} s"


def _axes(charts: Iterable[Lines]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The powers of ten around all points."""
    points = [point for lines in charts for line in lines.values() for point in line]
    return _decades([x for x, _ in points]), _decades([y for _, y in points])


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around *values*."""
    low = math.floor(math.log10(min(values)))
    return low, max(low + 1, math.ceil(math.log10(max(values))))


def _share(value: float, decades: tuple[float, float]) -> float:
    return (math.log10(value) - decades[0]) / (decades[1] - decades[0])
