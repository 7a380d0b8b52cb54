"""The Python client of Muniment, memory for AI agents with information-flow control.

`connect` returns a `HostClient` for a host key, or a `SessionClient` for a session's token.

Names are imported on first use. So neither the help of the command line nor the server, which uses the contract in
`muniment.v1`, imports the gRPC client.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muniment._channel import TLS
    from muniment._connect import connect
    from muniment._listing import Listing
    from muniment.errors import (
        Aborted,
        AgentCeilingExceeded,
        AgentExists,
        AgentNotFound,
        AlreadyExists,
        BlockExists,
        BlockNotAttached,
        BlockNotFound,
        BlockTooLarge,
        BudgetExceeded,
        CeilingExceeded,
        ConversationTainted,
        DeadlineExceeded,
        Details,
        EtagStale,
        FailedPrecondition,
        InternalError,
        InvalidArgument,
        InvalidPageToken,
        ItemExists,
        LineOutOfRange,
        MemoryNotFound,
        MethodUnknown,
        MunimentError,
        NoteExists,
        NoteNotFound,
        NotFound,
        Overloaded,
        Overrun,
        PassageExists,
        PassageNotFound,
        PermissionDenied,
        PrincipalNotAllowed,
        PromptTooLarge,
        QuotaExceeded,
        RateLimited,
        ResourceExhausted,
        SessionNotFound,
        SharedBlockNotFound,
        StorageFull,
        TaintChanged,
        TextNotFound,
        TextNotUnique,
        TierDisabled,
        TLSMismatch,
        Unauthenticated,
        Unavailable,
        Unimplemented,
        Violation,
        WriteLevelMismatch,
    )
    from muniment.host import HostClient
    from muniment.session import SessionClient
    from muniment.values import (
        AddNote,
        Agent,
        AgentLimits,
        AgentStorage,
        AuditEvent,
        Block,
        BlockPage,
        BudgetEntry,
        Classification,
        DeleteNote,
        ImportCounts,
        ItemKind,
        Memory,
        MemoryPage,
        MemoryResult,
        MemorySettings,
        NewPassage,
        Note,
        NoteDeleted,
        NoteEdit,
        NotePage,
        NoteResult,
        NoteSearchResults,
        NotesEdited,
        NoteWritten,
        Passage,
        PassagePage,
        PassageResult,
        PassageSearchResults,
        Prompt,
        PromptSection,
        PromptSectionKind,
        SearchResults,
        Session,
        Tier,
        UpdateNote,
        Usage,
    )

__all__ = [
    "TLS",
    "Aborted",
    "AddNote",
    "Agent",
    "AgentCeilingExceeded",
    "AgentExists",
    "AgentLimits",
    "AgentNotFound",
    "AgentStorage",
    "AlreadyExists",
    "AuditEvent",
    "Block",
    "BlockExists",
    "BlockNotAttached",
    "BlockNotFound",
    "BlockPage",
    "BlockTooLarge",
    "BudgetEntry",
    "BudgetExceeded",
    "CeilingExceeded",
    "Classification",
    "ConversationTainted",
    "DeadlineExceeded",
    "DeleteNote",
    "Details",
    "EtagStale",
    "FailedPrecondition",
    "HostClient",
    "ImportCounts",
    "InternalError",
    "InvalidArgument",
    "InvalidPageToken",
    "ItemExists",
    "ItemKind",
    "LineOutOfRange",
    "Listing",
    "Memory",
    "MemoryNotFound",
    "MemoryPage",
    "MemoryResult",
    "MemorySettings",
    "MethodUnknown",
    "MunimentError",
    "NewPassage",
    "NotFound",
    "Note",
    "NoteDeleted",
    "NoteEdit",
    "NoteExists",
    "NoteNotFound",
    "NotePage",
    "NoteResult",
    "NoteSearchResults",
    "NoteWritten",
    "NotesEdited",
    "Overloaded",
    "Overrun",
    "Passage",
    "PassageExists",
    "PassageNotFound",
    "PassagePage",
    "PassageResult",
    "PassageSearchResults",
    "PermissionDenied",
    "PrincipalNotAllowed",
    "Prompt",
    "PromptSection",
    "PromptSectionKind",
    "PromptTooLarge",
    "QuotaExceeded",
    "RateLimited",
    "ResourceExhausted",
    "SearchResults",
    "Session",
    "SessionClient",
    "SessionNotFound",
    "SharedBlockNotFound",
    "StorageFull",
    "TLSMismatch",
    "TaintChanged",
    "TextNotFound",
    "TextNotUnique",
    "Tier",
    "TierDisabled",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "UpdateNote",
    "Usage",
    "Violation",
    "WriteLevelMismatch",
    "connect",
]

_HOMES = ("values", "errors", "_channel", "_connect", "_listing", "host", "session")
"""The modules that define the names of `__all__`. The first needs no gRPC."""
_MODULES = {"aio", "errors", "host", "retries", "session", "settings", "values"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"muniment.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'muniment' has no attribute {name!r}")
    modules = (importlib.import_module(f"muniment.{home}") for home in _HOMES)
    globals()[name] = found = next(getattr(module, name) for module in modules if hasattr(module, name))
    return found


def __dir__() -> list[str]:
    return [*globals(), *__all__, *_MODULES]
