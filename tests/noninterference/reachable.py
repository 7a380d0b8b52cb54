"""What any run must compare at least once: RPC, level of the caller, status."""

from __future__ import annotations

from muniment_server.domain.classification import Classification

BY_SESSION = {
    "SaveMemory": ("OK", "ETAG_STALE", "FIELD_INVALID"),
    "GetMemory": ("OK", "MEMORY_NOT_FOUND"),
    "ListMemories": ("OK",),
    "SearchMemories": ("OK",),
    "SaveMemories": ("OK", "FIELD_INVALID"),
    "DeleteMemory": ("OK", "MEMORY_NOT_FOUND"),
    "DeleteMemories": ("OK",),
    "RenameMemory": ("OK", "MEMORY_NOT_FOUND", "MEMORY_EXISTS"),
    "AddNote": ("OK", "NOTE_EXISTS", "TIER_DISABLED", "BUDGET_EXCEEDED", "FIELD_INVALID"),
    "UpdateNote": ("OK", "NOTE_NOT_FOUND", "TIER_DISABLED", "ETAG_STALE", "BUDGET_EXCEEDED"),
    "DeleteNote": ("OK", "NOTE_NOT_FOUND"),
    "EditNotes": ("OK", "NOTE_EXISTS", "NOTE_NOT_FOUND", "TIER_DISABLED", "BUDGET_EXCEEDED", "FIELD_INVALID"),
    "ListNotes": ("OK",),
    "SearchNotes": ("OK",),
    "ListBlocks": ("OK",),
    "GetBlock": ("OK", "BLOCK_NOT_FOUND"),
    "UpdateBlock": ("OK", "ETAG_STALE"),
    "EditBlock": ("OK", "BLOCK_NOT_FOUND", "ETAG_STALE", "TEXT_NOT_FOUND", "TEXT_NOT_UNIQUE", "LINE_OUT_OF_RANGE"),
    "DeleteBlock": ("OK", "BLOCK_NOT_FOUND"),
    "StorePassage": ("OK", "PASSAGE_EXISTS", "FIELD_INVALID"),
    "ImportPassages": ("OK", "PASSAGE_EXISTS", "FIELD_INVALID"),
    "GetPassage": ("OK", "PASSAGE_NOT_FOUND"),
    "ListPassages": ("OK",),
    "SearchPassages": ("OK",),
    "DeletePassage": ("OK", "PASSAGE_NOT_FOUND"),
    "DeletePassages": ("OK",),
    "RenderPrompt": ("OK",),
    "GetSession": ("OK", "SESSION_NOT_FOUND"),
}
_BY_HOST = {
    "OpenSession": (
        "OK",
        "AGENT_NOT_FOUND",
        "CEILING_EXCEEDED",
        "AGENT_CEILING_EXCEEDED",
        "CONVERSATION_TAINTED",
        "FIELD_INVALID",
    ),
    "RaiseTaint": ("OK", "SESSION_NOT_FOUND", "CEILING_EXCEEDED", "AGENT_CEILING_EXCEEDED", "FIELD_INVALID"),
    "ResetSession": ("OK", "SESSION_NOT_FOUND"),
    "CloseSession": ("OK", "SESSION_NOT_FOUND"),
    "GetSession": ("OK", "SESSION_NOT_FOUND"),
    "ListSessions": ("OK", "AGENT_NOT_FOUND", "FIELD_INVALID"),
    "GetAuditCheckpoint": ("OK", "CEILING_EXCEEDED", "FIELD_INVALID"),
    "ListAuditEvents": ("OK", "FIELD_INVALID", "PAGE_TOKEN_INVALID"),
    "GetAgent": ("OK", "AGENT_NOT_FOUND", "FIELD_INVALID"),
    "ListAgents": ("OK", "PAGE_TOKEN_INVALID"),
    "UpdateAgent": ("OK", "AGENT_NOT_FOUND"),
    "CreateAgent": ("OK", "AGENT_EXISTS", "CEILING_EXCEEDED", "FIELD_INVALID"),
    "DeleteAgent": ("OK",),
    "EraseItems": ("OK",),
    "UndeleteItem": ("OK", "ITEM_EXISTS", "MEMORY_NOT_FOUND", "CEILING_EXCEEDED", "AGENT_NOT_FOUND", "FIELD_INVALID"),
    "CreateSharedBlock": ("OK", "BLOCK_EXISTS", "AGENT_NOT_FOUND", "FIELD_INVALID"),
    "DeleteSharedBlock": ("OK", "SHARED_BLOCK_NOT_FOUND"),
    "AttachBlock": ("OK", "SHARED_BLOCK_NOT_FOUND", "AGENT_NOT_FOUND", "AGENT_CEILING_EXCEEDED", "FIELD_INVALID"),
    "DetachBlock": ("OK", "BLOCK_NOT_ATTACHED", "SHARED_BLOCK_NOT_FOUND"),
    "ListBlockConsumers": ("OK", "SHARED_BLOCK_NOT_FOUND", "PAGE_TOKEN_INVALID"),
    "GetMemory": ("PRINCIPAL_NOT_ALLOWED",),
    "Nothing": ("METHOD_UNKNOWN",),
}
_ANYWHERE_BELOW = {
    "ListMemories": ("PAGE_TOKEN_INVALID",),
    "ListNotes": ("PAGE_TOKEN_INVALID",),
    "ListBlocks": ("PAGE_TOKEN_INVALID", "TAINT_CHANGED"),
    "ListPassages": ("PAGE_TOKEN_INVALID",),
    "RaiseTaint": ("PRINCIPAL_NOT_ALLOWED",),
    "EditBlock": ("BLOCK_TOO_LARGE",),
    "SaveMemories": ("ETAG_STALE",),
    "DeleteMemory": ("ETAG_STALE",),
    "RenameMemory": ("ETAG_STALE",),
    "DeleteNote": ("ETAG_STALE",),
    "DeleteBlock": ("ETAG_STALE",),
}
"""Refusals of which one below RESTRICTED is enough."""
LEVELS = [level.name for level in Classification]
REACHABLE = frozenset(
    (
        *((rpc, level, status) for rpc, statuses in BY_SESSION.items() for status in statuses for level in LEVELS[:3]),
        *((rpc, "RESTRICTED", "OK") for rpc in BY_SESSION),
        *((rpc, "HOST", status) for rpc, statuses in _BY_HOST.items() for status in statuses),
        *(
            (rpc, level, "WRITE_LEVEL_MISMATCH")
            for rpc in ("DeleteMemory", "RenameMemory", "DeleteNote", "EditNotes", "DeleteBlock", "DeletePassage")
            for level in LEVELS[1:3]
        ),
        ("CloseSession", "PUBLIC", "OK"),
        ("ListMemories", "NOBODY", "CREDENTIAL_INVALID"),
        ("GetMemory", "NOBODY", "CREDENTIAL_INVALID"),
    )
)
SOMEWHERE = frozenset((rpc, status) for rpc, statuses in _ANYWHERE_BELOW.items() for status in statuses)


def missing(coverage: set[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """What *coverage* lacks."""
    somewhere = {(rpc, status) for rpc, _, status in coverage}
    return sorted(REACHABLE - coverage) + sorted((rpc, "ANYBODY", status) for rpc, status in SOMEWHERE - somewhere)
