"""Sessions: credentials for one conversation of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from muniment_server.domain.classification import Classification, Label
from muniment_server.domain.ids import SessionId

DEFAULT_TTL = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Session:
    """A credential for one conversation. The taint is the conversation's."""

    session_id: SessionId
    agent_id: str
    conversation_id: str
    taint: Label
    create_time: datetime
    expire_time: datetime
    close_time: datetime | None
    ceiling: Classification | None
    """That of the conversation. None for the session itself, which does not see it."""
    read_only: bool
    """Whether it may call only what writes no item."""
