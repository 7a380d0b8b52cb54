"""The methods of the contract, and who may call them."""

from __future__ import annotations

from muniment_server.transport.server import SERVICES

METHODS = sorted(method.name for service in SERVICES for method in service.methods)
FOR_HOSTS = {
    "CreateAgent", "GetAgent", "ListAgents", "UpdateAgent", "DeleteAgent", "EraseItems", "OpenSession", "ListSessions",
    "RaiseTaint", "ResetSession", "ListAuditEvents", "GetAuditCheckpoint", "CreateSharedBlock", "DeleteSharedBlock",
    "AttachBlock", "DetachBlock", "ListBlockConsumers", "UndeleteItem",
}  # fmt: skip
FOR_SESSIONS = {
    "SaveMemory", "SaveMemories", "GetMemory", "ListMemories", "SearchMemories", "DeleteMemory", "DeleteMemories",
    "RenameMemory",
    "AddNote", "UpdateNote", "DeleteNote", "SearchNotes", "ListNotes", "EditNotes",
    "ListBlocks", "GetBlock", "UpdateBlock", "EditBlock", "DeleteBlock",
    "StorePassage", "ImportPassages", "GetPassage", "ListPassages", "SearchPassages", "DeletePassage",
    "DeletePassages",
    "RenderPrompt",
}  # fmt: skip
