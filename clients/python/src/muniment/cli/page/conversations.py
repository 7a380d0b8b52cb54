"""The conversations of an agent on a common time axis: when they were opened, raised, reset and closed, and by whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from muniment import AuditEvent, Classification, Session

MAX_CONVERSATIONS = 20
"""How many conversations a page shows: the newest, and as many of those whose taint has changed."""
MAX_STEPS = 20
"""How many steps of a conversation a page shows: the newest."""
OF_SHOW, OF_CONSOLE = "agent-show-", "console-"
"""How the names of conversations begin in which pages themselves are read."""
_STEPS = {"OpenSession": "opened", "RaiseTaint": "raised", "ResetSession": "reset", "CloseSession": "closed"}


@dataclass(frozen=True, slots=True)
class Step:
    """What happened to a conversation. *host_key_id* is None if the session itself did it."""

    what: str
    level: Classification
    time: datetime
    session_id: str | None
    host_key_id: str | None
    reason: str = field(repr=False)
    refusal: str | None


@dataclass(frozen=True, slots=True)
class Span:
    """A period of a conversation at one level. *level* is None if the audit events that were read do not show it."""

    level: Classification | None
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation. *steps* are the last MAX_STEPS, oldest first. Two of one name differ in their *ceiling*."""

    conversation_id: str
    ceiling: Classification | None
    taint: Classification
    is_open: bool
    sessions: int
    spans: tuple[Span, ...]
    steps: tuple[Step, ...]
    more_steps: int


def conversations_of(sessions: Iterable[Session], events: Sequence[AuditEvent], now: datetime) -> list[Conversation]:
    """All conversations of *sessions*, in their order. *events* may lack the oldest."""
    grouped: dict[tuple[str, Classification | None], list[Session]] = {}
    for session in sessions:
        grouped.setdefault((session.conversation_id, session.ceiling), []).append(session)
    return [_conversation(each, events, now) for each in grouped.values()]


def shown_of(conversations: Sequence[Conversation]) -> list[Conversation]:
    """Those to show. Conversations that only read, as a page's own do, must hide neither others nor a raise."""
    changed = [each for each in conversations if len(each.spans) > 1][:MAX_CONVERSATIONS]
    others_first = sorted(conversations, key=lambda each: each.conversation_id.startswith((OF_SHOW, OF_CONSOLE)))
    newest = others_first[:MAX_CONVERSATIONS]
    return [each for each in conversations if each in newest or each in changed]


def _conversation(sessions: Sequence[Session], events: Sequence[AuditEvent], now: datetime) -> Conversation:
    ids = {session.session_id for session in sessions}
    steps = [_step(event) for event in events if event.session_id in ids and event.method in _STEPS]
    steps.sort(key=lambda step: (step.time, step.what))  # the end of a session before the reset that ended it
    end = max(_end(session, now) for session in sessions)
    return Conversation(
        conversation_id=sessions[0].conversation_id,
        ceiling=sessions[0].ceiling,
        taint=sessions[0].taint,
        is_open=any(session.close_time is None and session.expire_time > now for session in sessions),
        sessions=len(sessions),
        spans=tuple(_spans(steps, min(session.create_time for session in sessions), end)),
        steps=tuple(steps[-MAX_STEPS:]),
        more_steps=max(0, len(steps) - MAX_STEPS),
    )


def _step(event: AuditEvent) -> Step:
    ended = event.outcome == "CLOSED"
    return Step(
        what="closed by the reset" if ended else _STEPS[event.method],
        level=event.classification,
        time=event.time,
        session_id=event.session_id,
        host_key_id=event.host_key_id,
        reason=event.reason,
        refusal=None if ended or event.outcome == "OK" else event.outcome,
    )


def _end(session: Session, now: datetime) -> datetime:
    return min(session.close_time or session.expire_time, now)


def _spans(steps: Iterable[Step], start: datetime, end: datetime) -> Iterable[Span]:
    """The periods between the changes of level. Taint never falls except by a reset."""
    level: Classification | None = None
    for step in steps:
        after = _level_after(step, level)
        if after == level:
            continue
        if start < step.time:
            yield Span(level, start, step.time)
        level, start = after, step.time
    yield Span(level, start, max(start, end))


def _level_after(step: Step, level: Classification | None) -> Classification | None:
    if step.refusal is not None or step.what in ("closed", "closed by the reset"):
        return level
    if step.what == "reset" or level is None:
        return step.level
    return max(level, step.level)
