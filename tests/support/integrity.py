"""What the tests of integrity share: labels of messages, a conversation, and items with all ways to read them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from google.protobuf.message_factory import GetMessageClass

from muniment.v1 import classification_pb2
from muniment_server.domain.classification import Integrity, Label
from muniment_server.transport.server import SERVICES
from tests.support.canaries import new_canary
from tests.support.services import Caller

UNTRUSTED, TRUSTED = Integrity
NOTE = str(uuid.UUID(int=1))
PASSAGE = str(uuid.UUID(int=2))
METHODS = {method.name: method for service in SERVICES for method in service.methods}


def label_of(message: Any, level: str = "taint") -> Label:
    """The label in a message of the contract."""
    name = classification_pb2.Classification.Name(getattr(message, level)).removeprefix("CLASSIFICATION_")
    return Label[f"{name}_TRUSTED" if message.integrity == TRUSTED else name]


def of_item(message: Any) -> Label:
    """The label of an item, an audit event or a checkpoint."""
    return label_of(message, "classification")


def fields_of(label: Label) -> dict[str, int]:
    """What a request says to ask for *label*."""
    return {"taint": int(label.level), "integrity": int(label.integrity)}


def open_session(host: Caller, **fields: Any) -> Any:
    """Open a session of alice, in the conversation `talk` unless *fields* name another."""
    return host.open_session(**{"agent_id": "alice", "conversation_id": "talk", **fields})


def taint_of(host: Caller, opened: Any) -> Label:
    """The label of a session's conversation, as its host sees it."""
    return label_of(host.get_session(session_id=opened.session.session_id).session)


def saved_label(host: Caller, opened: Any) -> Label:
    """The label of what a session writes."""
    return of_item(host.session(opened).save_memory(key=new_canary(), content="text").memory)


def write(session: Caller, content: str) -> None:
    """An item of each kind, each of the same name in all sessions."""
    session.save_memory(key="plan", content=content, tags=["tag"])
    session.add_note(note_id=NOTE, content=content)
    session.update_block(label="plan", content=content)
    session.store_passage(passage_id=PASSAGE, content=content, thread="t", tags=["tag"])


def _one(rpc: str, **fields: Any) -> Callable[[Caller], list[Any]]:
    """What a Get returns, or nothing."""

    def get(session: Caller) -> list[Any]:
        outcome = session.observe(rpc, **fields)
        if outcome.code.name == "NOT_FOUND":
            return []
        response = GetMessageClass(METHODS[rpc].output_type).FromString(outcome.response)
        return [getattr(response, rpc.removeprefix("Get").lower())]

    return get


READS: dict[str, Callable[[Caller], list[Any]]] = {
    "GetMemory": _one("GetMemory", key="plan"),
    "ListMemories": lambda session: list(session.list_memories().memories),
    "ListMemories by tag": lambda session: list(session.list_memories(tag="tag").memories),
    "SearchMemories": lambda session: [each.memory for each in session.search_memories(query="whale").results],
    "ListNotes": lambda session: list(session.list_notes(tier=1).notes),
    "SearchNotes": lambda session: [each.note for each in session.search_notes(query="whale").results],
    "GetBlock": _one("GetBlock", label="plan"),
    "ListBlocks": lambda session: [each for each in session.list_blocks().blocks if each.label == "plan"],
    "GetPassage": _one("GetPassage", passage_id=PASSAGE),
    "ListPassages": lambda session: list(session.list_passages().passages),
    "ListPassages by thread": lambda session: list(session.list_passages(thread="t").passages),
    "SearchPassages": lambda session: [each.passage for each in session.search_passages(query="whale").results],
}
"""Each way in which a session reads what `write` wrote."""


def seen(session: Caller) -> dict[str, list[tuple[str, Label]]]:
    """What each way returns: the contents of the items, with their labels."""
    return {rpc: [(item.content, of_item(item)) for item in read(session)] for rpc, read in READS.items()}


def all_are(*items: tuple[str, Label]) -> dict[str, list[tuple[str, Label]]]:
    """What `seen` returns if each way returns *items*."""
    return {rpc: list(items) for rpc in READS}


def rendered(session: Caller) -> set[str]:
    """The texts of `write` in the prompt."""
    return {word.strip(".") for word in session.render_prompt().text.split() if word.startswith("whale-")}
