"""The black-box tool: it finds what leaks, in the smallest program, and finds nothing where nothing leaks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.proof.noninterference.black_box import catalog
from tests.proof.noninterference.black_box.adapters.toy import Toy
from tests.proof.noninterference.black_box.checking import check, find_planted
from tests.proof.noninterference.black_box.comparing import Worlds, shrink
from tests.proof.noninterference.black_box.naming import Names
from tests.proof.noninterference.black_box.planted import LEAKS
from tests.proof.noninterference.black_box.programs import Actor, Line, Operation, Step, generate
from tests.proof.noninterference.black_box.systems import Description, Process, System, description_of

PACKAGE = "tests.proof.noninterference.black_box"
ROOT = Path(__file__).parents[3]


class InProcess:
    """The toy without a process."""

    def __init__(self, toy: Toy) -> None:
        self._toy = toy
        self._answer: Any = None
        self.description: Description = description_of(toy.description())

    def begin(self, arrangement: str) -> None:
        self._toy.answer({"begin": arrangement})

    def send(self, step: Step) -> None:
        self._answer = self._toy.answer({"actor": step.actor, "operation": step.operation, "arguments": step.arguments})

    def receive(self) -> Any:
        return self._answer


class Careless(Toy):
    """Its answers differ from world to world without any `high`."""

    answers = 0

    def answer(self, message: Any) -> Any:
        type(self).answers += 1
        return [super().answer(message), self.answers]


@pytest.fixture
def toys() -> tuple[System, System]:
    return InProcess(Toy()), InProcess(Toy())


def _checked(systems: tuple[System, System], number: int) -> Any:
    return check(systems, systems[0].description.arrangements[number], "1", 30, lambda *_: None)


def test_nothing_is_found_where_nothing_leaks(toys):
    result = _checked(toys, 0)

    assert (result.leaking, result.unstable, result.programs) == (0, 0, 30)
    assert result.compared > 200


def test_what_leaks_is_shown_in_two_steps(toys):
    result = _checked(toys, 1)

    smallest = {leak.operation: [str(line)[:11] for line in leak.program] for leak in result.leaks}
    assert {len(smallest[operation]) for operation in ("get", "search")} == {2}
    assert all(steps[-1] == "both  low  " for steps in smallest.values())


def test_a_shared_counter_is_a_leak(toys):
    assert [leak.operation for leak in _checked(toys, 2).leaks] == ["save"]


@pytest.mark.parametrize("leak", LEAKS)
def test_a_planted_leak_is_found(toys, leak):
    assert find_planted(toys, leak, "1") is not None


@pytest.mark.parametrize("leak", LEAKS)
def test_a_planted_leak_is_not_found_if_it_gives_nothing_away(toys, leak, monkeypatch):
    """So it is the leak that is found, and nothing of the tool's."""
    monkeypatch.setattr(LEAKS[leak], "_leaking", lambda self, step, answer: answer)

    assert find_planted(toys, leak, "1") is None


def test_a_system_that_differs_from_itself_shows_nothing():
    systems = InProcess(Careless()), InProcess(Careless())

    result = _checked(systems, 0)

    assert result.leaking == 0
    assert result.unstable == 30


def test_the_same_seed_makes_the_same_program(toys):
    operations = toys[0].description.operations

    assert generate(operations, "7") == generate(operations, "7")
    assert generate(operations, "7") != generate(operations, "8")


def test_only_steps_of_high_differ_between_the_worlds(toys):
    for seed in range(50):
        for line in generate(toys[0].description.operations, str(seed)):
            assert line.in_a == line.in_b or (line.in_a and line.in_a.actor == "high")


def test_the_observer_reads_in_every_way_at_last(toys):
    for seed in range(20):
        *_, before, last = generate(toys[0].description.operations, str(seed))
        assert [line.in_a and line.in_a.operation for line in (before, last)] == ["get", "search"]
        assert before.observed
        assert last.observed


def test_values_that_the_system_made_are_named_by_their_first_appearance():
    one, other = Names({"etag": "W/[0-9]+"}), Names({"etag": "W/[0-9]+"})

    assert one.canonical(["W/2", "W/1", "W/2"]) == other.canonical(["W/8", "W/9", "W/8"])
    assert one.canonical("2026-11-24T14:00:00Z") == other.canonical("2026-11-25 09:00:00.25+00:00")


@pytest.mark.parametrize(("a", "b"), [(1, 2), (["x", "y"], ["y", "x"]), (["W/1", "W/1"], ["W/1", "W/2"]), ("", None)])
def test_other_values_are_not_named(a, b):
    assert Names({"etag": "W/[0-9]+"}).canonical(a) != Names({"etag": "W/[0-9]+"}).canonical(b)


def test_shrinking_keeps_what_leaks_and_drops_the_rest():
    lines = [Line(step, step) for step in (Step("low", "get", {"key": str(number)}) for number in range(20))]

    assert shrink(lines, lambda program: lines[3] in program and lines[17] in program) == [lines[3], lines[17]]


