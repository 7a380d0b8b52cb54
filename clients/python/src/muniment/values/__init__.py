"""The values that calls take and return.

Times are in UTC, and aware. No repr contains content, keys, labels, tags, threads, authors, snippets or page tokens, so
that values can be logged.
"""

from muniment.values.blocks import Block, BlockPage
from muniment.values.control import (
    Agent,
    AgentLimits,
    AgentStorage,
    AuditCheckpoint,
    AuditEvent,
    MemorySettings,
    Session,
    SkippedAgents,
)
from muniment.values.levels import Classification, Integrity, ItemKind
from muniment.values.memories import (
    DeletedCount,
    Memory,
    MemoryPage,
    MemoryRenamed,
    MemoryResult,
    NewMemory,
    SearchResults,
)
from muniment.values.notes import (
    AddNote,
    BudgetEntry,
    DeleteNote,
    Note,
    NoteDeleted,
    NoteEdit,
    NotePage,
    NoteResult,
    NoteSearchResults,
    NotesEdited,
    NoteWritten,
    Tier,
    UpdateNote,
    Usage,
)
from muniment.values.passages import (
    ImportCounts,
    NewPassage,
    Passage,
    PassagePage,
    PassageResult,
    PassageSearchResults,
)
from muniment.values.prompts import Prompt, PromptSection, PromptSectionKind
from muniment.values.releases import Release, ReleasedText, ReleaseState, ReplacedItem, content_sha256
from muniment.values.versions import ItemVersion, NewerBelow, VersionPage

__all__ = [
    "AddNote",
    "Agent",
    "AgentLimits",
    "AgentStorage",
    "AuditCheckpoint",
    "AuditEvent",
    "Block",
    "BlockPage",
    "BudgetEntry",
    "Classification",
    "DeleteNote",
    "DeletedCount",
    "ImportCounts",
    "Integrity",
    "ItemKind",
    "ItemVersion",
    "Memory",
    "MemoryPage",
    "MemoryRenamed",
    "MemoryResult",
    "MemorySettings",
    "NewMemory",
    "NewPassage",
    "NewerBelow",
    "Note",
    "NoteDeleted",
    "NoteEdit",
    "NotePage",
    "NoteResult",
    "NoteSearchResults",
    "NoteWritten",
    "NotesEdited",
    "Passage",
    "PassagePage",
    "PassageResult",
    "PassageSearchResults",
    "Prompt",
    "PromptSection",
    "PromptSectionKind",
    "Release",
    "ReleaseState",
    "ReleasedText",
    "ReplacedItem",
    "SearchResults",
    "Session",
    "SkippedAgents",
    "Tier",
    "UpdateNote",
    "Usage",
    "VersionPage",
    "content_sha256",
]
