"""Reads memories of mem0 in JSON, as its `get_all` returns them: an object with `results`, the list, or one a line.

A memory becomes a passage: mem0's memories have no keys. Its run is the thread; its actor, or else its role, is the
author; its categories are tags, and so is a list `tags` in its metadata. It expires at the beginning of its
`expiration_date`, in UTC. Other fields, and the relations of its graph memory, are omitted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime

from muniment import Classification
from muniment.cli.transfer.fields import Fields, loaded, omitted
from muniment.cli.transfer.items import PassageItem, Reading, Unreadable, derived_id, foreign, oldest_first
from muniment.cli.transfer.lines import first_line, numbered


def is_document(value: object) -> bool:
    """Whether a JSON value looks like what mem0 returns. An empty list alone could be anyone's."""
    match value:
        case {"results": list(results)}:
            return not results or is_document(results)
        case [first, *_]:
            return _is_memory(first)
    return False


def is_line(line: bytes) -> bool:
    """Whether a file that begins with *line* has a memory on each line."""
    try:
        return _is_memory(json.loads(line))
    except (ValueError, RecursionError):
        return False


def _is_memory(value: object) -> bool:
    match value:
        case {"id": str(), "memory": str()}:
            return True
    return False


def read(source: bytes, level: Classification, *, agent_id: str, from_agent: str | None) -> Reading:
    """The memories of one user, or of one agent of mem0's. Raises Unreadable."""
    found, around = _found(source)
    own = _of_one_owner(found, from_agent)
    items = foreign(_passages(own, level, agent_id))
    return Reading(items, omitted([*own, *around]))


def _found(source: bytes) -> tuple[list[Fields], list[Fields]]:
    """The memories, and the object around them if there is one."""
    if is_line(first_line(source)):
        return [Fields(where, loaded(where, line)) for where, line in numbered(source)], []
    document = loaded("the file", source)
    if document != [] and not is_document(document):
        raise Unreadable("", "is not a list of memories of mem0: each has `id` and `memory`")
    around = [Fields("the file", document)] if isinstance(document, dict) else []
    listed = around[0].list("results") if around else document
    return [Fields(f"memory {number}", each) for number, each in enumerate(listed, 1)], around


def _of_one_owner(found: Sequence[Fields], wanted: str | None) -> list[Fields]:
    owners = [_owner(each) for each in found]
    if wanted is None and len(set(owners)) > 1:
        raise Unreadable(
            "",
            f"the file has memories of {len(set(owners))} users or agents, and those of one are imported",
            "name it by its user_id or agent_id in the file: --from-agent ada",
        )
    own = [each for each, owner in zip(found, owners, strict=True) if wanted in (None, owner)]
    if found and not own:
        raise Unreadable("", "the file has no memories of that user or agent", "see user_id and agent_id in the file")
    return own


def _owner(memory: Fields) -> str:
    return memory.text("user_id", default="") or memory.text("agent_id", default="")


def _passages(memories: Sequence[Fields], level: Classification, agent_id: str) -> Iterator[PassageItem]:
    return oldest_first(_passage(memory, level, agent_id) for memory in memories)


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
    return tuple(dict.fromkeys((*memory.texts("categories"), *memory.inner("metadata").texts_if_all("tags"))))


def _expiry(memory: Fields) -> datetime | None:
    """The expiration date, which mem0's library has in the metadata and its platform beside it."""
    expiry = memory.time("expiration_date", zone=False)
    return expiry or memory.inner("metadata").time("expiration_date", zone=False)
