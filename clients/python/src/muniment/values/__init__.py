"""What the service keeps and shows, as values.

Times are aware and in UTC. No repr holds content, keys, labels, tags, threads, authors, snippets or page
tokens, so that a value may be logged.
"""

from muniment.values.blocks import Block, BlockPage
from muniment.values.control import Agent, AuditEvent, MemorySettings, Session
from muniment.values.levels import Classification, ItemKind
from muniment.values.memories import Memory, MemoryPage, MemoryResult, SearchResults
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

__all__ = [
    "AddNote",
    "Agent",
    "AuditEvent",
    "Block",
    "BlockPage",
    "BudgetEntry",
    "Classification",
    "DeleteNote",
    "ImportCounts",
    "ItemKind",
    "Memory",
    "MemoryPage",
    "MemoryResult",
    "MemorySettings",
    "NewPassage",
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
    "SearchResults",
    "Session",
    "Tier",
    "UpdateNote",
    "Usage",
]
