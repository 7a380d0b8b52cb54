"""The tools. A model reads their docstrings.

No argument names an agent or a level: both follow from the session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Annotated, Protocol

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from muniment import AddNote, Classification, DeleteNote, ItemKind, NoteEdit, SessionClient, Tier, UpdateNote
from muniment._calls import Page, pages
from muniment._listing import undisturbed
from muniment._reserved import is_reserved
from muniment.mcp import results
from muniment.mcp.arguments import unreserved
from muniment.mcp.results import LEVELS

MAX_PAGE_SIZE = 250
MAX_VERSIONS = 20
"""How many versions a list contains: each with its whole content."""
MAX_PAGES = 2
"""How many pages a list contains. All of them could be larger than the context of a model."""

Key = Annotated[
    str,
    Field(
        min_length=1,
        max_length=256,
        description="A name that says what is in it, such as user-birthday or project-atlas-deadline.",
    ),
]
OwnKey = Annotated[Key, AfterValidator(unreserved)]
Tags = Annotated[
    list[Annotated[str, AfterValidator(unreserved)]],
    Field(max_length=32, description="Words to group by, such as preference, rule, person or project."),
]
Tag = Annotated[str, Field(description="Only those with this tag. Empty: all.")]
After = Annotated[str, Field(description="The `next` of the list before.")]
Target = Annotated[
    results.Target,
    Field(description="memory: your own notes, on projects, tools, lessons. user: who the user is."),
]
NoteId = Annotated[str, Field(description="From note_list.")]
NoteContent = Annotated[str, Field(min_length=1, description="One fact, in as few words as it takes.")]
Label = Annotated[str, Field(min_length=1, max_length=64, description="The block's name, such as personality.")]
PassageId = Annotated[str, Field(description="From search or passage_list.")]

TIERS: dict[results.Target, Tier] = {"memory": Tier.MEMORY, "user": Tier.USER}


class HasClassification(Protocol):
    """Anything with a level."""

    @property
    def classification(self) -> Classification:
        """Its level."""


class NewContent(BaseModel):
    """A note and its new content."""

    model_config = ConfigDict(extra="forbid")

    note_id: NoteId
    content: NoteContent


class Tools:
    """Tools of the session that makes the current call."""

    def __init__(self, session: Callable[[], SessionClient]) -> None:
        self._caller = session

    @property
    def _session(self) -> SessionClient:
        return self._caller()

    def _level(self, of: Iterable[HasClassification]) -> results.Level:
        """The highest level in an answer.

        That there is nothing says something about all that the session sees, so then it is the session's taint.
        """
        highest = max((each.classification for each in of), default=None)
        return LEVELS[self._session.get_session().taint if highest is None else highest]


class MemoryTools(Tools):
    """Keyed memories."""

    def memory_save(
        self,
        key: OwnKey,
        content: Annotated[str, Field(min_length=1, description="The fact, complete in itself. At most 128 KiB.")],
        tags: Tags = [],  # noqa: B006 - never changed
    ) -> results.MemorySaved:
        """Remember a fact beyond this conversation.

        Use it on your own, as soon as you learn something that will matter later: a name, a date, a preference, a
        decision, a rule to follow, the state of a project. One fact per key. The same key again replaces content and
        tags, so look with search first if you may already know something about it.
        """
        saved = self._session.save_memory(key, content, tags=tags)
        return results.MemorySaved(classification=LEVELS[saved.classification], key=saved.key)

    def memory_get(self, key: Key) -> results.Memory:
        """Read one memory by its exact key. When you do not know the key, use search."""
        return results.memory(self._session.get_memory(key))

    def memory_list(self, tag: Tag = "", after: After = "") -> results.MemoryList:
        """List memories by key, or those with one tag: 500 at a time, and of each the first 200 characters.

        Use it to see what is known at the beginning of a task, or to tidy up. If `whole` is false, memory_get reads the
        rest. If there is a `next`, call again with it as `after`.
        """
        read = first_pages(
            lambda token: self._session.list_memories_page(tag, page_size=MAX_PAGE_SIZE, page_token=token), after
        )
        listed = [memory for page in read for memory in page.memories]
        return results.MemoryList(
            classification=self._level(listed),
            memories=[results.memory_entry(each, each.content, results.LINE) for each in listed],
            more=bool(read[-1].next_page_token),
            next=read[-1].next_page_token or None,
        )

    def memory_delete(self, key: OwnKey) -> results.Deleted:
        """Forget one memory: it is wrong, outdated, or the user asks for it. To correct it, use memory_save.

        `revealed` says that an older version is seen again from now on.
        """
        return results.Deleted(deleted=key, revealed=self._session.delete_memory(key) is not None)


class NoteTools(Tools):
    """Notes, in two targets with a budget each."""

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
        notes = [each for page in listed for each in page]
        return results.Notes(
            classification=self._level(notes),
            notes=[results.note(each) for each in notes],
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
            classification=self._level(done.notes),
            notes=[results.note(each) for each in done.notes],
            usage=results.usage(done.usage),
        )


class BlockTools(Tools):
    """Core blocks."""

    def block_list(self) -> results.Blocks:
        """Read the core blocks: who you are, whom you know, what you are working on.

        Use it at the beginning of a conversation, unless the blocks are already in your prompt. A `read_only` one is
        another agent's.
        """
        listed = undisturbed(lambda: list(self._session.list_blocks(page_size=MAX_PAGE_SIZE)))
        return results.Blocks(classification=self._level(listed), blocks=[results.block(each) for each in listed])

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


class PassageTools(Tools):
    """Archival passages."""

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

    def passage_get(self, passage_id: PassageId) -> results.Passage:
        """Read a whole passage, of which search and passage_list may show only a part."""
        return results.passage(self._session.get_passage(passage_id))

    def passage_list(self, tag: Tag = "", after: After = "") -> results.PassageList:
        """List the archive, or what has one tag, the newest first: 500 at a time, the first 200 characters of each.

        If there is a `next`, call again with it as `after`.
        """
        tags = (tag,) if tag else ()
        read = first_pages(
            lambda token: self._session.list_passages_page(tags=tags, page_size=MAX_PAGE_SIZE, page_token=token), after
        )
        listed = [passage for page in read for passage in page.passages]
        return results.PassageList(
            classification=self._level(listed),
            passages=[results.passage_entry(each, each.content, results.LINE) for each in listed],
            more=bool(read[-1].next_page_token),
            next=read[-1].next_page_token or None,
        )

    def passage_delete(self, passage_id: PassageId) -> results.Deleted:
        """Delete one passage from the archive, when the user asks to forget it."""
        if any(map(is_reserved, self._session.get_passage(passage_id).tags)):
            raise ToolError("A program stored this passage for itself, and you may only read it. Leave it as it is.")
        return results.Deleted(deleted=passage_id, revealed=self._session.delete_passage(passage_id) is not None)


class VersionTools(Tools):
    """The versions of items."""

    def versions(
        self,
        kind: Annotated[results.Kind, Field(description="What it is.")],
        name: Annotated[
            str,
            Field(min_length=1, max_length=256, description="The key, label or id."),
        ],
        revisions: Annotated[bool, Field(description="Also what they replaced.")] = False,
        after: After = "",
    ) -> results.Versions:
        """Read the versions of one item, newest first. Use it if a result has `newer_below`: one is newer.

        Compare them before you rely on one. To settle it, write what is right under its name.
        """
        page = self._session.list_versions_page(
            ItemKind[kind.upper()], name, with_revisions=revisions, page_size=MAX_VERSIONS, page_token=after
        )
        return results.Versions(
            classification=self._level(page),
            versions=list(map(results.version, page)),
            more=bool(page.next_page_token),
            next=page.next_page_token or None,
        )


def first_pages(fetch: Callable[[str], Page], after: str) -> list[Page]:
    """The first pages of a list, or the next ones *after* a page token. *fetch* takes a page token."""
    return undisturbed(lambda: list(islice(pages(lambda token: fetch(token or after)), MAX_PAGES)))
