"""What the tests know of each RPC: one row each. No other file lists all of them, but for monitor/policies.txt.

tests/test_rpcs.py plays every row. Who may call an RPC, and what else its policy says, is in the contract.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from muniment import (
    AddNote,
    Classification,
    HostClient,
    Integrity,
    ItemKind,
    NewMemory,
    NewPassage,
    SessionClient,
    content_sha256,
)
from muniment.v1 import (
    agent_service_pb2,
    audit_pb2,
    audit_service_pb2,
    block_service_pb2,
    classification_pb2,
    memory_service_pb2,
    note_pb2,
    note_service_pb2,
    passage_service_pb2,
    prompt_pb2,
    prompt_service_pb2,
    release_pb2,
    release_service_pb2,
    session_service_pb2,
    version_service_pb2,
)
from tests.support.examples import (
    AGENT,
    AUDIT_EVENT,
    BLOCK,
    MEMORY,
    NOON,
    NOTE,
    NOTE_ID,
    PASSAGE,
    PASSAGE_ID,
    PROMPT,
    RELEASE,
    RELEASE_ID,
    SESSION,
    SESSION_ID,
    TOKEN,
    USAGE,
    VERSION,
)
from tests.support.services import Caller, Outcome

FUTURE, PAST = ({"seconds": seconds} for seconds in (4_102_444_800, 1))
"""Times on the wire, in 2100 and in 1970."""


@dataclass(frozen=True)
class World:
    """What requests name: items and agents that `fill` makes, and others that do not exist yet."""

    word: str
    """A text that is nowhere else: the id of the agent, the key of a memory, the label of a block, a tag, a thread."""
    session: str = ""
    """The id of a session."""
    level: int = 1
    """The taint of that session."""
    content: str = "old"
    """What the items hold."""
    release: str = ""
    """The id of the release of a memory that another host has asked for."""

    @property
    def text(self) -> str:
        """What requests write."""
        return f"{self.word} anew"

    @property
    def other(self) -> str:
        """An agent that no block is attached to."""
        return f"{self.word}-other"

    @property
    def consumer(self) -> str:
        """An agent that the shared block is attached to."""
        return f"{self.word}-consumer"

    @property
    def deleted(self) -> str:
        """The key of a memory that was deleted."""
        return f"{self.word} deleted"

    @property
    def shared(self) -> dict[str, Any]:
        """The shared block."""
        return {"owner_agent_id": self.word, "label": f"{self.word}-shared"}

    @property
    def about(self) -> dict[str, Any]:
        """What is known of a passage."""
        return {"tags": [self.word], "thread": self.word, "author": self.word}

    @property
    def released(self) -> dict[str, Any]:
        """The memory, and the trusted label of its level."""
        return {
            "agent_id": self.word,
            "kind": 1,
            "name": self.word,
            "source_classification": self.level,
            "classification": self.level,
            "integrity": 1,
            "content_sha256": content_sha256(self.content),
            "reason": self.word,
        }

    @cached_property
    def note(self) -> str:
        return self._id("note")

    @cached_property
    def passage(self) -> str:
        return self._id("passage")

    @cached_property
    def new(self) -> str:
        """The id of what is added."""
        return self._id("new")

    def names(self) -> tuple[str, ...]:
        """All that the requests contain of which nothing may be logged."""
        return (self.word, self.note, self.passage, self.new)

    def _id(self, name: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.word} {name}"))

    def fill(self, session: Caller, content: str) -> None:
        """Make the items of a session."""
        session.save_memory(key=self.deleted, content=content)
        session.delete_memory(key=self.deleted)
        session.save_memory(key=self.word, content=content, tags=[self.word])
        session.add_note(note_id=self.note, content=content)
        session.update_block(label=self.word, content=content)
        session.store_passage(passage_id=self.passage, content=content, **self.about)

    def fill_agents(self, host: Caller) -> None:
        """Make the agents and the shared block."""
        for agent_id in (self.word, self.other, self.consumer):
            host.create_agent(agent_id=agent_id)
        host.create_shared_block(**self.shared)
        host.attach_block(**self.shared, agent_id=self.consumer)


@dataclass(frozen=True)
class Outcomes:
    """OK and the reasons of refusals that a long run of two worlds must compare at least once."""

    everywhere: tuple[str, ...]
    """By hosts; by sessions at each level below RESTRICTED, where only OK is a must."""
    somewhere: tuple[str, ...] = ()
    """By anybody."""
    above_public: tuple[str, ...] = ()
    """By sessions at INTERNAL and at CONFIDENTIAL."""


@dataclass(frozen=True)
class Leaves:
    """What each audit row of a write with an item in it stands for."""

    kind: ItemKind | None
    """None: the kind is in the row."""
    effects: tuple[str, ...]
    """One of these: a `version` in the ledger, a `passage`, the `deletion` of an item."""


@dataclass(frozen=True)
class Rpc:
    """One row."""

    changes: str
    """The table of the database that a call changes, beside the audit. Empty: none."""
    request: Callable[[World], dict[str, Any]]
    """The fields of a good request, with the word wherever a text goes in."""
    answer: Any
    """A good answer: a message, with an example in each field that clients show."""
    python: Callable[[HostClient, SessionClient], object]
    """A call of the Python client."""
    outcomes: Outcomes
    """What runs of tests/proof/noninterference compare: checked from 96 programs on, as `make prove-deep` runs them."""
    leaves: Leaves | None = None
    """What its audit rows stand for. None: it changes no item, or records no item."""
    refused: Callable[[World], tuple[dict[str, Any], ...]] = lambda _: ()
    """Requests that are refused for their form, whoever calls. No RPC takes bytes that are no message.

    Programs of tests/proof/noninterference send them too.
    """


class _Rows(dict[str, Rpc]):
    """The rows by RPC. The error for a missing one says where to add it."""

    def __missing__(self, rpc: str) -> Rpc:
        raise KeyError(f"{rpc} has no row: add one to tests/rpcs.py")


_ROWS: dict[str, Rpc] = {
    "CreateAgent": Rpc(
        changes="agent",
        request=lambda w: {
            "agent_id": f"{w.word}-new",
            "display_name": w.word,
            "initial_blocks": [{"label": w.word, "content": w.word}],
        },
        answer=agent_service_pb2.CreateAgentResponse(agent=AGENT),
        python=lambda host, _: host.create_agent("ada"),
        outcomes=Outcomes(("OK", "AGENT_EXISTS", "CEILING_EXCEEDED", "FIELD_INVALID")),
        leaves=Leaves(ItemKind.BLOCK, ("version",)),
        refused=lambda w: (
            {"agent_id": "dora", "initial_blocks": [{"label": "a"}, {"label": "a"}]},
            {"agent_id": "dora", "initial_blocks": [{"label": "two words"}]},
        ),
    ),
    "GetAgent": Rpc(
        changes="",
        request=lambda w: {"agent_id": w.word},
        answer=agent_service_pb2.GetAgentResponse(agent=AGENT),
        python=lambda host, _: host.get_agent("ada"),
        outcomes=Outcomes(("OK", "AGENT_NOT_FOUND", "FIELD_INVALID")),
        refused=lambda w: ({"agent_id": "not one"},),
    ),
    "ListAgents": Rpc(
        changes="",
        request=lambda _: {},
        answer=agent_service_pb2.ListAgentsResponse(agents=[AGENT]),
        python=lambda host, _: list(host.list_agents()),
        outcomes=Outcomes(("OK", "PAGE_TOKEN_INVALID")),
        refused=lambda w: ({"page_token": "AAAA"},),
    ),
    "UpdateAgent": Rpc(
        changes="agent",
        request=lambda w: {"agent_id": w.word, "display_name": w.word},
        answer=agent_service_pb2.UpdateAgentResponse(agent=AGENT),
        python=lambda host, _: host.update_agent("ada", display_name="Ada"),
        outcomes=Outcomes(("OK", "AGENT_NOT_FOUND", "AGENT_ABOVE_CEILING")),
        refused=lambda w: ({"agent_id": "alice", "memory_settings": {"memory_char_limit": -1}},),
    ),
    "DeleteAgent": Rpc(
        changes="agent",
        request=lambda w: {"agent_id": w.other},
        answer=agent_service_pb2.DeleteAgentResponse(),
        python=lambda host, _: host.delete_agent("ada"),
        outcomes=Outcomes(("OK",)),
    ),
    "EraseItems": Rpc(
        changes="item",
        request=lambda w: {"agent_id": w.word, "kind": 1, "name": w.word},
        answer=agent_service_pb2.EraseItemsResponse(),
        python=lambda host, _: host.erase_items("ada", ItemKind.MEMORY, name="plan"),
        outcomes=Outcomes(("OK",)),
    ),
    "UndeleteItem": Rpc(
        changes="item",
        request=lambda w: {"agent_id": w.word, "kind": 1, "name": w.deleted, "classification": w.level},
        answer=agent_service_pb2.UndeleteItemResponse(),
        python=lambda host, _: host.undelete_item("ada", ItemKind.MEMORY, "plan", Classification.INTERNAL),
        outcomes=Outcomes(
            ("OK", "ITEM_EXISTS", "MEMORY_NOT_FOUND", "CEILING_EXCEEDED", "AGENT_NOT_FOUND", "FIELD_INVALID")
        ),
        leaves=Leaves(
            None,
            (
                "version",
                "passage",
            ),
        ),
    ),
    "OpenSession": Rpc(
        changes="session",
        request=lambda w: {"agent_id": w.word, "conversation_id": w.word, "taint": w.level},
        answer=session_service_pb2.OpenSessionResponse(session=SESSION, token=TOKEN),
        python=lambda host, _: host.open_session("ada", Classification.PUBLIC),
        outcomes=Outcomes(
            (
                "OK",
                "AGENT_NOT_FOUND",
                "CEILING_EXCEEDED",
                "AGENT_CEILING_EXCEEDED",
                "CONVERSATION_CEILING_EXCEEDED",
                "CONVERSATION_TAINTED",
                "FIELD_INVALID",
            )
        ),
        refused=lambda w: (
            {"agent_id": "alice", "taint": 5},
            {"agent_id": "alice", "taint": 6},
        ),
    ),
    "GetSession": Rpc(
        changes="",
        request=lambda w: {"session_id": w.session},
        answer=session_service_pb2.GetSessionResponse(session=SESSION),
        python=lambda _, session: session.get_session(),
        outcomes=Outcomes(("OK", "SESSION_NOT_FOUND")),
    ),
    "ListSessions": Rpc(
        changes="",
        request=lambda w: {"agent_id": w.word},
        answer=session_service_pb2.ListSessionsResponse(sessions=[SESSION]),
        python=lambda host, _: list(host.list_sessions("ada")),
        outcomes=Outcomes(("OK", "AGENT_NOT_FOUND", "FIELD_INVALID")),
        refused=lambda w: ({"agent_id": "alice", "page_size": -3},),
    ),
    "RenewSession": Rpc(
        changes="session",
        request=lambda w: {"session_id": w.session},
        answer=session_service_pb2.RenewSessionResponse(session=SESSION),
        python=lambda host, _: host.renew_session(SESSION_ID),
        outcomes=Outcomes(("OK", "SESSION_NOT_FOUND")),
        refused=lambda w: ({"session_id": "not-one"},),
    ),
    "RaiseTaint": Rpc(
        changes="conversation",
        request=lambda w: {"session_id": w.session, "taint": 4, "reason": w.word},
        answer=session_service_pb2.RaiseTaintResponse(session=SESSION),
        python=lambda host, _: host.raise_taint(SESSION_ID, Classification.INTERNAL),
        outcomes=Outcomes(
            (
                "OK",
                "SESSION_NOT_FOUND",
                "CEILING_EXCEEDED",
                "AGENT_CEILING_EXCEEDED",
                "CONVERSATION_CEILING_EXCEEDED",
                "FIELD_INVALID",
            ),
            somewhere=("PRINCIPAL_NOT_ALLOWED",),
        ),
        refused=lambda w: ({"session_id": "not-one", "taint": 2},),
    ),
    "ResetSession": Rpc(
        changes="session",
        request=lambda w: {"session_id": w.session, "reason": w.word},
        answer=session_service_pb2.ResetSessionResponse(session=SESSION, token=TOKEN),
        python=lambda host, _: host.reset_session(SESSION_ID),
        outcomes=Outcomes(("OK", "SESSION_NOT_FOUND")),
    ),
    "CloseSession": Rpc(
        changes="session",
        request=lambda w: {"session_id": w.session},
        answer=session_service_pb2.CloseSessionResponse(),
        python=lambda _, session: session.close(),
        outcomes=Outcomes(("OK", "SESSION_NOT_FOUND")),
    ),
    "SaveMemory": Rpc(
        changes="item",
        request=lambda w: {"key": w.word, "content": w.text, "tags": [w.word], "expire_time": FUTURE},
        answer=memory_service_pb2.SaveMemoryResponse(memory=MEMORY),
        python=lambda _, session: session.save_memory("tea", "Assam"),
        outcomes=Outcomes(("OK", "ETAG_STALE", "FIELD_INVALID")),
        leaves=Leaves(ItemKind.MEMORY, ("version",)),
        refused=lambda w: (
            {"key": "", "content": w.word},
            {"key": "plan", "content": ""},
            {"key": "plan", "content": f"{w.word}\0"},
            {"key": f" {w.word}", "content": "x"},
            {"key": f"{w.word}\n", "content": "x"},
            {"key": "plan", "content": w.word, "tags": ["a"] * 33},
            {"key": "plan", "content": w.word, "tags": ["  "]},
            {"key": "plan", "content": w.word, "etag": "none"},
            {"key": "plan", "content": w.word, "expire_time": PAST},
            {"key": "budget", "content": w.word, "expire_time": PAST},
        ),
    ),
    "SaveMemories": Rpc(
        changes="item",
        request=lambda w: {"memories": [{"key": key, "content": w.text, "tags": [w.word]} for key in (w.word, w.new)]},
        answer=memory_service_pb2.SaveMemoriesResponse(
            memories=[MEMORY], classification=classification_pb2.CLASSIFICATION_PUBLIC
        ),
        python=lambda _, session: session.save_memories([NewMemory("tea", "Assam"), NewMemory("milk", "no")]),
        outcomes=Outcomes(("OK", "FIELD_INVALID"), somewhere=("ETAG_STALE",)),
        leaves=Leaves(ItemKind.MEMORY, ("version",)),
        refused=lambda w: (
            {"memories": [{"key": "plan", "content": w.word}] * 2},
            {"memories": [{"key": "plan", "content": w.word}, {"key": f"{w.word}\n", "content": "x"}]},
            {"memories": [{"key": f"{w.word}{number}", "content": "x"} for number in range(101)]},
        ),
    ),
    "GetMemory": Rpc(
        changes="",
        request=lambda w: {"key": w.word},
        answer=memory_service_pb2.GetMemoryResponse(memory=MEMORY),
        python=lambda _, session: session.get_memory("tea"),
        outcomes=Outcomes(("OK", "MEMORY_NOT_FOUND")),
        refused=lambda w: (
            {"key": "x" * 257},
            {"key": "plan "},
        ),
    ),
    "ListMemories": Rpc(
        changes="",
        request=lambda w: {"tag": w.word, "key_prefix": w.word},
        answer=memory_service_pb2.ListMemoriesResponse(
            memories=[MEMORY], classification=classification_pb2.CLASSIFICATION_PUBLIC
        ),
        python=lambda _, session: list(session.list_memories()),
        outcomes=Outcomes(("OK",), somewhere=("PAGE_TOKEN_INVALID",)),
        refused=lambda w: (
            {"key_prefix": f" {w.word}"},
            {"page_size": -1},
            {"page_token": "AAAA"},
        ),
    ),
    "SearchMemories": Rpc(
        changes="",
        request=lambda w: {"query": w.word, "tags": [w.word], "key_prefix": w.word},
        answer=memory_service_pb2.SearchMemoriesResponse(
            results=[
                memory_service_pb2.MemoryResult(memory=MEMORY, score=1.5, snippet="Assam, no sugar", relevance=0.5)
            ],
            classification=classification_pb2.CLASSIFICATION_PUBLIC,
            semantic=True,
            reranked=True,
        ),
        python=lambda _, session: session.search_memories("tea"),
        outcomes=Outcomes(("OK",)),
        refused=lambda w: (
            {"query": "budget", "key_prefix": f"{w.word}\n"},
            {"query": "  "},
            {"query": "\0"},
            {"query": "x" * 1025},
            {"query": "budget", "max_results": -1},
            {"query": "budget", "tag_match": 7},
        ),
    ),
    "DeleteMemory": Rpc(
        changes="item",
        request=lambda w: {"key": w.word},
        answer=memory_service_pb2.DeleteMemoryResponse(),
        python=lambda _, session: session.delete_memory("tea"),
        outcomes=Outcomes(
            ("OK", "MEMORY_NOT_FOUND"), somewhere=("ETAG_STALE",), above_public=("WRITE_LEVEL_MISMATCH",)
        ),
        leaves=Leaves(ItemKind.MEMORY, ("deletion",)),
        refused=lambda w: (
            {"key": ""},
            {"key": "plan", "etag": "!" * 27},
        ),
    ),
    "DeleteMemories": Rpc(
        changes="item",
        request=lambda w: {"tag": w.word},
        answer=memory_service_pb2.DeleteMemoriesResponse(deleted_count=2, more=True),
        python=lambda _, session: session.delete_memories("drinks"),
        outcomes=Outcomes(("OK",)),
        leaves=Leaves(ItemKind.MEMORY, ("deletion",)),
        refused=lambda w: (
            {"tag": ""},
            {"tag": "  "},
        ),
    ),
    "RenameMemory": Rpc(
        changes="item",
        request=lambda w: {"key": w.word, "new_key": f"{w.word} anew"},
        answer=memory_service_pb2.RenameMemoryResponse(
            memory=MEMORY, revealed=classification_pb2.CLASSIFICATION_PUBLIC
        ),
        python=lambda _, session: session.rename_memory("tea", "chai"),
        outcomes=Outcomes(
            ("OK", "MEMORY_NOT_FOUND", "MEMORY_EXISTS"),
            somewhere=("ETAG_STALE",),
            above_public=("WRITE_LEVEL_MISMATCH",),
        ),
        leaves=Leaves(ItemKind.MEMORY, ("version",)),
        refused=lambda w: (
            {"key": "plan", "new_key": "plan"},
            {"key": "plan", "new_key": f"{w.word} "},
            {"key": "", "new_key": "plan"},
        ),
    ),
    "ListBlocks": Rpc(
        changes="",
        request=lambda _: {},
        answer=block_service_pb2.ListBlocksResponse(
            blocks=[BLOCK], classification=classification_pb2.CLASSIFICATION_PUBLIC
        ),
        python=lambda _, session: list(session.list_blocks()),
        outcomes=Outcomes(("OK",), somewhere=("PAGE_TOKEN_INVALID", "TAINT_CHANGED")),
        refused=lambda w: (
            {"page_size": -1},
            {"page_token": "AAAA"},
        ),
    ),
    "GetBlock": Rpc(
        changes="",
        request=lambda w: {"label": w.word},
        answer=block_service_pb2.GetBlockResponse(block=BLOCK),
        python=lambda _, session: session.get_block("personality"),
        outcomes=Outcomes(("OK", "BLOCK_NOT_FOUND")),
        refused=lambda w: (
            {"label": f"{w.word}/"},
            {"label": "plan", "owner_agent_id": "not one"},
        ),
    ),
    "UpdateBlock": Rpc(
        changes="item",
        request=lambda w: {"label": w.word, "content": w.text},
        answer=block_service_pb2.UpdateBlockResponse(block=BLOCK),
        python=lambda _, session: session.update_block("personality", "dry"),
        outcomes=Outcomes(("OK", "ETAG_STALE")),
        leaves=Leaves(ItemKind.BLOCK, ("version",)),
        refused=lambda w: (
            {"label": "-plan", "content": w.word},
            {"label": "plan", "content": f"{w.word}\0"},
        ),
    ),
    "EditBlock": Rpc(
        changes="item",
        request=lambda w: {"label": w.word, "append": {"content": w.text}},
        answer=block_service_pb2.EditBlockResponse(block=BLOCK),
        python=lambda _, session: session.append_to_block("personality", "dry"),
        outcomes=Outcomes(
            ("OK", "BLOCK_NOT_FOUND", "ETAG_STALE", "TEXT_NOT_FOUND", "TEXT_NOT_UNIQUE", "LINE_OUT_OF_RANGE"),
            somewhere=("BLOCK_TOO_LARGE",),
        ),
        leaves=Leaves(ItemKind.BLOCK, ("version",)),
        refused=lambda w: (
            {"label": "plan"},
            {"label": "plan", "insert": {"line": -1, "content": w.word}},
            {"label": "plan", "replace": {"old": "", "new": w.word}},
            {"label": "plan", "append": {"content": f"{w.word}\0"}},
        ),
    ),
    "DeleteBlock": Rpc(
        changes="item",
        request=lambda w: {"label": w.word},
        answer=block_service_pb2.DeleteBlockResponse(),
        python=lambda _, session: session.delete_block("personality"),
        outcomes=Outcomes(("OK", "BLOCK_NOT_FOUND"), somewhere=("ETAG_STALE",), above_public=("WRITE_LEVEL_MISMATCH",)),
        leaves=Leaves(ItemKind.BLOCK, ("deletion",)),
        refused=lambda w: ({"label": "x" * 65},),
    ),
    "CreateSharedBlock": Rpc(
        changes="shared_block",
        request=lambda w: {"owner_agent_id": w.word, "label": f"{w.word}-new", "content": w.text},
        answer=block_service_pb2.CreateSharedBlockResponse(),
        python=lambda host, _: host.create_shared_block("ada", "personality"),
        outcomes=Outcomes(("OK", "BLOCK_EXISTS", "AGENT_NOT_FOUND", "AGENT_ABOVE_CEILING", "FIELD_INVALID")),
        leaves=Leaves(ItemKind.BLOCK, ("version",)),
        refused=lambda w: ({"owner_agent_id": "alice", "label": "two words"},),
    ),
    "DeleteSharedBlock": Rpc(
        changes="shared_block",
        request=lambda w: w.shared,
        answer=block_service_pb2.DeleteSharedBlockResponse(),
        python=lambda host, _: host.delete_shared_block("ada", "personality"),
        outcomes=Outcomes(("OK", "SHARED_BLOCK_NOT_FOUND")),
        refused=lambda w: ({"owner_agent_id": "alice", "label": f"{w.word}\n"},),
    ),
    "AttachBlock": Rpc(
        changes="block_link",
        request=lambda w: {**w.shared, "agent_id": w.other},
        answer=block_service_pb2.AttachBlockResponse(),
        python=lambda host, _: host.attach_block("ada", "personality", "bob"),
        outcomes=Outcomes(
            ("OK", "SHARED_BLOCK_NOT_FOUND", "AGENT_NOT_FOUND", "AGENT_CEILING_EXCEEDED", "FIELD_INVALID")
        ),
        refused=lambda w: ({"owner_agent_id": "alice", "label": "plan", "agent_id": "alice"},),
    ),
    "DetachBlock": Rpc(
        changes="block_link",
        request=lambda w: {**w.shared, "agent_id": w.consumer},
        answer=block_service_pb2.DetachBlockResponse(),
        python=lambda host, _: host.detach_block("ada", "personality", "bob"),
        outcomes=Outcomes(("OK", "BLOCK_NOT_ATTACHED", "SHARED_BLOCK_NOT_FOUND")),
        refused=lambda w: ({"owner_agent_id": "alice", "label": "", "agent_id": "bob"},),
    ),
    "ListBlockConsumers": Rpc(
        changes="",
        request=lambda w: w.shared,
        answer=block_service_pb2.ListBlockConsumersResponse(agent_ids=["bob", "cleo"]),
        python=lambda host, _: list(host.list_block_consumers("ada", "personality")),
        outcomes=Outcomes(("OK", "SHARED_BLOCK_NOT_FOUND", "PAGE_TOKEN_INVALID")),
        refused=lambda w: ({"owner_agent_id": "alice", "label": "plan", "page_token": "AAAA"},),
    ),
    "AddNote": Rpc(
        changes="item",
        request=lambda w: {"content": w.text, "note_id": w.new},
        answer=note_service_pb2.AddNoteResponse(note=NOTE, usage=USAGE),
        python=lambda _, session: session.add_note("night trains"),
        outcomes=Outcomes(("OK", "NOTE_EXISTS", "TIER_DISABLED", "BUDGET_EXCEEDED", "FIELD_INVALID")),
        leaves=Leaves(ItemKind.NOTE, ("version",)),
        refused=lambda w: (
            {"content": ""},
            {"content": f"{w.word}\0"},
            {"content": w.word, "tier": 3},
            {"content": w.word, "note_id": "not-one"},
        ),
    ),
    "UpdateNote": Rpc(
        changes="item",
        request=lambda w: {"content": w.text, "note_id": w.note},
        answer=note_service_pb2.UpdateNoteResponse(note=NOTE, usage=USAGE),
        python=lambda _, session: session.update_note(NOTE_ID, "night trains"),
        outcomes=Outcomes(("OK", "NOTE_NOT_FOUND", "TIER_DISABLED", "ETAG_STALE", "BUDGET_EXCEEDED")),
        leaves=Leaves(ItemKind.NOTE, ("version",)),
        refused=lambda w: (
            {"content": w.word},
            {"note_id": w.new, "content": w.word, "etag": "none"},
        ),
    ),
    "DeleteNote": Rpc(
        changes="item",
        request=lambda w: {"note_id": w.note},
        answer=note_service_pb2.DeleteNoteResponse(usage=USAGE),
        python=lambda _, session: session.delete_note(NOTE_ID),
        outcomes=Outcomes(("OK", "NOTE_NOT_FOUND"), somewhere=("ETAG_STALE",), above_public=("WRITE_LEVEL_MISMATCH",)),
        leaves=Leaves(ItemKind.NOTE, ("deletion",)),
        refused=lambda w: ({"note_id": "not-one"},),
    ),
    "SearchNotes": Rpc(
        changes="",
        request=lambda w: {"query": w.word},
        answer=note_service_pb2.SearchNotesResponse(
            results=[note_service_pb2.NoteResult(note=NOTE, score=1.5, snippet="night train", relevance=0.5)],
            usage=USAGE,
            classification=classification_pb2.CLASSIFICATION_PUBLIC,
            semantic=True,
            reranked=True,
        ),
        python=lambda _, session: session.search_notes("trains"),
        outcomes=Outcomes(("OK",)),
        refused=lambda w: ({"query": " \0 "},),
    ),
    "ListNotes": Rpc(
        changes="",
        request=lambda _: {},
        answer=note_service_pb2.ListNotesResponse(
            notes=[NOTE], usage=USAGE, classification=classification_pb2.CLASSIFICATION_PUBLIC
        ),
        python=lambda _, session: list(session.list_notes()),
        outcomes=Outcomes(("OK",), somewhere=("PAGE_TOKEN_INVALID",)),
        refused=lambda w: (
            {"page_token": "AAAA"},
            {"page_size": -1},
        ),
    ),
    "EditNotes": Rpc(
        changes="item",
        request=lambda w: {"edits": [{"add": {"content": w.text, "note_id": w.new}}]},
        answer=note_service_pb2.EditNotesResponse(
            notes=[NOTE], usage=USAGE, classification=classification_pb2.CLASSIFICATION_PUBLIC
        ),
        python=lambda _, session: session.edit_notes([AddNote("night trains"), AddNote("Vienna")]),
        outcomes=Outcomes(
            ("OK", "NOTE_EXISTS", "NOTE_NOT_FOUND", "TIER_DISABLED", "BUDGET_EXCEEDED", "FIELD_INVALID"),
            above_public=("WRITE_LEVEL_MISMATCH",),
        ),
        leaves=Leaves(
            ItemKind.NOTE,
            (
                "version",
                "deletion",
            ),
        ),
        refused=lambda w: (
            {"edits": []},
            {"edits": [{"add": {"content": w.word}}, {}]},
            {"edits": [{"delete": {}}]},
            {"edits": [{"add": {"content": w.word}}] * 101},
        ),
    ),
    "StorePassage": Rpc(
        changes="item",
        request=lambda w: {"content": w.text, "passage_id": w.new, **w.about},
        answer=passage_service_pb2.StorePassageResponse(passage=PASSAGE),
        python=lambda _, session: session.store_passage("booked"),
        outcomes=Outcomes(("OK", "PASSAGE_EXISTS", "FIELD_INVALID")),
        leaves=Leaves(ItemKind.PASSAGE, ("passage",)),
        refused=lambda w: (
            {"content": ""},
            {"content": w.word, "passage_id": "not-one"},
            {"content": w.word, "thread": f"{w.word} "},
            {"content": w.word, "author": "x" * 257},
            {"content": w.word, "expire_time": PAST},
        ),
    ),
    "ImportPassages": Rpc(
        changes="item",
        request=lambda w: {"passage": {"content": w.text, "passage_id": w.new, **w.about}},
        answer=passage_service_pb2.ImportPassagesResponse(stored_count=2, existing_count=1),
        python=lambda _, session: session.import_passages([NewPassage("booked", passage_id=PASSAGE_ID)]),
        outcomes=Outcomes(("OK", "PASSAGE_EXISTS", "FIELD_INVALID")),
        leaves=Leaves(ItemKind.PASSAGE, ("passage",)),
        refused=lambda w: (
            {"passage": {"content": ""}},
            {"passage": {"content": w.word, "tags": [" "]}},
            {"passage": {"content": w.word, "thread": f" {w.word}"}},
            {"passage": {"content": w.word, "expire_time": PAST}},
        ),
    ),
    "GetPassage": Rpc(
        changes="",
        request=lambda w: {"passage_id": w.passage},
        answer=passage_service_pb2.GetPassageResponse(passage=PASSAGE),
        python=lambda _, session: session.get_passage(PASSAGE_ID),
        outcomes=Outcomes(("OK", "PASSAGE_NOT_FOUND")),
    ),
    "ListPassages": Rpc(
        changes="",
        request=lambda w: {"tags": [w.word], "thread": w.word},
        answer=passage_service_pb2.ListPassagesResponse(
            passages=[PASSAGE], classification=classification_pb2.CLASSIFICATION_PUBLIC
        ),
        python=lambda _, session: list(session.list_passages()),
        outcomes=Outcomes(("OK",), somewhere=("PAGE_TOKEN_INVALID",)),
        refused=lambda w: (
            {"page_token": "AAAA"},
            {"thread": "a\nb"},
        ),
    ),
    "SearchPassages": Rpc(
        changes="",
        request=lambda w: {"query": w.word, "tags": [w.word], "thread": w.word},
        answer=passage_service_pb2.SearchPassagesResponse(
            results=[
                passage_service_pb2.PassageResult(
                    passage=PASSAGE, score=1.5, snippet="sleeper to Vienna", relevance=0.5
                )
            ],
            classification=classification_pb2.CLASSIFICATION_PUBLIC,
            semantic=True,
            reranked=True,
        ),
        python=lambda _, session: session.search_passages("booked"),
        outcomes=Outcomes(("OK",)),
        refused=lambda w: (
            {"query": "budget", "tags": [" "]},
            {"query": "budget", "max_results": -1},
        ),
    ),
    "DeletePassage": Rpc(
        changes="item",
        request=lambda w: {"passage_id": w.passage},
        answer=passage_service_pb2.DeletePassageResponse(),
        python=lambda _, session: session.delete_passage(PASSAGE_ID),
        outcomes=Outcomes(("OK", "PASSAGE_NOT_FOUND"), above_public=("WRITE_LEVEL_MISMATCH",)),
        leaves=Leaves(ItemKind.PASSAGE, ("deletion",)),
        refused=lambda w: ({"passage_id": "not-one"},),
    ),
    "DeletePassages": Rpc(
        changes="item",
        request=lambda w: {"thread": w.word},
        answer=passage_service_pb2.DeletePassagesResponse(deleted_count=3),
        python=lambda _, session: session.delete_passages(thread="trip"),
        outcomes=Outcomes(("OK",)),
        leaves=Leaves(ItemKind.PASSAGE, ("deletion",)),
        refused=lambda w: ({"thread": f"{w.word}\n"},),
    ),
    "RenderPrompt": Rpc(
        changes="",
        request=lambda _: {},
        answer=prompt_service_pb2.RenderPromptResponse(
            text=PROMPT,
            sections=[
                prompt_pb2.PromptSection(
                    kind=prompt_pb2.PROMPT_SECTION_KIND_BLOCK,
                    label="personality",
                    owner_agent_id="ada",
                    classification=classification_pb2.CLASSIFICATION_PUBLIC,
                ),
                prompt_pb2.PromptSection(
                    kind=prompt_pb2.PROMPT_SECTION_KIND_MEMORY,
                    note_ids=[NOTE_ID],
                    classification=classification_pb2.CLASSIFICATION_PUBLIC,
                ),
            ],
            usage=[USAGE, note_pb2.Usage(tier=note_pb2.TIER_USER, limit_chars=1375)],
            classification=classification_pb2.CLASSIFICATION_PUBLIC,
            etag="hash-of-the-prompt",
            left_out=[
                prompt_pb2.PromptSection(
                    kind=prompt_pb2.PROMPT_SECTION_KIND_BLOCK,
                    label="transcript",
                    owner_agent_id="ada",
                    classification=classification_pb2.CLASSIFICATION_PUBLIC,
                ),
            ],
        ),
        python=lambda _, session: session.render_prompt(),
        outcomes=Outcomes(("OK",)),
        refused=lambda w: (
            {"sections": [0]},
            {"sections": [2, 2]},
            {"if_none_match": "x" * 65},
        ),
    ),
    "ListVersions": Rpc(
        changes="",
        request=lambda w: {"kind": 1, "name": w.word, "owner_agent_id": w.word},
        answer=version_service_pb2.ListVersionsResponse(
            versions=[VERSION], classification=classification_pb2.CLASSIFICATION_PUBLIC
        ),
        python=lambda _, session: list(session.list_versions(ItemKind.MEMORY, "tea")),
        outcomes=Outcomes(
            ("OK", "MEMORY_NOT_FOUND", "FIELD_INVALID"),
            somewhere=("NOTE_NOT_FOUND", "BLOCK_NOT_FOUND", "PASSAGE_NOT_FOUND"),
        ),
        refused=lambda w: (
            {"kind": 0, "name": w.word},
            {"kind": 9, "name": w.word},
            {"kind": 1, "name": f" {w.word}"},
            {"kind": 2, "name": w.word},
            {"kind": 3, "name": "two words"},
        ),
    ),
    "RequestRelease": Rpc(
        changes="release",
        request=lambda w: w.released,
        answer=release_service_pb2.RequestReleaseResponse(release=RELEASE),
        python=lambda host, _: host.request_release(
            "ada",
            ItemKind.MEMORY,
            "tea",
            content_sha256=content_sha256("Assam"),
            source=(Classification.PUBLIC, Integrity.UNTRUSTED),
            target=(Classification.PUBLIC, Integrity.TRUSTED),
        ),
        outcomes=Outcomes(("OK",), ("FIELD_INVALID", "RELEASE_RIGHT_MISSING")),
        refused=lambda w: (
            {**w.released, "name": ""},
            {**w.released, "integrity": 0},
            {**w.released, "content_sha256": "AB"},
            {**w.released, "ttl": {"seconds": 0}},
        ),
    ),
    "ApproveRelease": Rpc(
        changes="release_approval",
        request=lambda w: {"release_id": w.release or w.new, "content_sha256": content_sha256(w.content)},
        answer=release_service_pb2.ApproveReleaseResponse(release=RELEASE),
        python=lambda host, _: host.approve_release(RELEASE_ID, content_sha256("Assam")),
        outcomes=Outcomes(
            ("OK",), ("RELEASE_OWN_REQUEST", "RELEASE_HASH_MISMATCH", "RELEASE_NOT_OPEN", "RELEASE_SOURCE_CHANGED")
        ),
        leaves=Leaves(None, ("version", "passage")),
        refused=lambda w: ({"release_id": w.new, "content_sha256": ""},),
    ),
    "RejectRelease": Rpc(
        changes="release",
        request=lambda w: {"release_id": w.release or w.new, "reason": w.word},
        answer=release_service_pb2.RejectReleaseResponse(release=RELEASE),
        python=lambda host, _: host.reject_release(RELEASE_ID),
        outcomes=Outcomes(("OK",)),
        refused=lambda w: ({"release_id": "not-one"},),
    ),
    "GetRelease": Rpc(
        changes="session",
        request=lambda w: {"release_id": w.release or w.new},
        answer=release_service_pb2.GetReleaseResponse(
            release=RELEASE,
            text=release_pb2.ReleasedText(name="tea", content="Assam, no sugar", tags=["taste"]),
            replaced=release_pb2.ReplacedItem(
                text=release_pb2.ReleasedText(name="tea", content="Assam"),
                classification=classification_pb2.CLASSIFICATION_PUBLIC,
            ),
        ),
        python=lambda host, _: host.get_release(RELEASE_ID),
        outcomes=Outcomes(("OK",), ("RELEASE_NOT_FOUND",)),
        refused=lambda w: ({"release_id": "not-one"},),
    ),
    "ListReleases": Rpc(
        changes="",
        request=lambda w: {"agent_id": w.word},
        answer=release_service_pb2.ListReleasesResponse(releases=[RELEASE]),
        python=lambda host, _: list(host.list_releases()),
        outcomes=Outcomes(("OK", "PAGE_TOKEN_INVALID")),
        refused=lambda w: ({"page_token": "AAAA"},),
    ),
    "ListAuditEvents": Rpc(
        changes="",
        request=lambda w: {"agent_id": w.word, "session_id": w.session},
        answer=audit_service_pb2.ListAuditEventsResponse(audit_events=[AUDIT_EVENT]),
        python=lambda host, _: list(host.list_audit_events()),
        outcomes=Outcomes(("OK", "FIELD_INVALID", "PAGE_TOKEN_INVALID")),
        refused=lambda w: (
            {"page_token": "AAAA"},
            {"session_id": "not-one"},
        ),
    ),
    "GetAuditCheckpoint": Rpc(
        changes="",
        request=lambda w: {"classification": w.level},
        answer=audit_service_pb2.GetAuditCheckpointResponse(
            checkpoint=audit_pb2.AuditCheckpoint(
                classification=classification_pb2.CLASSIFICATION_PUBLIC,
                seal_number=2,
                event_count=5,
                head_hash="ab",
                time=NOON,
            )
        ),
        python=lambda host, _: host.get_audit_checkpoint(Classification.PUBLIC),
        outcomes=Outcomes(("OK", "CEILING_EXCEEDED", "FIELD_INVALID")),
    ),
}
RPCS = _Rows(_ROWS)


def filled(
    host: Caller, level: int, *, word: str, content: str = "old", desk: Caller | None = None
) -> tuple[Caller, World]:
    """A session of a new agent, with all that requests name. *desk*, another host, asks for the release of a memory."""
    World(word).fill_agents(host)
    opened = host.open_session(agent_id=word, taint=level)
    session = host.session(opened)
    world = World(word, opened.session.session_id, level, content)
    world.fill(session, content)
    if desk is not None:
        world = replace(world, release=desk.request_release(**world.released).release.release_id)
    return session, world


def call(caller: Caller, rpc: str, fields: dict[str, Any], *, timeout: float) -> Any:
    """Call *rpc*; return its response or raise grpc.RpcError. ImportPassages gets a stream of one passage."""
    if rpc == "ImportPassages":
        return caller.import_passages(fields["passage"], timeout=timeout)
    return caller.call(rpc, timeout=timeout, **fields)


def observe(caller: Caller, rpc: str, fields: dict[str, Any]) -> Outcome:
    """The same; return all that is observed of it, whether it succeeds or fails."""
    return caller.observe_import(fields["passage"]) if rpc == "ImportPassages" else caller.observe(rpc, **fields)
