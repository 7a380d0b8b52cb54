"""All visible versions of the notes: for the notes themselves, and for prompts."""

from __future__ import annotations

from collections.abc import Sequence

from muniment_server.domain.budgets import MemorySettings
from muniment_server.domain.classification import Label
from muniment_server.domain.items import Version
from muniment_server.domain.notes import Note, NoteSet
from muniment_server.items.rows import NoteRow
from muniment_server.monitor.session_scope import Query

NOTE_VERSIONS = Query("note_versions", NoteRow, {})


def note_set(taint: Label, rows: Sequence[NoteRow]) -> NoteSet:
    """The notes and settings in the rows of NOTE_VERSIONS."""
    first = rows[0]
    settings = MemorySettings(
        memory_enabled=first.memory_enabled,
        user_profile_enabled=first.user_profile_enabled,
        memory_char_limit=first.memory_char_limit,
        user_char_limit=first.user_char_limit,
    )
    return NoteSet(taint, settings, (_note(row, row.name) for row in rows if row.name is not None))


def _note(row: NoteRow, note_id: str) -> Note:
    return Note(
        note_id=note_id,
        tier=row.tier,
        content=row.content,
        label=row.label,
        version=Version(row.item_id, row.revision),
        create_time=row.create_time,
        update_time=row.update_time,
    )
