"""Which memory operation of OpenTelemetry's conventions for generative AI each method is.

The conventions name operations that search, write and delete memories, and that create and delete stores of them. In
them, an item of any kind is a memory record, and an agent is a memory store. They name no operation for other methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SEARCH: Final = "search_memory"
_CREATE: Final = "create_memory"
_UPDATE: Final = "update_memory"
_UPSERT: Final = "upsert_memory"
_DELETE: Final = "delete_memory"

OPERATIONS: Final[Mapping[str, str | None]] = {
    "CreateAgent": "create_memory_store",
    "DeleteAgent": "delete_memory_store",
    "SearchMemories": _SEARCH,
    "SearchNotes": _SEARCH,
    "SearchPassages": _SEARCH,
    "AddNote": _CREATE,
    "CreateSharedBlock": _CREATE,
    "ImportPassages": _CREATE,
    "StorePassage": _CREATE,
    "EditBlock": _UPDATE,
    "EditNotes": _UPDATE,
    "RenameMemory": _UPDATE,
    "UndeleteItem": _UPDATE,
    "UpdateNote": _UPDATE,
    "SaveMemories": _UPSERT,
    "SaveMemory": _UPSERT,
    "UpdateBlock": _UPSERT,
    "DeleteBlock": _DELETE,
    "DeleteMemories": _DELETE,
    "DeleteMemory": _DELETE,
    "DeleteNote": _DELETE,
    "DeletePassage": _DELETE,
    "DeletePassages": _DELETE,
    "EraseItems": _DELETE,
    # These read by key or in order, and search nothing.
    "GetBlock": None,
    "GetMemory": None,
    "GetPassage": None,
    "ListBlocks": None,
    "ListMemories": None,
    "ListNotes": None,
    "ListPassages": None,
    "RenderPrompt": None,
    # These concern agents and who may read a block, not what is remembered.
    "AttachBlock": None,
    "DeleteSharedBlock": None,
    "DetachBlock": None,
    "GetAgent": None,
    "ListAgents": None,
    "ListBlockConsumers": None,
    "UpdateAgent": None,
    # These concern sessions and the audit log.
    "CloseSession": None,
    "GetAuditCheckpoint": None,
    "GetSession": None,
    "ListAuditEvents": None,
    "ListSessions": None,
    "OpenSession": None,
    "RaiseTaint": None,
    "ResetSession": None,
}
"""By the name of the method: its operation, or None."""
