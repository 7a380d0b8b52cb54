"""Each mutant is noticed by the check it names; one that another guard covers, only when that guard is broken too."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.monitor.grants import differences
from tests.noninterference.mutants import MUTANTS, Mutant, applied
from tests.noninterference.probes import PROBES
from tests.noninterference.runner import Fault, Form, Judge, Leak, Program, Report
from tests.noninterference.values import Disagreement
from tests.noninterference.worlds import World, two_worlds, world

_MOST_PROGRAMS = 8
_BEHAVIOURAL = {"worlds", "model", "egress", "fault"}
_JUDGES: dict[str, Judge] = {"worlds": "worlds", "model": "model", "fault": "model"}
"""A mutant is shown to one judge only, so that it is known who noticed."""
Worlds = tuple[World, World]


@pytest.fixture(scope="module")
def sound(postgres: EmbeddedPostgres) -> Iterator[Worlds]:
    """Two worlds with nothing broken in their databases, for all mutants of Python and of queries."""
    with two_worlds(postgres) as worlds:
        yield worlds


def _program(worlds: Worlds, mutant: Mutant, number: int) -> None:
    """One short program. What shows in the difference of worlds must show without the model."""
    observer = 1 + number % 3
    form: Form = "purge" if number % 2 else "paired"
    report = Report(programs=number)
    judge = _JUDGES.get(mutant.killer, "both")
    seed = f"{mutant.name}.{number}"
    program = Program(worlds, seed, observer=observer, form=form, judge=judge, report=report, about=mutant.about)
    program.run()


def _killer(worlds: Worlds, mutant: Mutant, number: int) -> str:
    """What notices *mutant* in one program; empty when nothing does."""
    try:
        _program(worlds, mutant, number)
    except (Leak, Disagreement, Fault) as error:
        if getattr(error, "egress", 0):
            return "egress"
        return {Leak: "worlds", Disagreement: "model", Fault: "fault"}[type(error)]
    return ""


def _killers(worlds: Worlds, mutant: Mutant) -> Iterator[str]:
    numbers = range(2) if mutant.covered_by else range(mutant.seed, mutant.seed + _MOST_PROGRAMS)
    return (_killer(worlds, mutant, number) for number in numbers)


@pytest.mark.proof
@pytest.mark.parametrize(
    "mutant", [one for one in MUTANTS if one.killer in {*_BEHAVIOURAL, ""} and not one.damage], ids=str
)
def test_a_broken_guard_is_noticed(sound, mutant):
    """Python and named queries."""
    with applied(mutant):
        assert next(filter(None, _killers(sound, mutant)), "") == mutant.killer


@pytest.mark.proof
@pytest.mark.parametrize(
    "mutant", [one for one in MUTANTS if one.killer in {*_BEHAVIOURAL, ""} and one.damage], ids=str
)
def test_a_broken_schema_is_noticed(postgres, mutant):
    with two_worlds(postgres, damage=mutant.damage) as worlds, applied(mutant):
        assert next(filter(None, _killers(worlds, mutant)), "") == mutant.killer


@pytest.mark.proof
@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.killer == "grants"], ids=str)
def test_a_broken_grant_stops_the_server_from_starting(sound, mutant):
    """The damage is done in a transaction, and undone with it: roles are not a database's own."""
    with sound[0].database.as_admin() as admin:
        undamaged = differences(admin)
        assert all("vault.clock" in difference for difference in undamaged)  # these worlds have a clock of their own
        with admin.transaction(force_rollback=True):
            for statement in mutant.damage:
                admin.execute(statement)
            assert differences(admin) != undamaged


@pytest.mark.proof
@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.probe], ids=str)
def test_a_probe_notices(postgres, sound, mutant):
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(world(postgres, damage=mutant.damage)) if mutant.damage else sound[0]
        stack.enter_context(applied(mutant))
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            mutant.probe(target)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__name__)
def test_the_sound_system_passes_every_probe(sound, probe):
    probe(sound[0])
