"""What sessions do with memories."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.noninterference.programs.alphabets import CANARY, KEYS, SPELLINGS, TAGS, WORDS
from tests.noninterference.programs.operations import Call, Pen

_DO = {"save": 40, "get": 16, "list": 16, "search": 15, "delete": 13}


def about_memories(pen: Pen) -> Call:
    key = pen.rng.choice(KEYS)
    sent = pen.spelled(key, SPELLINGS)
    match pen.one_of(_DO):
        case "save":
            return "SaveMemory", {
                "key": sent,
                "content": content(pen),
                "tags": tags(pen),
                **expiry(pen),
                **pen.etag("Memory", key),
            }
        case "get":
            return "GetMemory", {"key": sent}
        case "list":
            tag = pen.rng.choice(TAGS) if pen.chance(0.5) else ""
            return "ListMemories", {"tag": tag, "page_size": page_size(pen)}
        case "search":
            return "SearchMemories", {**question(pen), **tag_filter(pen)}
    if pen.session:
        key = sent = pen.own(pen.session.agent.memories, KEYS)
    return "DeleteMemory", {"key": sent, **pen.etag("Memory", key)}


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
    return {"query": query, "max_results": pen.rng.choice((0, 0, 1, 2, 101))}


def tag_filter(pen: Pen) -> dict[str, Any]:
    return {"tags": pen.rng.sample(TAGS, pen.rng.choice((0, 0, 1, 2))), "tag_match": pen.rng.choice((0, 1, 2))}
