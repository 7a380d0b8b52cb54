"""Reads memories of mem0 in JSON, as its `get_all` returns them: an object with `results`, or the list alone.

A memory becomes a passage: mem0's memories have no keys. Its run is the thread; its actor, or else its role, is the
author; its categories are tags, and so is a list `tags` in its metadata. It expires at the beginning of its
`expiration_date`, in UTC. Other metadata is omitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from muniment import Classification
from muniment.cli.transfer.fields import Fields, loaded
from muniment.cli.transfer.items import PassageItem, Reading, Unreadable, derived_id, foreign


def is_document(value: object) -> bool:
    """Whether a JSON value looks like a list of memories."""
    match value:
        case {"results": list(results)}:
            return is_document(results)
        case [{"id": str(), "memory": str()}, *_]:
            return True
    return False


def read(source: bytes, level: Classification, *, agent_id: str, from_agent: str | None) -> Reading:
    """The memories of one user, or of one agent of mem0's. Raises Unreadable."""
    document = loaded("the file", source)
    if not is_document(document):
        raise Unreadable("", "is not a list of memories of mem0: each has `id` and `memory`")
    listed = document["results"] if isinstance(document, Mapping) else document
    found = [Fields(f"memory {number}", each) for number, each in enumerate(listed, 1)]
    own = _of_one_owner(found, from_agent)
    metadata = sum(map(_omitted, own))
    remarks = (f"memories whose metadata is omitted: {metadata}",) if metadata else ()
    return Reading(foreign(_passages(own, level, agent_id)), remarks)


def _of_one_owner(found: Sequence[Fields], wanted: str | None) -> list[Fields]:
    owners = [_owner(each) for each in found]
    if wanted is None and len(set(owners)) > 1:
        raise Unreadable(
            "",
            f"the file has memories of {len(set(owners))} users or agents, and those of one are imported",
            "name it by its user_id or agent_id in the file: --from-agent ada",
        )
    own = [each for each, owner in zip(found, owners, strict=True) if wanted in (None, owner)]
    if not own:
        raise Unreadable("", "the file has no memories of that user or agent", "see user_id and agent_id in the file")
    return own


def _owner(memory: Fields) -> str:
    return memory.text("user_id", default="") or memory.text("agent_id", default="")


def _passages(memories: Sequence[Fields], level: Classification, agent_id: str) -> Iterator[PassageItem]:
    """The passages, oldest first; those without a time come last."""
    read = [_passage(memory, level, agent_id) for memory in memories]
    return iter(sorted(read, key=lambda item: item.event_time.timestamp() if item.event_time else float("inf")))


def _passage(memory: Fields, level: Classification, agent_id: str) -> PassageItem:
    return PassageItem(
        memory.where,
        level,
        passage_id=derived_id(agent_id, "mem0", memory.text("id")),
        content=memory.text("memory"),
        tags=_tags(memory),
        thread=memory.text("run_id", default="") or None,
        author=memory.text("actor_id", default="") or memory.text("role", default="") or None,
        event_time=memory.time("created_at", zone=False),
        expire_time=_expiry(memory),
    )


def _tags(memory: Fields) -> tuple[str, ...]:
    """The categories, and the `tags` in the metadata if they are a list of texts."""
    return tuple(dict.fromkeys((*memory.texts("categories"), *_tags_in(_metadata(memory)))))


def _tags_in(metadata: Mapping[str, Any]) -> list[str]:
    match metadata.get("tags"):
        case [*tags] if all(isinstance(tag, str) and tag for tag in tags):
            return tags
    return []


def _metadata(memory: Fields) -> Mapping[str, Any]:
    return memory.json_object("metadata") if "metadata" in memory else {}


def _omitted(memory: Fields) -> bool:
    """Whether the metadata has more than what becomes tags."""
    metadata = _metadata(memory)
    return bool(metadata.keys() - ({"tags"} if _tags_in(metadata) else set()))


def _expiry(memory: Fields) -> datetime | None:
    """The expiration date, which mem0's library has in the metadata and its platform beside it."""
    expiry = memory.time("expiration_date", zone=False)
    if expiry is None and "metadata" in memory:
        expiry = Fields(memory.where, memory.json_object("metadata")).time("expiration_date", zone=False)
    return expiry
