"""Reads what a page shows: the agent, its conversations, its audit log, and its items through sessions of its own.

Everything is at or below the ceilings of the agent and of the host key. So nothing above these can influence the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice

from muniment import Agent, AuditEvent, Classification, HostClient, Integrity, Session
from muniment.cli.page.conversations import OF_SHOW, Conversation, conversations_of
from muniment.cli.page.items import Items, read_items
from muniment.cli.transfer.progress import Advance
from muniment.cli.transfer.sessions import reached_level, sessions_at

MAX_EVENTS = 50
"""How many audit events a page shows: the newest."""
READ_EVENTS = 2000
READ_SESSIONS = 1000
"""How many audit events and sessions are read, for the conversations and to say how many more there are."""
_PAGE_SIZE = 250


@dataclass(frozen=True, slots=True)
class AgentPage:
    """An agent as it was at *time*.

    *ceiling* is the level at which the items were read. *events* and *conversations* are those read, newest first;
    *older_events* and *older_sessions* say whether there are more.
    """

    agent: Agent
    ceiling: Classification
    time: datetime
    items: Items
    conversations: list[Conversation]
    older_sessions: bool
    events: list[AuditEvent]
    older_events: bool

    @property
    def classification(self) -> Classification:
        """The highest level of anything that the page shows or counts, PUBLIC if there is nothing."""
        return max(self._levels(), default=Classification.PUBLIC)

    def _levels(self) -> Iterator[Classification]:
        for kind in self.items.kinds:
            yield from (level for level, count in kind.counts.items() if count.items)
        yield from (stored.classification for stored in self.agent.storage if stored.items or stored.bytes)
        if self.older_sessions or self.older_events:
            yield self.ceiling  # their levels were not read
        yield from (event.classification for event in self.events)
        for conversation in self.conversations:
            yield conversation.taint
            yield from (step.level for step in conversation.steps)
            yield from (span.level for span in conversation.spans if span.level)


@dataclass(frozen=True, slots=True)
class History:
    """The newest sessions and audit events of an agent, and whether there are older ones."""

    sessions: list[Session]
    older_sessions: bool
    events: list[AuditEvent]
    older_events: bool


def read_history(
    host: HostClient,
    agent_id: str,
    ceiling: Classification,
    *,
    sessions: int = READ_SESSIONS,
    events: int = READ_EVENTS,
) -> History:
    """Read the newest *sessions* and *events* of an agent, newest first."""
    listed = host.list_sessions(agent_id, include_closed=True, page_size=_PAGE_SIZE)
    newest_sessions = list(islice(listed, sessions + 1))
    newest_events = list(islice(_events(host, agent_id, ceiling), events + 1))
    return History(
        sessions=newest_sessions[:sessions],
        older_sessions=len(newest_sessions) > sessions,
        events=sorted(newest_events[:events], key=_order, reverse=True),
        older_events=len(newest_events) > events,
    )


def read_agent(host: HostClient, agent_id: str, advance: Advance, *, conversation_prefix: str = OF_SHOW) -> AgentPage:
    """Read an agent. Raises AgentNotFound if the key's tenant has none of that id that the key knows.

    Opens two sessions for each level, of either integrity, in conversations whose ids begin with *conversation_prefix*,
    and closes them whatever happens. The list of sessions and the audit log are read
    first, so that they do not show these sessions.
    """
    agent = host.get_agent(agent_id)
    ceiling = reached_level(agent)
    time = datetime.now(UTC)
    history = read_history(host, agent_id, ceiling)
    levels = [level for level in Classification if level <= ceiling]
    opened = partial(sessions_at, host, agent_id, levels, conversation_prefix=conversation_prefix)
    with opened() as untrusted, opened(integrity=Integrity.TRUSTED) as trusted:
        items = read_items(untrusted, trusted, agent_id, advance)
    return AgentPage(
        agent=agent,
        ceiling=ceiling,
        time=time,
        items=items,
        conversations=conversations_of(history.sessions, history.events, time),
        older_sessions=history.older_sessions,
        events=history.events,
        older_events=history.older_events,
    )


def _events(host: HostClient, agent_id: str, ceiling: Classification) -> Iterator[AuditEvent]:
    """The audit events of an agent up to *ceiling*. A refused attempt to raise above it has a higher one."""
    events = host.list_audit_events(agent_id=agent_id, page_size=_PAGE_SIZE)
    return (event for event in events if event.classification <= ceiling)


def _order(event: AuditEvent) -> tuple[datetime, str, str, int, int]:
    """By time. The events of one transaction have one time, and random ids."""
    return event.time, event.method, event.outcome, event.classification, event.kind or 0
