"""Fills the templates of the console. The parts of an agent's page are those of `muniment agent show`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.responses import HTMLResponse

from muniment import Classification
from muniment.cli.page.items import Version
from muniment.cli.page.rendering import style_of, templates_of
from muniment_console.guards import policy
from muniment_server.items.paging import version_of

TABS = {
    "/": "Agents",
    "/conversations": "Conversations",
    "/releases": "Releases",
    "/audit": "Audit",
    "/seals": "Seals",
    "/status": "Status",
}
"""The pages that each page links to."""
TICK = timedelta(microseconds=1)
"""The precision of the times of audit events."""


class Chart(NamedTuple):
    """A line over the time that was watched. *unit* stands behind its numbers."""

    title: str
    unit: str
    values: list[float]

    @property
    def points(self) -> str:
        """Those of a polyline, in a box of 100 by 30."""
        values = self.values if len(self.values) > 1 else self.values * 2
        step, top = 100 / (len(values) - 1), max(values) or 1.0
        return " ".join(f"{place * step:.2f},{29 - 27 * value / top:.2f}" for place, value in enumerate(values))


def level_of(levels: Iterable[Classification | None]) -> Classification:
    """The level of a page that shows something at each of *levels*."""
    return max((level for level in levels if level), default=Classification.PUBLIC)


def document(
    template: str, classification: Classification, variables: dict[str, object], *, status: int = 200
) -> HTMLResponse:
    """A page at *classification*, which it names at its top."""
    style = style_of(_TEMPLATES, "console.css", classification)
    known = {"classification": classification, "now": datetime.now(UTC), "tabs": TABS, "tab": None}
    html = _TEMPLATES.get_template(template).render(known | variables | style._asdict())
    return HTMLResponse(html, status, {"content-security-policy": policy(style.css_hash)})


def link(path: str, **parameters: object) -> str:
    """A link with those *parameters* that are not empty. Escaped like any text, but it is one path and a query."""
    given = {name: value for name, value in parameters.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def _audit_of(shown: Version) -> dict[str, object]:
    """Which audit events are about a version: those of its item.

    The etag has the id by which events name an item. A passage has none, but its write is audited at the very time of
    the write, and that event names the item.
    """
    if shown.store_time is not None:
        end = shown.store_time + TICK
        return {"level": shown.level.name, "start": shown.store_time.isoformat(), "end": end.isoformat()}
    version = version_of(shown.etag)
    return {"item": version.item_id} if version else {}


_TEMPLATES = templates_of("muniment_console", "muniment.cli.page")
_TEMPLATES.globals |= {"audit_of": _audit_of, "link": link, "levels": [*Classification]}
