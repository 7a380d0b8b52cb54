"""RaiseTaint against SaveMemory: C41 of the threats, law 4; and against writers of every other kind.

Either half of the label rises: the level, or the integrity of a conversation that was trusted.

Over gRPC: the barrier lets the calls into the server within a tenth of a millisecond of each other, and a random
stagger of the raise sweeps the writers' statements; the mutants below are found within tens of runs.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

import psycopg
import pytest

from muniment_server.domain.classification import Label
from muniment_server.domain.items import ItemKind
from muniment_server.monitor.queries import SESSION_QUERIES
from tests.proof.races import ledgers
from tests.proof.races.commits import Commits
from tests.proof.races.crew import Crew, code_of, label_of, opened, runs_until, taint_of
from tests.proof.races.mutants import spoiled
from tests.support.invariants import broken
from tests.support.services import Caller, Service

LEVELS = (Label.PUBLIC, Label.INTERNAL, Label.CONFIDENTIAL, Label.RESTRICTED)
INTEGRITY = (Label.INTERNAL_TRUSTED, Label.INTERNAL)
_BOTH = [pytest.param(LEVELS, id="level"), pytest.param(INTEGRITY, id="integrity")]
"""How a conversation rises, one run after the other; then another one begins."""
_SAVES = 2
_MORE_MEETINGS = 60
"""At most, until an import was not overtaken: on a busy machine few of them are."""


class Race:
    """Three writers in two sessions of one conversation, and a host that raises it."""

    def __init__(self, arena: Service, crew: Crew, agent: str, rise: tuple[Label, ...]) -> None:
        self._arena = arena
        self._crew = crew
        self._rise = rise
        self._agent = arena.agent(agent)
        self._dice = random.Random(agent)
        self._sessions: list[Caller] = []
        self.acknowledged: set[tuple[Label, str, str]] = set()
        self.below_the_raise: list[str] = []

    def run(self, number: int) -> None:
        """One meeting."""
        at = number % (len(self._rise) - 1)
        if at == 0:
            self._sessions = [opened(self._arena, self._agent, self._rise[0], f"{number}") for _ in range(2)]
        one, other = self._sessions
        writers = [partial(self._write, session, f"{number}.{i}") for i, session in enumerate((one, other, one))]
        self._crew.together(*writers, partial(self._raise, other, self._rise[at + 1], f"{number}.late"))

    def _write(self, session: Caller, key: str) -> None:
        for i in range(_SAVES):
            self._save(session, key, f"{key} {i}")

    def _raise(self, session: Caller, label: Label, key: str) -> None:
        """What is saved after OK has the new label, though every worker remembers the token with the old one."""
        self._crew.stagger(self._dice)
        self._arena.host().raise_taint(session_id=session.session_id, **taint_of(label))
        if self._save(session, key, "late") is not label:
            self.below_the_raise.append(key)

    def _save(self, session: Caller, key: str, content: str) -> Label:
        label = label_of(session.save_memory(key=key, content=content).memory)
        self.acknowledged.add((label, key, content))
        return label


@pytest.fixture
def race(arena: Service, crew: Crew, agent: str, rise: tuple[Label, ...]) -> Race:
    return Race(arena, crew, agent, rise)


@pytest.mark.parametrize("rise", _BOTH)
def test_nothing_is_committed_with_the_old_label_after_a_raise(
    runs: int, race: Race, rise: tuple[Label, ...], agent: str, owner: psycopg.Connection[Any]
) -> None:
    """Every acknowledged save is kept with the label it was acknowledged with, and nothing else is kept."""
    for number in range(runs):
        race.run(number)

    assert Commits(owner, agent).below_a_rise() == 0
    assert race.below_the_raise == []
    kept = [(version.label, version.name, version.content) for version in ledgers.versions(owner, agent)]
    assert len(kept) == len(set(kept))
    assert set(kept) == race.acknowledged
    assert set(Commits(owner, agent).taints().values()) <= {int(label.level) for label in rise[1:]}
    assert broken(owner) == []
    at_each = {label.name: sum(version[0] is label for version in kept) for label in rise}
    print(f"raise against write: {runs} runs, {len(kept)} saves {at_each}, 0 late")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("rise", "lock"),
    [(LEVELS, "FOR KEY SHARE"), (LEVELS, ""), (INTEGRITY, "")],
    ids=["key share", "no lock", "no lock, integrity"],
)
def test_a_weaker_session_lock_would_show(lock: str, race: Race, agent: str, owner: psycopg.Connection[Any]) -> None:
    with spoiled(SESSION_QUERIES, "save_item", "FOR NO KEY UPDATE", lock):
        runs, late = runs_until(Commits(owner, agent).below_a_rise, race.run, most=900)

    assert late > 0
    print(f"raise against write, mutant {lock or 'without lock'}: {late} late in {runs} runs")


class OtherKinds:
    """Writers of notes, blocks and passages in two sessions of one conversation, and a host that raises a third.

    What is written late is in a session of its own.
    """

    def __init__(self, arena: Service, crew: Crew, agent: str, rise: tuple[Label, ...]) -> None:
        self._arena = arena
        self._crew = crew
        self._rise = rise
        self._agent = arena.agent(agent)
        arena.host().update_agent(agent_id=agent, memory_settings={"memory_char_limit": 100_000})
        self._dice = random.Random(agent)
        self._sessions: list[Caller] = []
        self.codes: Counter[str] = Counter()
        self.acknowledged: set[tuple[ItemKind, Label, str]] = set()
        self.below_the_raise: list[str] = []

    def run(self, number: int) -> None:
        """One meeting."""
        at = number % (len(self._rise) - 1)
        if at == 0:
            self._sessions = [opened(self._arena, self._agent, self._rise[0], f"{number}") for _ in range(3)]
        one, other, late = self._sessions
        one.update_block(label="log", content=f"{number}")
        self._crew.together(
            partial(self._notes, one, f"{number}"),
            partial(self._block, other, f"{number}"),
            partial(self._store, one),
            partial(self._import, other, f"{number}"),
            partial(self._raise, late, self._rise[at + 1]),
        )

    def _notes(self, session: Caller, text: str) -> None:
        edits = [{"add": {"content": f"{text} {i}"}} for i in range(2)]
        self._written(ItemKind.NOTE, session.edit_notes(edits=edits).notes, "note_id")

    def _block(self, session: Caller, text: str) -> None:
        for i in range(2):
            block = session.edit_block(label="log", append={"content": f"{text} {i}"}).block
            self.acknowledged.add((ItemKind.BLOCK, label_of(block), block.content))

    def _store(self, session: Caller) -> None:
        self._written(ItemKind.PASSAGE, [session.store_passage(content="stored").passage], "passage_id")

    def _import(self, session: Caller, text: str) -> None:
        """Two batches: an id that is there twice begins another one."""
        ids = [str(uuid.UUID(int=self._dice.getrandbits(128), version=4)) for _ in range(3)]
        passages = [{"passage_id": each, "content": text} for each in (*ids, ids[0])]
        self.codes[f"import {code_of(partial(session.import_passages, *passages))}"] += 1

    def _written(self, kind: ItemKind, items: Iterable[Any], name: str) -> None:
        for item in items:
            self.acknowledged.add((kind, label_of(item), getattr(item, name)))

    def _raise(self, session: Caller, label: Label) -> None:
        """What is written after OK has the new label."""
        self._crew.stagger(self._dice)
        self._arena.host().raise_taint(session_id=session.session_id, **taint_of(label))
        late = [
            session.add_note(content=f"{self._dice.random()}").note,
            session.edit_block(label="log", append={"content": "late"}).block,
            session.store_passage(content="late").passage,
        ]
        session.import_passages({"content": "late"})
        self.below_the_raise += [repr(item) for item in late if label_of(item) is not label]


@pytest.fixture
def others(arena: Service, crew: Crew, agent: str, rise: tuple[Label, ...]) -> OtherKinds:
    return OtherKinds(arena, crew, agent, rise)


@pytest.mark.parametrize("rise", _BOTH)
def test_of_no_kind_anything_is_committed_with_the_old_label_after_a_raise(
    runs: int, others: OtherKinds, rise: tuple[Label, ...], agent: str, owner: psycopg.Connection[Any]
) -> None:
    """A stream that began before is stored with the old label, or fails with TAINT_CHANGED."""
    meetings = max(6, runs // 10)
    for number in range(meetings + _MORE_MEETINGS):
        if number >= meetings and others.codes["import OK"]:
            break
        others.run(number)

    assert Commits(owner, agent).below_a_rise() == 0
    assert others.below_the_raise == []
    assert set(others.codes) <= {"import OK", "import ABORTED"}
    assert others.codes["import OK"] > 0
    notes, blocks, passages = (
        ledgers.versions(owner, agent, kind=kind) for kind in (ItemKind.NOTE, ItemKind.BLOCK, ItemKind.PASSAGE)
    )
    kept = {
        *((ItemKind.NOTE, note.label, note.name) for note in notes),
        *((ItemKind.BLOCK, block.label, block.content) for block in blocks),
        *((ItemKind.PASSAGE, passage.label, passage.name) for passage in passages),
    }
    assert others.acknowledged <= kept
    assert broken(owner) == []
    print(
        f"raise against other kinds: {meetings} runs, {len(notes)} notes, {len(blocks)} versions of blocks, "
        f"{len(passages)} passages, {dict(others.codes)}, 0 late"
    )


@pytest.mark.proof
@pytest.mark.parametrize("rise", [LEVELS])
@pytest.mark.parametrize("query", ["lock_writes", "store_passages"])
def test_a_weaker_session_lock_of_other_kinds_would_show(
    query: str, others: OtherKinds, agent: str, owner: psycopg.Connection[Any]
) -> None:
    """Notes and blocks are kept out twice: by the write lock, and by the save itself."""
    with (
        spoiled(SESSION_QUERIES, query, "FOR NO KEY UPDATE", ""),
        spoiled(SESSION_QUERIES, "save_item", "FOR NO KEY UPDATE", ""),
    ):
        runs, late = runs_until(Commits(owner, agent).below_a_rise, others.run, most=600)

    assert late > 0
    print(f"raise against other kinds, mutant of {query} without lock: {late} late in {runs} runs")
