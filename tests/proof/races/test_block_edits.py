"""Edits of one block at once: each is made of the text that stands, and none is lost."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import psycopg
import pytest

from muniment_server.domain.classification import Classification
from muniment_server.domain.items import ItemKind
from muniment_server.monitor.queries import SESSION_QUERIES
from tests.proof.races import ledgers
from tests.proof.races.crew import Crew, code_of, opened, runs_until
from tests.proof.races.mutants import spoiled
from tests.support.invariants import broken
from tests.support.services import Caller, Service

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
_WRITERS = 8
_WRITE_LOCK = "shelf.agent = (SELECT session.agent FROM session) FOR NO KEY UPDATE"
_LABEL = "log"


@pytest.fixture(autouse=True)
def sound(owner: psycopg.Connection[Any]) -> Iterator[None]:
    """After each race the ledgers hold, and effects are audit rows."""
    yield
    assert broken(owner) == []


@pytest.fixture
def appends(runs: int) -> int:
    """How many lines each writer appends."""
    return max(10, runs // 50)


@pytest.fixture
def sessions(arena: Service, agent: str) -> list[Caller]:
    """A session for each writer, in conversations of their own."""
    arena.agent(agent)
    return [opened(arena, agent, INTERNAL) for _ in range(_WRITERS)]


def _versions(owner: psycopg.Connection[Any], agent: str) -> list[ledgers.Kept]:
    """Of the block, at the writers' level."""
    every = ledgers.versions(owner, agent, kind=ItemKind.BLOCK)
    return [version for version in every if (version.name, version.level) == (_LABEL, INTERNAL)]


@pytest.mark.parametrize("one_session", [False, True], ids=["8 sessions", "one session"])
def test_every_appended_line_is_stored_once(
    one_session: bool, appends: int, sessions: list[Caller], crew: Crew, agent: str, owner: psycopg.Connection[Any]
) -> None:
    writers = sessions[:1] * _WRITERS if one_session else sessions
    sessions[0].update_block(label=_LABEL, content="first")
    crew.together(*(partial(_append, session, f"{i}", appends) for i, session in enumerate(writers)))

    lines = sessions[0].get_block(label=_LABEL).block.content.split("\n")
    expected = ["first", *(f"{i}.{n}" for i in range(_WRITERS) for n in range(appends))]
    versions = _versions(owner, agent)
    assert sorted(lines) == sorted(expected)
    assert sorted(version.revision for version in versions) == list(range(1, len(expected) + 1))
    print(f"appends, {one_session=}: {len(lines) - 1} lines, {len(versions)} versions, 0 lost")


def _append(session: Caller, who: str, times: int) -> None:
    for number in range(times):
        session.edit_block(label=_LABEL, append={"content": f"{who}.{number}"})


@pytest.mark.proof
def test_without_the_write_lock_lines_would_be_lost(sessions: list[Caller], crew: Crew) -> None:
    appends = 40
    sessions[0].update_block(label=_LABEL, content="first")
    with spoiled(SESSION_QUERIES, "lock_writes", _WRITE_LOCK, _WRITE_LOCK.removesuffix(" FOR NO KEY UPDATE")):
        crew.together(*(partial(_append, session, f"{i}", appends) for i, session in enumerate(sessions)))

    lost = _WRITERS * appends + 1 - len(sessions[0].get_block(label=_LABEL).block.content.split("\n"))
    assert lost > 0
    print(f"appends, mutant without the write lock: {lost} of {_WRITERS * appends} lines lost")


class Mix:
    """Edits beside saves and deletions of the block, over a lower version of it that stands still."""

    def __init__(self, crew: Crew, sessions: list[Caller], seed: str) -> None:
        self._crew = crew
        self._sessions = sessions
        self._seed = seed
        self.answers: Counter[str] = Counter()
        self.acknowledged: list[str] = []
        """What was written: for an edit the line, for a save the text."""

    def run(self, number: int) -> None:
        """One meeting."""
        self._crew.together(
            *(
                partial(self._write, session, f"{number}.{i}", random.Random(f"{self._seed} {number} {i}"))
                for i, session in enumerate(self._sessions)
            )
        )

    def _write(self, session: Caller, who: str, dice: random.Random) -> None:
        for number in range(5):
            text = f"{who}.{number}"
            act = dice.choices(("edit", "save", "delete"), weights=(6, 2, 1))[0]
            if act == "edit":
                code = code_of(session.edit_block, label=_LABEL, append={"content": f"edit {text}"})
            elif act == "save":
                code = code_of(session.update_block, label=_LABEL, content=f"save {text}")
            else:
                code = code_of(session.delete_block, label=_LABEL)
            self.answers[f"{act} {code}"] += 1
            if code == "OK" and act != "delete":
                self.acknowledged.append(f"{act} {text}")


def _misbuilt(versions: list[ledgers.Kept], lowest: str) -> list[str]:
    """Edits whose text is not that of the version before them, with their line; the lower one's, if they are first."""
    order = sorted(versions, key=lambda version: (version.item_id, version.revision))
    before = {
        (later.item_id, later.revision): earlier.content
        for earlier, later in itertools.pairwise(order)
        if earlier.item_id == later.item_id
    }
    return [
        version.content
        for version in order
        if version.method == "EditBlock"
        and version.content.rpartition("\n")[0] != before.get((version.item_id, version.revision), lowest)
    ]


def _mixed(arena: Service, crew: Crew, sessions: list[Caller], agent: str) -> Mix:
    opened(arena, agent, PUBLIC).update_block(label=_LABEL, content="lowest")
    return Mix(crew, sessions, agent)


def test_no_edit_is_made_of_a_text_that_was_overwritten(
    runs: int, arena: Service, crew: Crew, sessions: list[Caller], agent: str, owner: psycopg.Connection[Any]
) -> None:
    mix = _mixed(arena, crew, sessions, agent)
    for number in range(max(5, runs // 100)):
        mix.run(number)

    versions = _versions(owner, agent)
    written = [version.content.rpartition("\n")[2] for version in versions]
    assert sorted(written) == sorted(mix.acknowledged)
    assert _misbuilt(versions, "lowest") == []
    assert {"edit OK", "save OK", "delete OK"} <= set(mix.answers)
    assert set(mix.answers) <= {"edit OK", "save OK", "delete OK", "delete FAILED_PRECONDITION"}
    deleted = {version.item_id for version in versions}
    assert mix.answers["delete OK"] in (len(deleted), len(deleted) - 1)
    print(f"edits beside saves and deletions: {dict(mix.answers)}, {len(versions)} versions, 0 misbuilt")


@pytest.mark.proof
def test_without_the_write_lock_edits_would_overwrite_each_other(
    arena: Service, crew: Crew, sessions: list[Caller], agent: str, owner: psycopg.Connection[Any]
) -> None:
    mix = _mixed(arena, crew, sessions, agent)
    with spoiled(SESSION_QUERIES, "lock_writes", _WRITE_LOCK, _WRITE_LOCK.removesuffix(" FOR NO KEY UPDATE")):
        runs, found = runs_until(lambda: len(_misbuilt(_versions(owner, agent), "lowest")), mix.run, most=20, batch=1)

    assert found > 0
    print(f"edits, mutant without the write lock: {found} misbuilt in {runs} runs")
