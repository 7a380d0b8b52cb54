"""Stores what agents remember, through the Python client and in their models at the same time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from muniment import (
    AddNote,
    BudgetExceeded,
    Classification,
    HostClient,
    ImportCounts,
    NoteEdit,
    Overrun,
    SessionClient,
    Tier,
    UpdateNote,
    Usage,
)
from tests.calls.endtoend import companions
from tests.calls.endtoend.companions import EVENTS, SHARED, Companion, Wish
from tests.calls.endtoend.conversations import Conversation
from tests.calls.endtoend.locomo import level_of
from tests.calls.endtoend.noteset import SEPARATOR, room_for

_CALLERS = 4
_IS_CORRECTED = 4
"""Every fourth version of a note is cut short by the session of the next level."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model and the server said to edits that are to fulfill a wish."""

    wish: Wish
    edits: tuple[NoteEdit, ...]
    validate_only: bool
    expected: Usage | Overrun
    actual: Usage | Overrun


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent with everything stored, and a session at every level."""

    companion: Companion
    sessions: Mapping[Classification, SessionClient]
    answers: list[Answer] = field(default_factory=list)
    imports: dict[Classification, ImportCounts] = field(default_factory=dict)

    @property
    def in_step(self) -> bool:
        """Whether the model has said what the server said. Where not, there is no going on, and a test will say so."""
        return all(answer.expected == answer.actual for answer in self.answers[-2:])


@dataclass(frozen=True, slots=True)
class World:
    """All of them, and the host."""

    host: HostClient
    agents: list[Agent]
    begun: float
    """On the monotonic clock, before the server started."""
    seconds_to_load: float
    counted: Counter[str]
    """What was done and found, for the summary."""

    def look(self, how: Callable[[Companion, Classification, SessionClient], Mapping[str, int]]) -> Counter[str]:
        """Look through every session, several at once; return the sums of what *how* counted."""
        total = Counter[str]()
        with ThreadPoolExecutor(_CALLERS) as pool:
            for counted in pool.map(lambda at: how(*at), self._sessions()):
                total.update(counted)
        self.counted.update(total)
        return total

    def _sessions(self) -> Iterator[tuple[Companion, Classification, SessionClient]]:
        for agent in self.agents:
            for taint, session in agent.sessions.items():
                yield agent.companion, taint, session


def load(host: HostClient, talks: Iterable[Conversation], begun: float) -> World:
    """Create the agents of all conversations, and store everything."""
    pairs = [companions.of_conversation(talk) for talk in talks]
    with ThreadPoolExecutor(_CALLERS) as pool:
        agents = list(pool.map(lambda companion: _load(host, companion), (one for pair in pairs for one in pair)))
        list(pool.map(lambda first, second: _share(host, first, second), agents[::2], agents[1::2]))
    return World(host, agents, begun, time.monotonic() - begun, Counter(_count(agents)))


def _load(host: HostClient, companion: Companion) -> Agent:
    host.create_agent(companion.agent_id, display_name=f"{companion.person}'s companion")
    agent = Agent(companion, {taint: host.open_session(companion.agent_id, taint) for taint in Classification})
    _import(agent)
    for fact in companion.memories.facts:
        agent.sessions[fact.level].save_memory(fact.key, fact.content, tags=[fact.tag])
    _take_notes(host, agent)
    _correct_notes(agent)
    _note_events(agent)
    return agent


def _import(agent: Agent) -> None:
    """The highest level first: it would see a lower passage of the same id, and take no other of that id."""
    for taint in reversed(Classification):
        own = (kept.new for kept in agent.companion.passages if kept.level == taint)
        agent.imports[taint] = agent.sessions[taint].import_passages(own)


def _take_notes(host: HostClient, agent: Agent) -> None:
    """Each wish in its turn, as long as there is room.

    When there is none, the agent whose block is shared gets a larger budget. The other makes room, once at each level
    of each tier, and then goes without.
    """
    made_room = set[tuple[Classification, Tier]]()
    for wish in agent.companion.wishes:
        note = AddNote(wish.content, wish.note_id)
        refusal = _edit(agent, wish, [note])
        if not agent.in_step:
            return
        if isinstance(refusal, Usage):
            continue
        if agent.companion.shares is None:
            _raise_limit(host, agent.companion, wish.tier)
            _edit(agent, wish, [note])
        elif (wish.level, wish.tier) not in made_room:
            made_room.add((wish.level, wish.tier))
            _edit(agent, wish, room_for(note, refusal))


def _raise_limit(host: HostClient, companion: Companion, tier: Tier) -> None:
    """So that all that is wished for fits exactly."""
    wished = (wish.content for wish in companion.wishes if wish.tier == tier)
    companion.notes.limits[tier] = len(SEPARATOR.join(wished))
    host.update_agent(companion.agent_id, memory_settings=companion.notes.settings)


def _correct_notes(agent: Agent) -> None:
    for tier in Tier:
        for version in agent.companion.notes.versions(tier)[::_IS_CORRECTED]:
            if agent.in_step and version.level < Classification.RESTRICTED:
                shorter = " ".join(version.content.split()[:4]) + " …"
                wish = Wish(version.note_id, tier, shorter, Classification(version.level + 1))
                _edit(agent, wish, [UpdateNote(version.note_id, shorter)])


def _edit(agent: Agent, wish: Wish, edits: list[NoteEdit]) -> Usage | Overrun:
    """Make the edits, in the model and through the client. Several are only checked first."""
    expected = agent.companion.notes.edit(wish.tier, wish.level, edits)
    session = agent.sessions[wish.level]
    if len(edits) > 1:
        checked = _usage_after(session, wish.tier, edits, validate_only=True)
        agent.answers.append(Answer(wish, tuple(edits), True, expected, checked))
    actual = _usage_after(session, wish.tier, edits)
    agent.answers.append(Answer(wish, tuple(edits), False, expected, actual))
    return actual


def _usage_after(
    session: SessionClient, tier: Tier, edits: list[NoteEdit], *, validate_only: bool = False
) -> Usage | Overrun:
    try:
        match edits:
            case [AddNote(content, note_id)]:
                return session.add_note(content, tier=tier, note_id=note_id).usage
            case [UpdateNote(note_id, content)]:
                return session.update_note(note_id, content, tier=tier).usage
        return session.edit_notes(edits, tier=tier, validate_only=validate_only).usage
    except BudgetExceeded as refusal:
        return _overrun_of(refusal)


def _overrun_of(refusal: BudgetExceeded) -> Overrun:
    assert refusal.details.overrun is not None
    return refusal.details.overrun


def _note_events(agent: Agent) -> None:
    """The latest events of the speaker, as far as each level knows them."""
    companion = agent.companion
    for number, events in enumerate(companion.talk.events[companion.person]):
        if events:
            level = level_of(f"{companion.agent_id} events {number}")
            companion.write_block(EVENTS, events, level)
            agent.sessions[level].update_block(EVENTS, events)


def _share(host: HostClient, first: Agent, second: Agent) -> None:
    """A block of the first, which the second reads: one line for each session."""
    owner, summaries = first.companion, first.companion.talk.summaries
    host.create_shared_block(owner.agent_id, SHARED, summaries[0])
    owner.write_block(SHARED, summaries[0], Classification.PUBLIC)
    host.attach_block(owner.agent_id, SHARED, second.companion.agent_id)
    for summary in summaries[1:]:
        level = level_of(summary)
        owner.append_to_block(SHARED, summary, level)
        first.sessions[level].append_to_block(SHARED, summary)


def _count(agents: list[Agent]) -> dict[str, int]:
    counted = Counter[str]()
    for one in agents:
        counted["passages imported"] += len(one.companion.passages)
        counted["memories saved"] += len(one.companion.memories.facts)
        counted["edits of notes"] += len(one.answers)
        counted["of them refused"] += sum(isinstance(answer.actual, Overrun) for answer in one.answers)
        counted["of them several at once"] += sum(
            len(answer.edits) > 1 and not answer.validate_only for answer in one.answers
        )
    return counted
