"""The tools. A model reads their docstrings.

No argument names an agent or a level: both follow from the session.
"""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from muniment import AddNote, Classification, DeleteNote, NoteEdit, SessionClient, Tier, UpdateNote
from muniment._calls import pages
from muniment._listing import undisturbed
from muniment.mcp import results
from muniment.mcp.results import LEVELS

MAX_PAGE_SIZE = 250
MAX_LISTED = 500
"""How many memories a list contains. All of them could be larger than the context of a model."""

Key = Annotated[
    str,
    Field(
        min_length=1,
        max_length=256,
        description="A name that says what is in it, such as user-birthday or project-atlas-deadline.",
    ),
]
Tags = Annotated[
    list[str],
    Field(max_length=32, description="Words to group by, such as preference, rule, person or project."),
]
Query = Annotated[str, Field(min_length=1, max_length=1024, description="Plain language: a question, or words.")]
MaxResults = Annotated[int, Field(ge=1, le=100, description="The most results to return.")]
Target = Annotated[
    Literal["memory", "user"],
    Field(
        description="memory: your own notes, such as facts about projects and tools, and what you learned. "
        "user: who the user is, such as name, role, preferences and habits."
    ),
]
NoteId = Annotated[str, Field(description="From note_list.")]
NoteContent = Annotated[str, Field(min_length=1, description="One fact, in as few words as it takes.")]
Label = Annotated[str, Field(min_length=1, max_length=64, description="The block's name, such as personality.")]
PassageId = Annotated[str, Field(description="From passage_search.")]

TIERS = {"memory": Tier.MEMORY, "user": Tier.USER}


class NewContent(BaseModel):
    """A note and its new content."""

    note_id: NoteId
    content: NoteContent


class MemoryTools:
    """Keyed memories."""

    def __init__(self, session: SessionClient) -> None:
        self._session = session

    def memory_save(
        self,
        key: Key,
        content: Annotated[str, Field(min_length=1, description="The fact, complete in itself. At most 64 KiB.")],
        tags: Tags = [],  # noqa: B006 - never changed
    ) -> results.MemorySaved:
        """Remember a fact beyond this conversation.

        Use it on your own, as soon as you learn something that will matter later: a name, a date, a preference, a
        decision, a rule to follow, the state of a project. One fact per key. The same key again replaces content and
        tags, so look with memory_search first if you may already know something about it.
        """
        saved = self._session.save_memory(key, content, tags=tags)
        return results.MemorySaved(classification=LEVELS[saved.classification], key=saved.key)

    def memory_get(self, key: Key) -> results.Memory:
        """Read one memory by its exact key. When you do not know the key, use memory_search."""
        return results.memory(self._session.get_memory(key))

    def memory_search(self, query: Query, max_results: MaxResults = 10) -> results.Memories:
        """Find memories by what they say, best first.

        Use it before you answer anything that may depend on earlier conversations, and before you ask the user
        something that you may already know.
        """
        found = self._session.search_memories(query, max_results=max_results)
        return results.Memories(
            classification=LEVELS[found.classification],
            memories=[results.memory_entry(each.memory, each.snippet) for each in found],
        )

    def memory_list(
        self, tag: Annotated[str, Field(description="Only memories with this tag. Empty: all.")] = ""
    ) -> results.MemoryList:
        """List memories by key, or those with one tag: the first 500, and of each the first 200 characters.

        Use it to see what is known at the beginning of a task, or to tidy up. memory_get reads the whole of one. To
        find something, use memory_search: it sees all.
        """
        listed = undisturbed(
            lambda: list(islice(self._session.list_memories(tag, page_size=MAX_PAGE_SIZE), MAX_LISTED + 1))
        )
        shown = listed[:MAX_LISTED]
        highest = max((each.classification for each in shown), default=Classification.PUBLIC)
        return results.MemoryList(
            classification=LEVELS[highest],
            memories=[results.memory_entry(each, each.content, results.LINE) for each in shown],
            more=len(listed) > len(shown),
        )

    def memory_delete(self, key: Key) -> results.Deleted:
        """Forget one memory: it is wrong, outdated, or the user asks for it. To correct it, use memory_save."""
        return results.Deleted(deleted=key, revealed=self._session.delete_memory(key) is not None)


