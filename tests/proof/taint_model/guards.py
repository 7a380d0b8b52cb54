"""The guards of the machine, each a function by itself. A mutant is the machine with one of them replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.proof.taint_model.state import Agent, HostCall, Session, State, flows, joined, level_of


def level_is_known(label: int) -> bool:
    """The contract's rules refuse an unspecified level."""
    return level_of(label) > 0


def within_ceiling(label: int, ceiling: int) -> bool:
    """OpenSession and RaiseTaint refuse what is above the agent's ceiling."""
    return level_of(label) <= ceiling


def agent_takes_sessions(agent: Agent) -> bool:
    """OpenSession locks the agent, which must be there."""
    return agent is Agent.LIVE


def join_of(taint: int, asked: int) -> int:
    """OpenSession and RaiseTaint lower neither half of a taint."""
    return joined(taint, asked)


def as_asked(taint: int, asked: int) -> int:
    """ResetSession begins with the integrity that the host asks for, whatever was before."""
    return asked


def no_writer(state: State, conversation: int) -> bool:
    """Whether the row of the conversation is free. A writer of any of its sessions holds it until its commit."""
    return not any(session.conversation == conversation for session in _writers(state))


def session_is_open(session: Session) -> bool:
    """The view `session` shows open sessions only."""
    return session.is_open


def connection_fits(label: int, taint: int) -> bool:
    """The view `session` of a label shows the sessions whose conversations have that label."""
    return label == taint


def may_read(role: int, label: int) -> bool:
    """The grants: a role reads its own label and those that flow to it."""
    return flows(label, role)


def label_written(role: int) -> int:
    """The grants: a role writes with its own label."""
    return role


def name_is_free(state: State, label: int) -> bool:
    """A save meets no version but that of its own label, which it replaces."""
    return True


def effect_without_audit() -> bool:
    """Whether a write stays if its audit row cannot be written. It is in the same statement."""
    return False


def raise_has_its_session(session: Session | None) -> bool:
    """RaiseTaint locks its session, and finds it open under the lock."""
    return session is not None and session.is_open


def sessions_to_reset(state: State, call: HostCall, conversation: int) -> tuple[int, ...]:
    """ResetSession closes all sessions of its conversation, those too that were opened while it waited."""
    return state.open_in(conversation)


def reveals_early() -> bool:
    """Whether the host shows a model what needs a raise before RaiseTaint has returned OK."""
    return False


def host_takes_answer(session: Session) -> bool:
    """The host discards the answers of sessions that it has ended."""
    return session.is_open


@dataclass(frozen=True, slots=True)
class Guards:
    """What keeps the laws. The names say which call a guard is in, where several have one of the same kind."""

    level_is_known: Callable[[int], bool] = level_is_known
    open_within_ceiling: Callable[[int, int], bool] = within_ceiling
    raise_within_ceiling: Callable[[int, int], bool] = within_ceiling
    agent_takes_sessions: Callable[[Agent], bool] = agent_takes_sessions
    taint_after_open: Callable[[int, int], int] = join_of
    taint_after_raise: Callable[[int, int], int] = join_of
    taint_after_reset: Callable[[int, int], int] = as_asked
    write_waits: Callable[[State, int], bool] = no_writer
    open_waits: Callable[[State, int], bool] = no_writer
    raise_waits: Callable[[State, int], bool] = no_writer
    reset_waits: Callable[[State, int], bool] = no_writer
    close_waits: Callable[[State, int], bool] = no_writer
    delete_waits: Callable[[State, int], bool] = no_writer
    session_is_open: Callable[[Session], bool] = session_is_open
    connection_fits: Callable[[int, int], bool] = connection_fits
    may_read: Callable[[int, int], bool] = may_read
    label_written: Callable[[int], int] = label_written
    name_is_free: Callable[[State, int], bool] = name_is_free
    effect_without_audit: Callable[[], bool] = effect_without_audit
    raise_has_its_session: Callable[[Session | None], bool] = raise_has_its_session
    sessions_to_reset: Callable[[State, HostCall, int], tuple[int, ...]] = sessions_to_reset
    reveals_early: Callable[[], bool] = reveals_early
    host_takes_answer: Callable[[Session], bool] = host_takes_answer


def _writers(state: State) -> list[Session]:
    return [session for session in state.sessions if session and session.call and session.call.rpc != "GetMemory"]
