"""The agents with their levels and budgets, one of them, and conversations on a time line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from muniment import Agent, Classification, HostClient
from muniment.cli.page.conversations import OF_CONSOLE, Conversation, conversations_of, shown_of
from muniment.cli.page.reading import READ_EVENTS, READ_SESSIONS, read_agent, read_history
from muniment.cli.page.rendering import axis_of, storage_of, variables_of
from muniment.cli.transfer.sessions import reached_level
from muniment_console.rendering import level_of

MAX_AGENTS = 25
"""How many agents a page shows."""
_SESSIONS, _EVENTS = 100, 250
"""How many sessions and audit events are read of each agent if many are shown."""


@dataclass(frozen=True, slots=True)
class _Group:
    """The conversations of one agent that a page shows, and how many there are."""

    agent: Agent
    ceiling: Classification
    shown: list[Conversation]
    found: int
    is_all: bool


def agents_page(host: HostClient, after: str) -> tuple[Classification, dict[str, object]]:
    """The agents whose ids follow *after*, with what they store."""
    agents, more = _agents(host, after)
    level = level_of([*_known(agents), *(each.classification for agent in agents for each in agent.storage)])
    return level, {"agents": agents, "storage_of": storage_of, "more": more}


def agent_page(host: HostClient, agent_id: str) -> tuple[Classification, dict[str, object]]:
    """One agent as `muniment agent show` has it. Opens sessions for each level, as that does."""
    page = read_agent(host, agent_id, lambda _: None, conversation_prefix=OF_CONSOLE)
    return page.classification, variables_of(page)


def conversations_page(
    host: HostClient, agent_id: str, after: str, since: datetime
) -> tuple[Classification, dict[str, object]]:
    """The conversations that were open after *since*: those of one agent, or of each that follows *after*."""
    now = datetime.now(UTC)
    agents, more = ([host.get_agent(agent_id)], False) if agent_id else _agents(host, after)
    groups = [_group(host, agent, since, now, is_alone=bool(agent_id)) for agent in agents]
    shown = [each for group in groups for each in group.shown]
    found = axis_of(shown)
    axis = (max(found[0], since), now) if found else None
    return _level_of_groups(groups), {"groups": groups, "axis": axis, "more": more}


def _agents(host: HostClient, after: str) -> tuple[list[Agent], bool]:
    """The agents after *after* by id, with what they store, and whether there are more."""
    following = (agent for agent in host.list_agents(page_size=250) if agent.agent_id.encode() > after.encode())
    listed = list(islice(following, MAX_AGENTS + 1))
    return [host.get_agent(agent.agent_id) for agent in listed[:MAX_AGENTS]], len(listed) > MAX_AGENTS


def _group(host: HostClient, agent: Agent, since: datetime, now: datetime, *, is_alone: bool) -> _Group:
    ceiling = reached_level(agent)
    sessions, events = (READ_SESSIONS, READ_EVENTS) if is_alone else (_SESSIONS, _EVENTS)
    history = read_history(host, agent.agent_id, ceiling, sessions=sessions, events=events)
    found = [each for each in conversations_of(history.sessions, history.events, now) if each.spans[-1].end >= since]
    return _Group(agent, ceiling, shown_of(found), len(found), not (history.older_sessions or history.older_events))


def _level_of_groups(groups: Sequence[_Group]) -> Classification:
    """The highest level of what is shown, and the ceiling of an agent of which something was not read or not shown."""
    of_conversations = [
        level
        for group in groups
        for each in group.shown
        for level in (each.taint, *(step.level for step in each.steps), *(span.level for span in each.spans))
    ]
    unread = [group.ceiling for group in groups if not group.is_all or group.found > len(group.shown)]
    return level_of([*_known([group.agent for group in groups]), *of_conversations, *unread])


def _known(agents: Sequence[Agent]) -> list[Classification | None]:
    """From which level on the agents exist for keys."""
    return [agent.known_from for agent in agents]
