"""The laws, as what must hold of every step. Each takes the state before a step, the step, and the state after it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType

from tests.proof.taint_model.guards import Guards
from tests.proof.taint_model.machine import WRITES, session_steps
from tests.proof.taint_model.state import Agent, Session, State, Step, flows, level_of

Law = Callable[[State, Step, State], bool]

_SESSION_CALLS = ("GetMemory", *WRITES)


def reads_at_or_below(before: State, step: Step, after: State) -> bool:
    """Law 1. What a read shows flows to the taint."""
    session = _acting(before, step)
    if session is None or (step.rpc, step.part) != ("GetMemory", "begins"):
        return True
    call = _required(after, step).call
    return call is not None and (not call.label or flows(call.label, before.taint_of(session)))


def writes_exactly_at(before: State, step: Step, after: State) -> bool:
    """Law 1. A write changes the label with which the statement found its session, and no other."""
    changed = set(before.live()) ^ set(after.live())
    if step.rpc == "the eraser":
        return True
    return all(at == step.label for at in changed) and step.written in (0, step.label)


def others_notice_nothing(before: State, step: Step, after: State) -> bool:
    """Law 2. A step of a session changes nothing that it does not flow to, and of others only what their models saw."""
    session = _acting(before, step)
    if session is None:
        return True
    unreached = [label for label in before.labels if step.rpc not in WRITES or not flows(step.label, label)]
    others = [
        (one, other)
        for number, (one, other) in enumerate(zip(before.sessions, after.sessions, strict=True))
        if number != step.session and one is not None
    ]
    return (
        all(before.visible(label) == after.visible(label) for label in unreached)
        and before.taints == after.taints
        and all(other is not None and one._replace(seen=other.seen) == other for one, other in others)
    )


def taint_never_falls(before: State, step: Step, after: State) -> bool:
    """Law 4. Only OpenSession and RaiseTaint raise a taint, neither half of which they lower, and ResetSession does."""
    changed = [(old, new) for old, new in zip(before.taints, after.taints, strict=True) if old != new]
    if step.rpc in ("OpenSession", "RaiseTaint"):
        return all(not old or flows(old, new) for old, new in changed)
    return not changed or step.rpc == "ResetSession"


def no_late_write(before: State, step: Step, after: State) -> bool:
    """Law 4. At its commit, a write is at its session's taint, and the session is open."""
    if not step.written:
        return True
    session = _required(before, step)
    return session.is_open and step.label == before.taint_of(session)


def a_reset_is_a_new_start(before: State, step: Step, after: State) -> bool:
    """Law 4. A session that has ended raises no conversation, and a reset leaves open none that it did not open."""
    if step.rpc == "RaiseTaint" and step.answer.startswith("OK"):
        return _required(before, step).is_open
    if step.rpc == "ResetSession" and step.answer.startswith("OK"):
        return step.conversation is not None and len(after.open_in(step.conversation)) == 1
    return True


def taint_covers_what_was_seen(before: State, step: Step, after: State) -> bool:
    """What laws 1 and 4 are for: no model has seen more than its taint says, so none can write down what it knows."""
    return all(
        flows(session.seen, after.taint_of(session)) for session in after.sessions if session and session.is_open
    )


def the_row_decides(before: State, step: Step, after: State) -> bool:
    """Law 5. A statement has an effect, or an answer, only on the connection of the taint in the row."""
    session = _acting(before, step)
    if session is None or step.part != "begins":
        return True
    return session.is_open and step.label == before.taint_of(session)


def nothing_without_audit(before: State, step: Step, after: State) -> bool:
    """Law 7. No write without its audit row."""
    return step.audited or before.items == after.items


def unknown_is_refused(before: State, step: Step, after: State) -> bool:
    """Law 8. A raise to no known level is refused, and changes nothing. An open without a level raises nothing."""
    if step.rpc == "RaiseTaint" and not level_of(step.label):
        return step.answer == "FIELD_INVALID" and before == after
    if step.rpc == "OpenSession" and not level_of(step.label):
        taints = zip(before.taints, after.taints, strict=True)
        return all(not old or level_of(old) == level_of(new) for old, new in taints)
    return True


def ceiling_holds(before: State, step: Step, after: State) -> bool:
    """No conversation is above the ceiling of its agent."""
    return level_of(max(after.taints)) <= after.ceiling


def deleted_is_deleted(before: State, step: Step, after: State) -> bool:
    """A deleted agent has no open session, and nothing is written for it; when it is erased, nothing is left."""
    if after.agent not in (Agent.DELETED, Agent.ERASED):
        return True
    nothing_left = after.agent is not Agent.ERASED or not any(after.items)
    return nothing_left and not any(session and session.is_open for session in after.sessions)


LAWS: Mapping[str, Law] = MappingProxyType(
    {
        law.__name__: law
        for law in (
            reads_at_or_below,
            writes_exactly_at,
            others_notice_nothing,
            taint_never_falls,
            no_late_write,
            a_reset_is_a_new_start,
            taint_covers_what_was_seen,
            the_row_decides,
            nothing_without_audit,
            unknown_is_refused,
            ceiling_holds,
            deleted_is_deleted,
        )
    }
)


def makes_wait(state: State, guards: Guards) -> int | None:
    """Law 6. A session that must wait for a call of a higher session; None if there is none."""
    if not any(session and session.call and session.call.rpc in WRITES for session in state.sessions):
        return None
    for number, session in enumerate(state.sessions):
        if session is None or not any(_is_above(state, session, other) for other in state.sessions):
            continue
        alone = state._replace(
            sessions=tuple(
                other._replace(call=None) if other and _is_above(state, session, other) else other
                for other in state.sessions
            )
        )
        offered = {step for step, _ in session_steps(state, guards, number)}
        if {step for step, _ in session_steps(alone, guards, number)} != offered:
            return number
    return None


class Observations:
    """Law 2. What a session can do and observe is a function of what is at or below its taint.

    Collects, over all states, what each session may do next and what that brings. If two states are equal at and below
    a session's taint and differ in that, the session observes something above.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, frozenset[Hashable]] = {}

    def differ(self, state: State, guards: Guards) -> int | None:
        """A session that another state, equal below, offers something else; None if there is none."""
        for number, session in enumerate(state.sessions):
            if session is None:
                continue
            taint = state.taint_of(session)
            below = (number, session, taint, state.visible(taint), _locked_up_to(state, taint))
            offered = frozenset(
                (step, after.visible(taint), after.sessions[number])
                for step, after in session_steps(state, guards, number)
            )
            if self._known.setdefault(below, offered) != offered:
                return number
        return None


def _acting(state: State, step: Step) -> Session | None:
    """The session whose call it is."""
    return _required(state, step) if step.rpc in _SESSION_CALLS else None


def _required(state: State, step: Step) -> Session:
    assert step.session is not None
    session = state.sessions[step.session]
    assert session is not None
    return session


def _locked_up_to(state: State, taint: int) -> tuple[int, ...]:
    """The conversations that flow to *taint* and whose row is locked."""
    return tuple(
        session.conversation
        for session in state.sessions
        if session and session.call and session.call.rpc in WRITES and flows(state.taint_of(session), taint)
    )


def _is_above(state: State, session: Session, other: Session | None) -> bool:
    return other is not None and not flows(state.taint_of(other), state.taint_of(session))
