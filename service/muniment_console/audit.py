"""The audit log with filters. The server filters by agent, session and time, and the console by the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from muniment import AuditEvent, Classification, HostClient, Session, SessionNotFound
from muniment.cli.parameters import DURATION, LEVEL, TIME
from muniment_console.received import Comparison, Place, Received, Span, chains_of, state_of
from muniment_console.rendering import TICK, level_of

MAX_SHOWN = 100
MAX_SCANNED = 5000
"""How many events a page shows, and how many it looks at for these."""
SEVERAL = "several"
"""In place of an item's id: the reads of several items, which name none."""
_PAGE_SIZE = 250
_LONG_AGO, _FAR_AHEAD = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events to show. Empty fields allow all."""

    agent: str = ""
    session: str = ""
    key: str = ""
    item: str = ""
    method: str = ""
    outcome: str = ""
    level: Classification | None = None
    start: datetime | None = None
    end: datetime | None = None
    before: Place | None = None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Filter:
        """The filter that the query of a URL names. Raises click's BadParameter."""
        text = {name: given.get(name, "").strip() for name in cls.__slots__}
        time, _, event_id = text.pop("before").partition(" ")
        return cls(
            **{name: text[name] for name in ("agent", "session", "key", "item", "method", "outcome")},
            level=LEVEL.convert(text["level"], None, None) if text["level"] else None,
            start=moment(text["start"]) if text["start"] else None,
            end=moment(text["end"]) if text["end"] else None,
            before=(TIME.convert(time, None, None), event_id) if event_id else None,
        )

    def allows(self, event: AuditEvent) -> bool:
        """Whether the event is one of those to show."""
        return (
            self.level in (None, event.classification)
            and self.method in ("", event.method)
            and self.outcome in ("", event.outcome)
            and (event.host_key_id or "").startswith(self.key)
            and self._allows_item(event)
        )

    def _allows_item(self, event: AuditEvent) -> bool:
        if self.item == SEVERAL:
            return event.item_id is None and bool(event.result_count)
        return (event.item_id or "").startswith(self.item)

    @property
    def before_time(self) -> datetime | None:
        """Before which time the server lists events."""
        times = [self.end, self.before and self.before[0] + TICK]
        return min(filter(None, times), default=None)


def audit_page(host: HostClient, given: Filter, received: Received | None) -> tuple[Classification, dict[str, Any]]:
    """The events that *given* allows, newest first; and, with an export, whether they are as they were sealed."""
    if received:
        received.read()  # first: what it has by then, the server must list
    scanned, more = _scan(host, given)
    session = _session(host, given.session) if given.session else None
    compared = _compare(received, scanned, given, more=more) if received else None
    missing = [Classification(label.level) for label in compared.missing] if compared else []
    looked_at = [event.classification for event in scanned]
    level = level_of([*looked_at, *missing, session.taint if session else None])
    chains = [each for each in chains_of(host, received) if each.label.level <= level] if received else []
    return level, {
        "events": [event for event in scanned if given.allows(event)],
        "scanned": len(scanned),
        "older": f"{scanned[-1].time.isoformat()} {scanned[-1].event_id}" if more else None,
        "filter": given,
        "several": SEVERAL,
        "session": session,
        "compared": compared,
        "state": state_of(chains, compared),
    }


def _compare(received: Received, scanned: list[AuditEvent], given: Filter, *, more: bool) -> Comparison:
    """Compare the scanned events with the export.

    With a filter by agent, no event counts as missing: the export has the name that the agent had at that time.
    """
    oldest = _place(scanned[-1]) if more else (given.start or _LONG_AGO, "")
    newest = oldest if given.agent else given.before or (given.before_time or _FAR_AHEAD, "")
    return received.compare(scanned, Span(oldest, newest, given.session))


def _scan(host: HostClient, given: Filter) -> tuple[list[AuditEvent], bool]:
    """The newest events, until enough of them are to be shown; and whether there are older ones."""
    scanned: list[AuditEvent] = []
    shown = 0
    for event in _events(host, given):
        if shown == MAX_SHOWN or len(scanned) == MAX_SCANNED:
            return scanned, True
        scanned.append(event)
        shown += given.allows(event)
    return scanned, False


def _events(host: HostClient, given: Filter) -> Iterator[AuditEvent]:
    events = host.list_audit_events(
        agent_id=given.agent or None,
        session=given.session or None,
        start_time=given.start,
        end_time=given.before_time,
        page_size=_PAGE_SIZE,
    )
    return (event for event in events if given.before is None or _place(event) < given.before)


def _place(event: AuditEvent) -> Place:
    return event.time, event.event_id


def _session(host: HostClient, session_id: str) -> Session | None:
    try:
        return host.get_session(session_id)
    except SessionNotFound:  # purged
        return None


def moment(text: str) -> datetime:
    """A time, a day, or how long ago, such as `7d`. Raises click's BadParameter."""
    if text[-1:] not in [*"smhdw"]:
        return TIME.convert(text, None, None)
    now = datetime.now(UTC)
    return now - min(DURATION.convert(text, None, None), now - _LONG_AGO)
