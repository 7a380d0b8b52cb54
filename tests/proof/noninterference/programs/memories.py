"""What sessions do with memories."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from tests.proof.noninterference.programs.alphabets import CANARY, KEYS, PREFIXES, SPELLINGS, TAGS, WORDS
from tests.proof.noninterference.programs.operations import Call, Pen

_DO = {"save": 34, "save many": 8, "get": 14, "list": 16, "search": 15, "delete": 11, "delete many": 6, "rename": 14}


def renames(level: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """With a label: to a free key, to one that is taken, and of what the label before has renamed."""
    made, kept = f"made {level}", f"kept {level}"
    yield "SaveMemories", {"memories": [{"key": key, "content": CANARY} for key in (made, kept)]}
    yield "RenameMemory", {"key": made, "new_key": f"moved {level}"}
    yield "RenameMemory", {"key": f"moved {level}", "new_key": kept}
    yield "RenameMemory", {"key": f"moved {level - 1}", "new_key": made}


def about_memories(pen: Pen) -> Call:
    key = pen.rng.choice(KEYS)
    sent = pen.spelled(key, SPELLINGS)
    match pen.one_of(_DO):
        case "save":
            return "SaveMemory", _memory(pen, key)
        case "save many":
            some = pen.rng.sample(KEYS, pen.rng.choice((1, 2, 3, 5))) + pen.rng.choices(KEYS, k=pen.rng.random() < 0.1)
            return "SaveMemories", {"memories": [_memory(pen, one) for one in some]}
        case "get":
            return "GetMemory", {"key": sent}
        case "list":
            tag = pen.rng.choice(TAGS) if pen.chance(0.5) else ""
            return "ListMemories", {"tag": tag, "page_size": page_size(pen), **_prefix(pen)}
        case "search":
            return "SearchMemories", {**question(pen), **tag_filter(pen), **_prefix(pen)}
        case "delete many":
            return "DeleteMemories", {"tag": pen.rng.choice(TAGS)}
        case "rename":
            return "RenameMemory", _renaming(pen)
    if pen.session:
        key = sent = pen.own(pen.session.agent.memories, KEYS)
    return "DeleteMemory", {"key": sent, **pen.etag("Memory", key)}


def _memory(pen: Pen, key: str) -> dict[str, Any]:
    """A memory to save."""
    return {
        "key": pen.spelled(key, SPELLINGS),
        "content": content(pen),
        "tags": tags(pen),
        **expiry(pen),
        **pen.etag("Memory", key),
    }


def _renaming(pen: Pen) -> dict[str, Any]:
    """Two keys: as often as not to one that is not visible, as what exists only above is not."""
    memories = pen.session.agent.memories if pen.session else {}
    key = pen.own(memories, KEYS)
    absent = [one for one in KEYS if not pen.model.seen(memories, one, pen.level)]
    new_key = pen.spelled(pen.rng.choice(absent if absent and pen.chance(0.6) else KEYS), SPELLINGS)
    return {"key": key, "new_key": new_key, **pen.etag("Memory", key)}


def _prefix(pen: Pen) -> dict[str, Any]:
    return {"key_prefix": pen.spelled(pen.rng.choice(PREFIXES), SPELLINGS)} if pen.chance(0.4) else {}


def content(pen: Pen) -> str:
    return f"{pen.words(WORDS, (1, 1, 2, 4))} {CANARY}"


def tags(pen: Pen) -> list[str]:
    return pen.rng.choices(TAGS, k=pen.rng.choice((0, 1, 1, 2)))


def expiry(pen: Pen) -> dict[str, Any]:
    if pen.chance(0.8):
        return {}
    return {"expire_time": pen.time + timedelta(seconds=pen.rng.choice((8, 60, 900)))}


def page_size(pen: Pen) -> int:
    return pen.rng.choice((0, 1, 1, 2, 3, 251))


def question(pen: Pen) -> dict[str, Any]:
    query = pen.words((*WORDS, "the", "user-name", "it's & | !", '"%_'), (1, 1, 2, 3))
    fit = {"min_relevance": 0.3} if pen.chance(0.1) else {}
    return {"query": query, "max_results": pen.rng.choice((0, 0, 1, 2, 101)), **fit}


def tag_filter(pen: Pen) -> dict[str, Any]:
    return {"tags": pen.rng.sample(TAGS, pen.rng.choice((0, 0, 1, 2))), "tag_match": pen.rng.choice((0, 1, 2))}
