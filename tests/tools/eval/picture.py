"""The figures as bars, in a picture written by hand: no library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_COLORS = ("#1f6f5c", "#7fb8a6", "#c58b2a", "#8a8a8a")
_LEFT, _TOP, _BAR, _GAP, _WIDTH = 190, 56, 12, 14, 480


def svg(title: str, rows: Mapping[str, Mapping[str, float]], systems: Sequence[str]) -> str:
    """A group of bars for each of *rows*, one for each of *systems*; values from 0 to 1."""
    group = _BAR * len(systems) + _GAP
    height = _TOP + group * len(rows) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 60}" height="{height}"'
        ' font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="12" y="20" font-size="14">{escape(title)}</text>',
        *_legend(systems),
    ]
    for number, (name, values) in enumerate(rows.items()):
        top = _TOP + number * group
        parts.append(f'<text x="{_LEFT - 8}" y="{top + group / 2}" text-anchor="end">{escape(name)}</text>')
        for place, system in enumerate(systems):
            parts += _bar(values[system], top + place * _BAR, _COLORS[place])
    return "\n".join([*parts, "</svg>\n"])


def _legend(systems: Sequence[str]) -> list[str]:
    return [
        f'<rect x="{_LEFT + 140 * place}" y="32" width="10" height="10" fill="{_COLORS[place]}"/>'
        f'<text x="{_LEFT + 140 * place + 15}" y="41">{escape(system)}</text>'
        for place, system in enumerate(systems)
    ]


def _bar(value: float, top: float, color: str) -> list[str]:
    width = value * _WIDTH
    return [
        f'<rect x="{_LEFT}" y="{top}" width="{width:.1f}" height="{_BAR - 2}" fill="{color}"/>',
        f'<text x="{_LEFT + width + 4:.1f}" y="{top + _BAR - 3}">{value:.3f}</text>',
    ]
