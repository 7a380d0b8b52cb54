"""Two agents for each conversation, one for each speaker: what each keeps, at which level, and what is seen of it.

An agent keeps every turn of both people as a passage, the observations of its own speaker as memories, those of both
as notes (its speaker is its user), and the speaker's events in a block. The second reads a block of the first.

Nothing is drawn by lot: levels and ids follow from the file, so that the model can foretell every answer.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from muniment import Classification, NewPassage, Tier, Usage
from tests.calls.endtoend import locomo
from tests.calls.endtoend.conversations import Conversation, Turn
from tests.calls.endtoend.locomo import Vocabulary, level_beside, level_of
from tests.calls.endtoend.noteset import SEPARATOR, NoteSet

FIRST_BLOCKS = ("current_state", "personality", "relationships")
EVENTS = "current_state"
SHARED = "common_ground"
_SHARES_AN_ID = 5
"""Every fifth turn takes the id of the one before it, at another level: one shadows the other."""
_RULER = "═" * 48
_HEADINGS = {Tier.MEMORY: "MEMORY (agent notes)", Tier.USER: "USER PROFILE (who the user is)"}


@dataclass(frozen=True, slots=True)
class Kept:
    """One version of one passage."""

    passage_id: str
    content: str
    tags: tuple[str, ...]
    thread: str
    author: str
    event_time: datetime
    level: Classification

    @property
    def new(self) -> NewPassage:
        """As it is imported."""
        return NewPassage(
            self.content,
            tags=self.tags,
            thread=self.thread,
            author=self.author,
            event_time=self.event_time,
            passage_id=self.passage_id,
        )


@dataclass(frozen=True, slots=True)
class Wish:
    """A note that an agent would like to take."""

    note_id: str
    tier: Tier
    content: str
    level: Classification


@dataclass(frozen=True, slots=True)
class SeenBlock:
    """One block as a session sees it."""

    owner_agent_id: str
    label: str
    content: str
    shared: bool
    level: Classification


class Companion:
    """One agent: what it stores, and what its sessions see."""

    def __init__(self, talk: Conversation, person: str, shares: Companion | None) -> None:
        self.agent_id = f"{person}.{talk.name}"
        self.talk = talk
        self.person = person
        self.shares = shares
        """The agent whose block it reads."""
        self.passages = list(_passages(self.agent_id, talk.turns))
        self.vocabulary = Vocabulary(passage.content for passage in self.passages)
        self.memories = locomo.Model(list(_facts(talk, person)))
        self.wishes = list(_wishes(self.agent_id, talk, person))
        self.notes = NoteSet()
        self.blocks: dict[str, dict[Classification, str]] = {
            label: {Classification.PUBLIC: ""} for label in FIRST_BLOCKS
        }

    def seen_passages(self, taint: Classification) -> Mapping[str, Kept]:
        """Of each passage the highest version at or below *taint*, by id; the newest event first."""
        below = sorted((kept for kept in self.passages if kept.level <= taint), key=lambda kept: kept.level)
        highest = {kept.passage_id: kept for kept in below}
        return dict(sorted(highest.items(), key=lambda item: item[1].event_time, reverse=True))

    def seen_blocks(self, taint: Classification) -> list[SeenBlock]:
        """The own blocks and the one that is shared with it, by label."""
        seen = list(self._own_blocks(self.blocks, taint, shared=False))
        if self.shares is not None:
            shared = {SHARED: self.shares.blocks[SHARED]}
            seen += self.shares._own_blocks(shared, taint, shared=True)
        return sorted(seen, key=lambda block: block.label)

    def _own_blocks(
        self, blocks: Mapping[str, Mapping[Classification, str]], taint: Classification, *, shared: bool
    ) -> Iterator[SeenBlock]:
        for label, versions in blocks.items():
            below = [level for level in versions if level <= taint]
            if below:
                yield SeenBlock(self.agent_id, label, versions[max(below)], shared, max(below))

    def write_block(self, label: str, content: str, level: Classification) -> None:
        """Replace the version of *level*."""
        self.blocks.setdefault(label, {})[level] = content

    def append_to_block(self, label: str, line: str, level: Classification) -> None:
        """Add a line to what a session at *level* sees of an own block."""
        (seen,) = self._own_blocks({label: self.blocks[label]}, level, shared=False)
        between = "\n" if seen.content and not seen.content.endswith("\n") else ""
        self.write_block(label, seen.content + between + line, level)

    def prompt(self, taint: Classification, *, omit_usage: bool = False) -> str:
        """The text of a session's prompt. Nothing in these people's words looks like structure, so none is escaped."""
        blocks = ["\n".join(filter(None, (f"### {seen.label}", seen.content))) for seen in self.seen_blocks(taint)]
        tiers = [self._section(tier, taint, omit_usage) for tier in Tier if self.notes.seen(tier, taint)]
        return "\n\n".join(blocks + tiers)

    def _section(self, tier: Tier, taint: Classification, omit_usage: bool) -> str:
        usage = "" if omit_usage else f" {_budget(self.notes.usage(tier, taint))}"
        notes = SEPARATOR.join(note.content for note in self.notes.seen(tier, taint))
        return f"{_RULER}\n{_HEADINGS[tier]}{usage}\n{_RULER}\n{notes}"


def of_conversation(talk: Conversation) -> tuple[Companion, Companion]:
    """The agents of both people. The second reads a block of the first."""
    first = Companion(talk, talk.people[0], None)
    return first, Companion(talk, talk.people[1], first)


def _passages(agent_id: str, turns: Iterable[Turn]) -> Iterator[Kept]:
    last_id, last_level = "", Classification.PUBLIC
    for number, turn in enumerate(turns):
        name = f"{agent_id} {turn.turn_id}"
        if number % _SHARES_AN_ID == _SHARES_AN_ID - 1:
            last_level = level_beside(last_level, name)
        else:
            last_id, last_level = str(uuid.uuid5(uuid.NAMESPACE_URL, name)), level_of(name)
        tags = ("photo",) if turn.photo else ()
        yield Kept(last_id, turn.text, tags, f"session {turn.session}", turn.speaker, turn.time, last_level)


def _facts(talk: Conversation, person: str) -> Iterator[locomo.Fact]:
    rows = (
        {"conversation": talk.name, "session": f"session {seen.session}", "person": person, "fact": seen.text}
        for seen in talk.observations
        if seen.person == person
    )
    return locomo.facts_of(rows)


def _wishes(agent_id: str, talk: Conversation, person: str) -> Iterator[Wish]:
    for number, seen in enumerate(talk.observations):
        name = f"{agent_id} observation {number}"
        tier = Tier.USER if seen.person == person else Tier.MEMORY
        yield Wish(str(uuid.uuid5(uuid.NAMESPACE_URL, name)), tier, seen.text, level_of(name))


def _budget(usage: Usage) -> str:
    return f"[{usage.percent}% — {usage.used_chars:,}/{usage.limit_chars:,} chars]"
