"""Fills the template of a page. Every text is escaped, and the page allows nothing but its own style sheet."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from muniment import Agent, AgentStorage, Classification
from muniment.cli.output import harmless
from muniment.cli.page.conversations import Conversation, Span, shown_of
from muniment.cli.page.reading import MAX_EVENTS, AgentPage

_MIN_WIDTH = 1.0
"""The width of the shortest span, in percent of the axis."""
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


class Segment(NamedTuple):
    """A span as drawn on the axis: where it begins, and how wide it is, in percent of the axis."""

    level: Classification | None
    begin: str
    width: str


def render(page: AgentPage) -> Iterator[str]:
    """The page as HTML, in parts."""
    style = style_of(_TEMPLATES, "page.css", page.classification)
    return _TEMPLATES.get_template("page.html").generate(**variables_of(page), **style._asdict())


class Style(NamedTuple):
    """A style sheet, and what a policy calls it."""

    css: Markup
    css_hash: str


def style_of(templates: Environment, name: str, classification: Classification) -> Style:
    """The style sheet *name* of a page at *classification*, which stands on each printed sheet."""
    css = templates.get_template(name).render(classification=classification)
    return Style(Markup(css), f"sha256-{b64encode(sha256(css.encode()).digest()).decode()}")


def variables_of(page: AgentPage) -> dict[str, object]:
    """What the template of an agent's page shows, but for the style sheet."""
    conversations = shown_of(page.conversations)
    return {
        "page": page,
        "levels": [level for level in Classification if level <= page.ceiling],
        "storage": storage_of(page.agent),
        "conversations": conversations,
        "axis": axis_of(conversations),
        "events": page.events[:MAX_EVENTS],
    }


def storage_of(agent: Agent) -> dict[Classification, list[AgentStorage]]:
    """What the agent stores at each level: what untrusted sessions do, and what trusted ones do, if anything."""
    storage: dict[Classification, list[AgentStorage]] = {}
    for stored in sorted(agent.storage, key=lambda stored: (stored.classification, stored.integrity)):
        storage.setdefault(stored.classification, []).append(stored)
    return storage


def _escaped(value: object) -> object:
    """*value*, escaped if it is text, with what a browser would obey or not show as a terminal shows it."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return escape(harmless(value, kept="\\\n\t"))


def axis_of(conversations: Sequence[Conversation]) -> tuple[datetime, datetime] | None:
    """The time from the first span to the last, None if there are no conversations."""
    spans = [span for conversation in conversations for span in conversation.spans]
    if not spans:
        return None
    return min(span.start for span in spans), max(span.end for span in spans)


def segments(spans: Sequence[Span], axis: tuple[datetime, datetime]) -> list[Segment]:
    """Where to draw adjoining spans. Short ones are widened to _MIN_WIDTH at the expense of later ones."""
    first, last = axis
    seconds = (last - first).total_seconds() or 1.0
    edges: list[float] = []
    for place, time in enumerate([*(span.start for span in spans), spans[-1].end]):
        true = 100 * (time - first).total_seconds() / seconds
        least = edges[-1] + _MIN_WIDTH if edges else 0.0
        most = 100 - _MIN_WIDTH * (len(spans) - place)
        edges.append(max(0.0, min(max(true, least), most)))
    return [
        Segment(span.level, f"{begin:.2f}", f"{end - begin:.2f}")
        for span, (begin, end) in zip(spans, pairwise(edges), strict=True)
    ]


def _share(used: int, limit: int | None) -> int:
    """How much of *limit* is used, in percent from 0 to 100."""
    return min(100, 100 * used // limit) if limit else 100 if used else 0


def _moment(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _size(number: int) -> str:
    """`812 B`, `4.1 kB`."""
    size = float(number)
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{number} B" if number < 1000 else f"{size:.1f} {unit}"


def templates_of(*packages: str) -> Environment:
    """The templates of *packages*; of two with one name, the first."""
    made = Environment(
        loader=ChoiceLoader([*map(PackageLoader, packages)]),
        autoescape=True,
        finalize=_escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"moment": _moment, "number": "{:,}".format, "size": _size}
    made.globals |= {"segments": segments, "share": _share}
    return made


_TEMPLATES = templates_of("muniment.cli.page")