def test_the_command_prints_one_object_and_its_exit_status_tells():
    command = [sys.executable, "-m", PACKAGE, "toy", "--programs", "10", "--json"]

    leaking = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=140, check=False)
    tight = subprocess.run(
        [*command, "--arrangement", "a dictionary for each"],
        cwd=ROOT, capture_output=True, text=True, timeout=140, check=False,
    )  # fmt: skip

    (report,) = json.loads(leaking.stdout)["reports"]
    assert (leaking.returncode, tight.returncode) == (1, 0)
    assert [bool(each["leaking"]) for each in report["arrangements"]] == [False, True, True, True]


def test_poison_is_played_where_the_observer_is_trusted_only():
    command = [sys.executable, "-m", PACKAGE, "toy", "--poison", "--programs", "10", "--json"]

    poisoned = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=140, check=False)
    none = subprocess.run(
        [*command, "--arrangement", "a dictionary for each"],
        cwd=ROOT, capture_output=True, text=True, timeout=140, check=False,
    )  # fmt: skip

    (report,) = json.loads(poisoned.stdout)["reports"]
    assert [(each["boundary"], bool(each["leaking"])) for each in report["arrangements"]] == [("untrusted", True)]
    assert (poisoned.returncode, none.returncode) == (1, 2)
    assert "toy: it has no such arrangement" in none.stderr


def test_a_server_that_is_not_named_is_not_played_against(monkeypatch):
    monkeypatch.delenv("MUNIMENT_ADDRESS", raising=False)
    command = [sys.executable, "-m", PACKAGE, "muniment-server"]

    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=140, check=False)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert "set MUNIMENT_ADDRESS" in ran.stderr


def test_an_adapter_that_does_not_speak_the_protocol_does_not_count():
    command = [sys.executable, "-m", PACKAGE, "--command", "echo hello"]

    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=140, check=False)

    assert ran.returncode == 2
    assert "printed 'hello" in ran.stderr


def test_the_folder_runs_alone(tmp_path):
    """Under another name, and out of reach of this repository."""
    shutil.copytree(ROOT / "tests/proof/noninterference/black_box", tmp_path / "alone")
    command = [sys.executable, "-m", "alone", "toy", "--programs", "10", "--arrangement", "a dictionary for each"]

    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=140, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert "4 of 4 planted leaks found" in ran.stdout


@contextmanager
def _muniment(command: list[str]) -> Iterator[tuple[System, System]]:
    with ExitStack() as stack:
        one, other = (stack.enter_context(Process(command, {}, catalog.FOLDER)) for _ in range(2))
        yield one, other


@pytest.mark.proof
def test_muniment_leaks_nothing_and_planted_leaks_are_found_in_it():
    with _muniment(catalog.command("muniment-grpc", Path())) as systems:
        assert None not in [find_planted(systems, leak, "1") for leak in LEAKS]
        for arrangement in systems[0].description.arrangements:
            result = check(systems, arrangement, "1", 6, lambda *_: None)
            assert (result.leaking, result.unstable) == (0, 0)
        assert _poisoned(systems) == set()


_BOTH_UNTRUSTED = """
from muniment import Classification, Integrity
from tests.proof.noninterference.black_box.adapters import muniment_development, muniment_grpc
muniment_development.LABELS[muniment_development.TRUST]["low"] = Classification.INTERNAL, Integrity.UNTRUSTED
muniment_grpc.main()
"""


@pytest.mark.proof
def test_without_trust_every_read_depends_on_what_an_untrusted_session_writes():
    """So the tool sees whatever poison would change: items of each kind, lists, searches, counts, the prompt."""
    with _muniment([sys.executable, "-c", _BOTH_UNTRUSTED]) as systems:
        assert _poisoned(systems) == {each.name for each in systems[0].description.operations if each.reads}


_GIVEN = {"key": "plan", "text": "pay Ahab", "query": "pay Ahab", "tags": [], "limit": 10}
"""An argument of each kind."""


def _poisoned(systems: tuple[System, System]) -> set[str]:
    """The reads of the observer that differ once `high` has written something of every kind."""
    operations = systems[0].description.operations
    (arrangement,) = (each for each in systems[0].description.arrangements if each.boundary == "untrusted")
    worlds = Worlds(systems, arrangement.name)
    writes = [
        each for each in operations if not each.reads and "text" in each.arguments and "item" not in each.arguments
    ]
    poison = [Line(_step("high", write), None) for write in writes]
    reads = [_step("low", read) for read in operations if read.reads]
    return {read.operation for read in reads if worlds.compare([*poison, Line(read, read)])}


def _step(actor: Actor, operation: Operation) -> Step:
    return Step(actor, operation.name, {name: _GIVEN[kind] for name, kind in operation.arguments.items()})
