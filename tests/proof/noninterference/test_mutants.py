"""Each mutant is noticed by the check it names; one that another guard covers, only when that guard is broken too."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain

import pytest

from muniment_server.embedded_postgres import EmbeddedPostgres
from muniment_server.monitor.grants import differences
from muniment_server.monitor.queries import HOST_QUERIES, SESSION_QUERIES
from tests.proof.noninterference.mutants import MUTANTS, Mutant, applied, change
from tests.proof.noninterference.mutants.level_views import STATISTICS_ABOVE
from tests.proof.noninterference.mutants.releases import RELEASES
from tests.proof.noninterference.mutants.scheme import Place
from tests.proof.noninterference.probes import PROBES
from tests.proof.noninterference.runner import Fault, Form, Leak, Oracle, Program, Report
from tests.proof.noninterference.scores import scores_are_those_of_what_is_seen
from tests.proof.noninterference.values import LABELS, Disagreement
from tests.proof.noninterference.worlds import World, changed, two_worlds, world
from tests.support.each import for_each
from tests.support.named_queries import filled, literals_of

_NEAR = 8
_MAX_PROGRAMS = 96
"""A mutant that so many programs do not notice survives. It is first shown to those near its seed."""
_BEHAVIORAL = {"worlds", "alone", "beside", "model", "egress", "fault"}
_ORACLES: dict[str, Oracle] = {
    "worlds": "worlds",
    "alone": "worlds",
    "beside": "worlds",
    "model": "model",
    "fault": "model",
}
"""A mutant is shown to one oracle only, so that it is known who noticed."""
Worlds = tuple[World, World]


@pytest.fixture(scope="module")
def sound(postgres: EmbeddedPostgres) -> Iterator[Worlds]:
    """Two worlds with nothing broken in their databases, for all mutants of Python and of queries."""
    with two_worlds(postgres) as worlds:
        yield worlds


@pytest.fixture(scope="module")
def here(postgres: EmbeddedPostgres) -> Iterator[World]:
    """A world that this process serves, for probes: their mutants are patches of this process."""
    with world(postgres) as only:
        yield only


@pytest.fixture(scope="module")
def held(postgres: EmbeddedPostgres) -> Iterator[Worlds]:
    """Two worlds of their own for the parts of mutants: they run the same programs as the whole ones."""
    with two_worlds(postgres) as worlds:
        yield worlds


def _program(worlds: Worlds, mutant: Mutant, number: int, oracle: Oracle) -> None:
    """One short program."""
    observer = max(LABELS) if mutant.killer == "alone" else 2 * (1 + number % 3) - mutant.trusted
    form: Form = "purge" if number % 2 or mutant.killer == "beside" else "paired"
    if mutant.killer == "alone":
        form = "alone"
    with ThreadPoolExecutor() as threads:
        Program(
            worlds,
            f"{mutant.name}.{number}",
            observer=observer,
            form=form,
            oracle=oracle,
            report=Report(programs=number),
            about=mutant.about,
            beside=threads if mutant.killer == "beside" else None,
            releases=mutant.about == "releases",
        ).run()


def _killer(worlds: Worlds, mutant: Mutant, number: int) -> str:
    """What notices *mutant* in one program; empty when nothing does. A difference of worlds shows without the model."""
    try:
        _program(worlds, mutant, number, _ORACLES.get(mutant.killer, "both"))
    except (Leak, Disagreement, Fault) as error:
        if getattr(error, "egress", 0):
            return "egress"
        if mutant.killer in {"alone", "beside"} and isinstance(error, Leak):
            return mutant.killer
        return {Leak: "worlds", Disagreement: "model", Fault: "fault"}[type(error)]
    return ""


def _must_be_noticed(worlds: Worlds, mutant: Mutant) -> None:
    """By its killer in one program at least. Another check may come first in others: they are drawn at random."""
    near = range(mutant.seed, mutant.seed + _NEAR)
    numbers = range(2) if mutant.covered_by else chain(near, (one for one in range(_MAX_PROGRAMS) if one not in near))
    noticed = Counter[str]()
    for number in numbers:
        noticed[_killer(worlds, mutant, number)] += 1
        if noticed[mutant.killer] and not mutant.covered_by:
            return
    assert mutant.covered_by, f"noticed by {noticed}, not by {mutant.killer}"
    assert set(noticed) == {""}


def test_every_mutant_still_finds_what_it_breaks(here):
    """Each is played on one day in eight only. Until then, no one would notice that its query or view was rewritten.

    What it makes of a query must still be a query: one that only fails would break no guard.
    """
    sound = {**SESSION_QUERIES, **HOST_QUERIES}
    with here.database.as_admin() as admin:
        for mutant in MUTANTS:
            with applied(mutant), admin.transaction(force_rollback=True):
                for statement in mutant.damage:
                    admin.execute(statement)
                for name, text in {**SESSION_QUERIES, **HOST_QUERIES}.items():
                    if text != sound[name]:
                        path = (
                            "muniment_control, muniment_restricted" if name in HOST_QUERIES else "muniment_restricted"
                        )
                        admin.execute(f"SET LOCAL search_path = {path}".encode())
                        admin.execute(b"EXPLAIN " + filled(text, literals_of(text)).encode())


@pytest.mark.proof
@pytest.mark.sampled
@pytest.mark.parametrize(
    "mutant", [one for one in MUTANTS if one.killer in {*_BEHAVIORAL, ""} and not one.damage], ids=str
)
def test_a_broken_guard_is_noticed(sound, mutant):
    """Python and named queries."""
    with changed(sound, partial(change, name=mutant.name)):
        _must_be_noticed(sound, mutant)


@pytest.mark.proof
@pytest.mark.sampled
@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.killer in {*_BEHAVIORAL, ""} and one.damage], ids=str)
def test_a_broken_schema_is_noticed(postgres, mutant):
    with two_worlds(postgres, damage=mutant.damage) as worlds, changed(worlds, partial(change, name=mutant.name)):
        _must_be_noticed(worlds, mutant)


@pytest.mark.proof
@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.killer == "grants"], ids=str)
def test_a_broken_grant_stops_the_server_from_starting(here, mutant):
    """The damage is done in a transaction, and undone with it: roles are not a database's own."""
    with here.database.as_admin() as admin:
        undamaged = differences(admin)
        assert all("vault.clock" in difference for difference in undamaged)  # these worlds have a clock of their own
        with admin.transaction(force_rollback=True):
            for statement in mutant.damage:
                admin.execute(statement)
            assert differences(admin) != undamaged


