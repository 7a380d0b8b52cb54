"""Opens one session per level, each in its own conversation, and closes them when the command ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from uuid import uuid4

from muniment import Agent, Classification, HostClient, Integrity, SessionClient

_TTL = timedelta(hours=12)
"""The lifetime of a session whose command was killed. A large agent may take that long."""

Sessions = dict[Classification, SessionClient]


@contextmanager
def sessions_at(
    host: HostClient,
    agent_id: str,
    levels: Iterable[Classification],
    *,
    integrity: Integrity = Integrity.UNTRUSTED,
    conversation_prefix: str = "",
) -> Iterator[Sessions]:
    """Open a session at each of *levels*, the highest first, so that a level that is too high is refused before any is
    open. All are of *integrity*. The ids of their conversations begin with *conversation_prefix*, which shows in the
    audit log.
    """
    with ExitStack() as stack:
        opened = {
            level: stack.enter_context(
                host.open_session(
                    agent_id,
                    level,
                    integrity=integrity,
                    conversation_id=f"{conversation_prefix}{uuid4()}",
                    ttl=_TTL,
                )
            )
            for level in sorted(set(levels), reverse=True)
        }
        yield dict(sorted(opened.items()))


@contextmanager
def sessions_to_the_ceiling(
    host: HostClient, agent_id: str, *, integrity: Integrity = Integrity.UNTRUSTED
) -> Iterator[Sessions]:
    """Open a session at each level up to the ceilings of the agent and of the key, from PUBLIC upward."""
    reached = reached_level(host.get_agent(agent_id))
    levels = (level for level in Classification if level <= reached)
    with sessions_at(host, agent_id, levels, integrity=integrity) as opened:
        yield opened


def reached_level(agent: Agent) -> Classification:
    """The lower ceiling of the agent's and the key's: the server shows what is stored up to there."""
    return max((stored.classification for stored in agent.storage), default=Classification.RESTRICTED)