class NoteTools:
    """Notes, in two targets with a budget each."""

    def __init__(self, session: SessionClient) -> None:
        self._session = session

    def note_add(self, content: NoteContent, target: Target = "memory") -> results.NoteWritten:
        """Add a note: a short fact that should be in view in every conversation.

        Notes have a small budget. Use memory_save or passage_store for what is long or rarely
        needed. If the budget is exceeded, make room with note_edit.
        """
        return results.note_written(self._session.add_note(content, tier=TIERS[target]))

    def note_update(self, note_id: NoteId, content: NoteContent, target: Target = "memory") -> results.NoteWritten:
        """Replace the content of a note: it has changed, or it can be said in fewer words."""
        return results.note_written(self._session.update_note(note_id, content, tier=TIERS[target]))

    def note_delete(self, note_id: NoteId, target: Target = "memory") -> results.NoteDeleted:
        """Delete a note: it is wrong, or no longer needed in every conversation."""
        done = self._session.delete_note(note_id, tier=TIERS[target])
        return results.NoteDeleted(deleted=note_id, revealed=done.revealed is not None, usage=results.usage(done.usage))

    def note_list(self, target: Target = "memory") -> results.Notes:
        """Read all notes of a target, oldest first, with their ids and how much of the budget they take.

        Use it at the beginning of a conversation, unless the notes are already in your prompt.
        """
        tier = TIERS[target]
        listed = undisturbed(
            lambda: list(
                pages(lambda token: self._session.list_notes_page(tier, page_size=MAX_PAGE_SIZE, page_token=token))
            )
        )
        return results.Notes(
            classification=LEVELS[max(page.classification for page in listed)],
            notes=[results.note(each) for page in listed for each in page],
            usage=results.usage(listed[-1].usage),
        )

    def note_edit(
        self,
        target: Target = "memory",
        delete: Annotated[list[NoteId], Field(description="Notes to delete.")] = [],  # noqa: B006 - never changed
        update: Annotated[list[NewContent], Field(description="Notes to replace.")] = [],  # noqa: B006 - never changed
        add: Annotated[list[NoteContent], Field(description="Notes to add.")] = [],  # noqa: B006 - never changed
    ) -> results.Notes:
        """Make several changes to the notes of one target, all or none.

        Use it to make room when the budget is exceeded: the budget applies to the result of all changes. Merge notes
        that belong together, shorten long ones, delete what is outdated. Returns the notes that were updated and added.
        """
        edits: list[NoteEdit] = [
            *map(DeleteNote, delete),
            *(UpdateNote(each.note_id, each.content) for each in update),
            *map(AddNote, add),
        ]
        done = self._session.edit_notes(edits, tier=TIERS[target])
        return results.Notes(
            classification=LEVELS[done.classification],
            notes=[results.note(each) for each in done.notes],
            usage=results.usage(done.usage),
        )


class BlockTools:
    """Core blocks."""

    def __init__(self, session: SessionClient) -> None:
        self._session = session

    def block_list(self) -> results.Blocks:
        """Read the core blocks: who you are, whom you know, what you are working on.

        Use it at the beginning of a conversation, unless the blocks are already in your prompt.
        """
        listed = undisturbed(lambda: list(self._session.list_blocks(page_size=MAX_PAGE_SIZE)))
        highest = max((each.classification for each in listed), default=Classification.PUBLIC)
        return results.Blocks(classification=LEVELS[highest], blocks=[results.block(each) for each in listed])

    def block_update(
        self,
        label: Label,
        content: Annotated[str, Field(description="The whole new content. Empty is allowed. At most 64 KiB.")],
    ) -> results.BlockWritten:
        """Rewrite a core block: your personality, your relationships, the current state of your work.

        The old content is replaced, so read it first and keep what is still true. A new label creates a new block.
        """
        written = self._session.update_block(label, content)
        return results.BlockWritten(classification=LEVELS[written.classification], label=written.label)


class PassageTools:
    """Archival passages."""

    def __init__(self, session: SessionClient) -> None:
        self._session = session

    def passage_store(
        self,
        content: Annotated[str, Field(min_length=1, description="The text. At most 256 KiB.")],
        author: Annotated[str, Field(max_length=256, description="Who said or wrote it. Empty: not stated.")] = "",
        tags: Tags = [],  # noqa: B006 - never changed
    ) -> results.PassageStored:
        """Put a text into the archive: what was said, a summary of a meeting, a document.

        Use it for what is worth finding again and too long or too particular for a memory. It is never overwritten.
        """
        stored = self._session.store_passage(content, author=author, tags=tags)
        return results.PassageStored(classification=LEVELS[stored.classification], passage_id=stored.passage_id)

    def passage_search(self, query: Query, max_results: MaxResults = 10) -> results.Passages:
        """Search the archive, best first.

        Use it if memories and notes do not have the answer: for what someone said, when, and in what words.
        """
        found = self._session.search_passages(query, max_results=max_results)
        return results.Passages(
            classification=LEVELS[found.classification],
            passages=[results.passage_entry(each.passage, each.snippet) for each in found],
        )

    def passage_get(self, passage_id: PassageId) -> results.Passage:
        """Read a whole passage, of which passage_search shows only a part."""
        return results.passage(self._session.get_passage(passage_id))
