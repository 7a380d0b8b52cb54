"""What must be refused for its form, whoever asks."""

from __future__ import annotations

from typing import Any

from tests.proof.noninterference.programs.alphabets import CANARY
from tests.proof.noninterference.programs.operations import Fields
from tests.rpcs import RPCS, World

OUT_OF_FORM: tuple[tuple[str, dict[str, Any]], ...] = (
    *((rpc, fields) for rpc, row in RPCS.items() for fields in row.refused(World(CANARY))),
    *((rpc, {}) for rpc in ("SaveMemory", "SaveMemories", "GetMemory", "ListMemories", "GetPassage")),
)
"""Those of each row; and bytes that do not parse, for which no fields stand."""


def wrong_calls(session: str, session_id: str, host: str) -> tuple[tuple[str, str, Fields], ...]:
    """Callers with what is not for them: the token, the RPC and its request."""
    return (
        (session, "RaiseTaint", {"session_id": session_id, "taint": 1}),
        (session, "OpenSession", {"agent_id": "alice", "taint": 1}),
        (session, "ListAuditEvents", {}),
        (session, "ListSessions", {"agent_id": "alice"}),
        (session, "ResetSession", {"session_id": session_id}),
        (session, "RenewSession", {"session_id": session_id}),
        (session, "UpdateAgent", {"agent_id": "alice"}),
        (session, "CreateSharedBlock", {"owner_agent_id": "alice", "label": "plan"}),
        (session, "AttachBlock", {"owner_agent_id": "alice", "label": "plan", "agent_id": "bob"}),
        (session, "ListBlockConsumers", {"owner_agent_id": "alice", "label": "plan"}),
        (host, "GetMemory", {"key": "plan"}),
        (host, "SaveMemory", {"key": "plan", "content": "no"}),
        (host, "AddNote", {"content": "no"}),
        (host, "UpdateBlock", {"label": "plan", "content": "no"}),
        (host, "ImportPassages", {"passage": {"content": "no"}}),
        (host, "RenderPrompt", b""),
        (session, "Nothing", b""),
        (host, "Nothing", b""),
        (session[:-2] + "AA", "GetMemory", {"key": "plan"}),
        (session[:-2] + "AA", "RenderPrompt", b""),
        ("nonsense", "ListMemories", {}),
        ("nonsense", "ImportPassages", {"passage": {"content": "no"}}),
    )
