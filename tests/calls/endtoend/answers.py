"""What the client returns, as the model has it; and what must hold of every list and every search."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from muniment import Block, Classification, Memory, Note, Passage, SessionClient, Tier
from tests.calls.endtoend.companions import Companion, Kept, SeenBlock
from tests.calls.endtoend.locomo import Fact, highest

PAGE = 50
FOUND_FLOOR = 0.99
"""Of what a session sees, the share that its own rarest words must bring among the top 10. Measured: 0.996 of the
passages, 0.999 of the notes; the rest are such as "Thanks!", which ten others match as well."""
ALL = bool(os.environ.get("MUNIMENT_ENDTOEND_ALL"))
"""Whether everything is got and searched for from every level: some 35,000 calls more."""

SeenNote = tuple[str, Tier, str, Classification]
_L = TypeVar("_L", bound="_Levelled")


class _Levelled(Protocol):
    @property
    def level(self) -> Classification: ...


def as_fact(agent_id: str, memory: Memory) -> Fact:
    """A memory, as the model has it."""
    (tag,) = memory.tags
    return Fact(agent_id, memory.key, memory.content, tag, memory.classification)


def as_kept(passage: Passage) -> Kept:
    """A passage, as the model has it."""
    return Kept(
        passage_id=passage.passage_id,
        content=passage.content,
        tags=passage.tags,
        thread=passage.thread or "",
        author=passage.author or "",
        event_time=passage.event_time,
        level=passage.classification,
    )


def as_seen_note(note: Note) -> SeenNote:
    """A note, as the model has it."""
    return note.note_id, note.tier, note.content, note.classification


def seen_notes(companion: Companion, tier: Tier, taint: Classification) -> list[SeenNote]:
    """What the model says of one tier, oldest first."""
    return [(note.note_id, tier, note.content, note.level) for note in companion.notes.seen(tier, taint)]


def as_seen_block(block: Block) -> SeenBlock:
    """A block, as the model has it."""
    return SeenBlock(block.owner_agent_id, block.label, block.content, block.shared, block.classification)


def everything(session: SessionClient, agent_id: str) -> dict[str, Any]:
    """All that a session sees, as the model has it."""
    return {
        "passages": [as_kept(passage) for passage in session.list_passages(page_size=250)],
        "memories": [as_fact(agent_id, memory) for memory in session.list_memories(page_size=250)],
        "notes": [as_seen_note(note) for tier in Tier for note in session.list_notes(tier, page_size=250)],
        "blocks": [as_seen_block(block) for block in session.list_blocks()],
        "prompt": session.render_prompt().text,
    }


def expected_everything(companion: Companion, taint: Classification) -> dict[str, Any]:
    """What the model says of all that a session sees."""
    return {
        "passages": list(companion.seen_passages(taint).values()),
        "memories": list(companion.memories.seen(companion.agent_id, taint).values()),
        "notes": [note for tier in Tier for note in seen_notes(companion, tier, taint)],
        "blocks": companion.seen_blocks(taint),
        "prompt": companion.prompt(taint),
    }


def all_pages(fetch: Callable[[str], Any]) -> list[Any]:
    """All pages that *fetch* gives, which takes the token of one."""
    pages = [fetch("")]
    while pages[-1].next_page_token:
        pages.append(fetch(pages[-1].next_page_token))
    return pages


def assert_joined(pages: Iterable[Any]) -> None:
    """The level of each page is the highest in it."""
    for page in pages:
        assert page.classification == highest(item.classification for item in page)


def assert_ranked(found: Any, names: Sequence[str], levels: Iterable[Classification]) -> None:
    """Ten at most, each once, the best first; the level of the answer is the highest in it."""
    assert len(set(names)) == len(names) <= 10
    assert [result.score for result in found] == sorted((result.score for result in found), reverse=True)
    assert found.classification == highest(levels)


def searched_from(versions: Sequence[_L], taint: Classification) -> Iterator[_L]:
    """What to look for: every third version from its own level, and from another one, too."""
    for number, version in enumerate(versions):
        if ALL or (number % 3 == 0 and taint in {version.level, 1 + number // 3 % 4}):
            yield version
