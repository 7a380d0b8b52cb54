"""Every state of the machine is visited, and every guard is needed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from tests.proof.taint_model.explore import Explored, explore
from tests.proof.taint_model.guards import Guards
from tests.proof.taint_model.state import (
    LEVELS,
    PRODUCT,
    PUBLIC_TRUSTED,
    HostCall,
    Session,
    State,
    beginning,
    flows,
    is_trusted,
    level_of,
)


def _visit(guards: Guards, *, sessions: int = 2, conversations: int = 2, labels: tuple[int, ...] = PRODUCT) -> Explored:
    """From agents with a ceiling at the highest level, and one below."""
    highest = level_of(max(labels))
    return explore(
        [
            beginning(ceiling=ceiling, conversations=conversations, sessions=sessions, labels=labels)
            for ceiling in (highest - 1, highest)
        ],
        guards,
    )


@pytest.mark.parametrize(
    ("sessions", "conversations", "labels"),
    [
        (2, 1, LEVELS[:2]),
        pytest.param(2, 1, LEVELS, marks=pytest.mark.proof),
        pytest.param(2, 1, PRODUCT, marks=[pytest.mark.proof, pytest.mark.sampled]),
        pytest.param(2, 2, LEVELS[:2], marks=[pytest.mark.proof, pytest.mark.sampled]),
        pytest.param(2, 2, LEVELS, marks=[pytest.mark.proof, pytest.mark.sampled]),
        pytest.param(2, 2, PRODUCT, marks=[pytest.mark.proof, pytest.mark.deep]),
        pytest.param(3, 1, LEVELS, marks=[pytest.mark.proof, pytest.mark.deep]),
        pytest.param(3, 1, PRODUCT, marks=[pytest.mark.proof, pytest.mark.deep]),
    ],
)
def test_the_laws_hold_in_every_state(sessions: int, conversations: int, labels: tuple[int, ...]) -> None:
    began = time.monotonic()

    explored = _visit(Guards(), sessions=sessions, conversations=conversations, labels=labels)

    assert explored.violation is None, f"\n{explored.violation}"
    print(
        f"{sessions} sessions, {conversations} conversations, labels {labels}: {explored.states} states, "
        f"{explored.steps} steps, {explored.depth} deep, {time.monotonic() - began:.1f} s"
    )


def _always(*_: Any) -> bool:
    return True


def _never(*_: Any) -> bool:
    return False


def _as_asked(taint: int, asked: int) -> int:
    return asked


def _one_lower(role: int) -> int:
    return max(1, role - 1)


def _no_version_above(state: State, label: int) -> bool:
    return all(flows(other, label) for other in state.live())


def _by_numbers(role: int, label: int) -> bool:
    return label <= role


def _higher_number(taint: int, asked: int) -> int:
    return max(taint, asked)


def _keeps_trust(taint: int, asked: int) -> int:
    return PUBLIC_TRUSTED if is_trusted(taint) else asked


def _no_writer_of_the_agent(state: State, conversation: int) -> bool:
    return not any(session and session.call and session.call.rpc != "GetMemory" for session in state.sessions)


def _those_found_first(state: State, call: HostCall, conversation: int) -> tuple[int, ...]:
    return call.found


def _any_session(session: Session | None) -> bool:
    return session is not None


MUTANTS: list[tuple[str, Callable[..., Any], str]] = [
    ("level_is_known", _always, "unknown_is_refused"),
    ("open_within_ceiling", _always, "ceiling_holds"),
    ("raise_within_ceiling", _always, "ceiling_holds"),
    ("agent_takes_sessions", _always, "deleted_is_deleted"),
    ("taint_after_open", _as_asked, "taint_never_falls"),
    ("taint_after_open", _higher_number, "taint_never_falls"),
    ("taint_after_raise", _as_asked, "taint_never_falls"),
    ("taint_after_raise", _higher_number, "taint_never_falls"),
    ("taint_after_reset", _keeps_trust, "taint_covers_what_was_seen"),
    ("write_waits", _no_writer_of_the_agent, "no_session_waits_for_a_higher_one"),
    ("open_waits", _always, "no_late_write"),
    ("raise_waits", _always, "no_late_write"),
    ("reset_waits", _always, "no_late_write"),
    ("close_waits", _always, "no_late_write"),
    ("delete_waits", _always, "no_late_write"),
    ("session_is_open", _always, "the_row_decides"),
    ("connection_fits", _always, "the_row_decides"),
    ("may_read", _always, "reads_at_or_below"),
    ("may_read", _by_numbers, "reads_at_or_below"),
    ("label_written", _one_lower, "writes_exactly_at"),
    ("name_is_free", _no_version_above, "nothing_above_is_observed"),
    ("effect_without_audit", _always, "nothing_without_audit"),
    ("raise_has_its_session", _any_session, "a_reset_is_a_new_start"),
    ("sessions_to_reset", _those_found_first, "a_reset_is_a_new_start"),
    ("reveals_early", _always, "taint_covers_what_was_seen"),
    ("host_takes_answer", _always, "taint_covers_what_was_seen"),
]


@pytest.mark.parametrize(
    ("guard", "mutant", "law"), MUTANTS, ids=[f"{guard} {mutant.__name__}" for guard, mutant, _ in MUTANTS]
)
def test_each_guard_is_needed(guard: str, mutant: Callable[..., Any], law: str) -> None:
    """Without it, a law is broken, by the trace printed here."""
    broken = _visit(replace(Guards(), **{guard: mutant})).violation

    assert broken is not None
    print(f"without {guard}, {broken}")
    assert broken.law == law


def test_each_guard_has_a_mutant() -> None:
    assert list(dict.fromkeys(guard for guard, _, _ in MUTANTS)) == [field.name for field in fields(Guards)]