@pytest.mark.proof
@pytest.mark.sampled
@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.probe], ids=str)
def test_a_probe_notices(postgres, here, mutant):
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(world(postgres, damage=mutant.damage)) if mutant.damage else here
        stack.enter_context(applied(mutant))
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            mutant.probe(target)


# The proof of the reference monitor: between levels, nothing else needs to be trusted.

_DECIDES_TAINTS = {"M46 a reset keeps the old sessions"}
"""Not of what a level sees, but of which level a session has: sessions/queries.sql is trusted with that."""
_KEEPS_SOMETHING = {
    "M78 prompts are remembered without the taint, no egress filter",
    "M78 the counts of a query's words are remembered without the taint",
    "M78 the counts of a query's words are remembered for whoever asks",
    "M78 the counts of a query's words are remembered for whoever asks, compared without others",
}
"""What code keeps of one call and shows in another no monitor sees, but for its label: see
tests/calls/monitor/test_nouns.py. The mutant that leaves the egress filter as it is meets it first."""
_AT_THE_DESK = {one.name for one in RELEASES}
"""What goes down there goes down by design: the desk itself is trusted with who approves what."""
_HELD_BY_NO_MONITOR = _KEEPS_SOMETHING | _AT_THE_DESK
_OUTSIDE = [
    one.outside for one in MUTANTS if one.outside.patches and one.name not in _DECIDES_TAINTS | _HELD_BY_NO_MONITOR
]


def _holds(worlds: Worlds, part: Mutant) -> bool:
    """Whether the monitor, the grants and the views hold *part*: in two worlds it shows nothing but calls that fail."""
    with changed(worlds, partial(change, name=part.name, outside=True)):
        try:
            _program(worlds, part, part.seed, "worlds")
        except Leak as leak:
            return leak.failed
    return True


@for_each("mutant", [one for one in MUTANTS if one.leaks and one.name not in _HELD_BY_NO_MONITOR])
def test_every_leak_is_in_the_monitor_the_grants_or_the_views_or_stopped_by_them(mutant):
    """Whatever shows in the difference of worlds breaks one of these, too; the rest meets the egress filter."""
    assert mutant.killer == "egress" or mutant.places & {Place.MONITOR, Place.DATABASE}


@pytest.mark.proof
@pytest.mark.sampled
@pytest.mark.parametrize("part", [one for one in _OUTSIDE if one.leaks], ids=str)
def test_the_part_of_a_leak_outside_of_them_is_killed_alone(held, part):
    """Its calls fail, or it shows nothing, even if its query names a table."""
    assert _holds(held, part)


@pytest.mark.proof
def test_no_other_mutant_outside_of_them_leaks(held, programs, seed):
    """Whatever else notices it. Some of the mutants: one for four programs."""
    others = [one for one in _OUTSIDE if not one.leaks]
    some = random.Random(seed).sample(others, min(programs // 4, len(others)))

    assert [part.name for part in some if not _holds(held, part)] == []


@pytest.mark.proof
def test_statistics_above_that_the_matrix_allows_pass_the_gate(postgres, here):
    """So that the probe alone stands between this mutant and a leak."""
    with world(postgres, damage=STATISTICS_ABOVE.damage) as damaged, damaged.database.as_admin() as admin:
        with here.database.as_admin() as undamaged:
            expected = differences(undamaged)
        assert differences(admin) != expected
        with applied(STATISTICS_ABOVE):
            assert differences(admin) == expected


@pytest.mark.parametrize("probe", [*PROBES, scores_are_those_of_what_is_seen], ids=lambda probe: probe.__name__)
def test_the_sound_system_passes_every_probe(here, probe):
    probe(here)
