"""What must be refused: for its form, whoever asks, or for who asks."""

from __future__ import annotations

from tests.proof.noninterference.programs.alphabets import CANARY
from tests.proof.noninterference.programs.operations import Fields
from tests.rpcs import RPCS, World

NO_MESSAGE = b"\xff\xff\xff"
"""Bytes that do not parse."""
_WORLD = World(CANARY)
OF_A_STREAM = [fields for fields in RPCS["ImportPassages"].refused(_WORLD) if "expire_time" not in fields["passage"]]
"""Messages of an import."""
OUT_OF_FORM: list[tuple[str, Fields]] = [
    *((rpc, fields) for rpc, row in RPCS.items() if rpc != "ImportPassages" for fields in row.refused(_WORLD)),
    *((rpc, NO_MESSAGE) for rpc in ("SaveMemory", "SaveMemories", "GetMemory", "ListMemories", "GetPassage")),
]


def wrong_calls(session: str, session_id: str, host: str) -> tuple[tuple[str, str, Fields], ...]:
    """Callers with what is not for them: the token, the RPC and its request."""
    return (
        (session, "RaiseTaint", {"session_id": session_id, "taint": 1}),
        (session, "OpenSession", {"agent_id": "alice", "taint": 1}),
        (session, "ListAuditEvents", {}),
        (session, "ListSessions", {"agent_id": "alice"}),
        (session, "ResetSession", {"session_id": session_id}),
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
