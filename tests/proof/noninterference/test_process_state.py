"""A server keeps nothing in its modules and classes of what it served."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from muniment_server.embedded_postgres import EmbeddedPostgres
from tests.proof.noninterference.mutants import change
from tests.proof.noninterference.runner import Program, Report
from tests.proof.noninterference.worlds import World, changed, two_worlds

_HARMLESS = {
    "muniment_server.monitor.egress._plan",  # by type of message
    "muniment_server.monitor.validation._plan",  # by type of message
    "muniment_server.postgres.engine._others",  # all engines, which are loaded at the first log-in
    "muniment_server.postgres.prepared._numbers",  # a counter of statements
    "muniment_server.postgres.prepared._positional",  # by text of a query
    "muniment_server.postgres.rows._maker",  # by type of row
    "muniment_server.search.grams.word_pattern",  # which signs of Unicode are letters
}
_LOADED_AT_THE_FIRST_LOG_IN = ("muniment_server.engines.", "muniment_server.postgres.verifiers")
Worlds = tuple[World, World]


@pytest.fixture(scope="module")
def worlds(postgres: EmbeddedPostgres) -> Iterator[Worlds]:
    with two_worlds(postgres) as both:
        yield both


def _kept(worlds: Worlds, seed: str) -> list[str]:
    """What has changed in the modules of the first server after one program."""
    before = worlds[0].process.state()
    Program(worlds, seed, observer=4, form="purge", oracle="model", report=Report()).run()
    after = {
        name: state
        for name, state in worlds[0].process.state().items()
        if not name.startswith(_LOADED_AT_THE_FIRST_LOG_IN)
    }
    return sorted(name for name in after if before.get(name) != after[name] and name not in _HARMLESS)


def test_c70_modules_hold_after_a_program_what_they_held_before(worlds: Worlds):
    assert _kept(worlds, "kept") == []


def test_what_remembers_is_found(worlds: Worlds):
    name = "M78 the counts of a query's words are remembered without the taint"
    with changed(worlds[:1], partial(change, name=name)):
        assert _kept(worlds, name) == ["muniment_server.search.search._lexical"]
