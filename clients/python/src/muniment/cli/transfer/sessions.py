"""A session per level, each in a conversation of its own, closed when the command ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

from muniment import CeilingExceeded, Classification, HostClient, SessionClient

_TTL = timedelta(hours=12)
"""How long a session outlives a command that was killed: as long as a large agent may take."""

Sessions = dict[Classification, SessionClient]


@contextmanager
def sessions_at(host: HostClient, agent_id: str, levels: Iterable[Classification]) -> Iterator[Sessions]:
    """A session at each of *levels*. Raises CeilingExceeded before any is open: the highest is opened first."""
    with ExitStack() as stack:
        opened = {
            level: stack.enter_context(host.open_session(agent_id, level, ttl=_TTL))
            for level in sorted(set(levels), reverse=True)
        }
        yield dict(sorted(opened.items()))


@contextmanager
def sessions_to_the_ceiling(host: HostClient, agent_id: str) -> Iterator[Sessions]:
    """A session at each level that the key may open, from PUBLIC upward."""
    with ExitStack() as stack:
        opened: Sessions = {}
        for level in Classification:
            try:
                opened[level] = stack.enter_context(host.open_session(agent_id, level, ttl=_TTL))
            except CeilingExceeded:
                if not opened:
                    raise
                break
        yield opened
