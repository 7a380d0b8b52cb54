"""The steps of the machine: what may happen next in a state.

A host's calls and a session's writes begin and end in separate steps, so that others come in between. A step that must
wait for a lock is not offered while the lock is held. The server's cache of tokens is not modeled: a statement may run
on the connection of any level, whatever led there. If the session predicate does not match, it has no effect, and the
call runs again, so no step is needed for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.proof.taint_model.guards import Guards
from tests.proof.taint_model.state import (
    PUBLIC,
    PUBLIC_TRUSTED,
    UNKNOWN,
    UNKNOWN_TRUSTED,
    Agent,
    Call,
    HostCall,
    Moved,
    Session,
    State,
    Step,
    flows,
    is_trusted,
    joined,
    label_of,
    level_of,
    tidy,
)

WRITES = ("SaveMemory", "DeleteMemory")
NOTHING = "MEMORY_NOT_FOUND"


def steps(state: State, guards: Guards) -> Iterator[Moved]:
    """Every step that may come next, with the state after it."""
    for step, after in _all_steps(state, guards):
        yield step, tidy(after)


def session_steps(state: State, guards: Guards, number: int) -> Iterator[Moved]:
    """The steps of one session."""
    session = state.sessions[number]
    if session is None:
        return
    if session.call is None:
        yield from _reads_begin(state, guards, number, session)
        yield from _writes_begin(state, guards, number, session)
    elif session.call.rpc == "GetMemory":
        yield _read_ends(state, guards, number, session, session.call)
    else:
        yield from _write_ends(state, guards, number, session, session.call)


def _all_steps(state: State, guards: Guards) -> Iterator[Moved]:
    yield from _opens(state, guards)
    yield from _deletes_agent(state, guards)
    if state.host_call:
        yield from _host_call_ends(state, guards, state.host_call, None)
    for number, session in enumerate(state.sessions):
        if session is None:
            continue
        yield from session_steps(state, guards, number)
        if session.is_open:
            yield from _closes(state, guards, number, session)
            yield from _host_call_begins(state, guards, number, session)


# Calls of hosts


def _opens(state: State, guards: Guards) -> Iterator[Moved]:
    """OpenSession: one statement, which waits for the agent and for the conversation. New conversations in order."""
    known = sum(map(bool, state.taints))
    for conversation in range(min(known + 1, len(state.taints))):
        for label in _named(state):
            yield from _open(state, guards, conversation, label)


def _named(state: State) -> Iterator[int]:
    """The labels that a host may ask for, those without a level among them."""
    yield UNKNOWN
    if any(map(is_trusted, state.labels)):
        yield UNKNOWN_TRUSTED
    yield from state.labels


def _open(state: State, guards: Guards, conversation: int, label: int) -> Iterator[Moved]:
    """Without a level, at that of the conversation, or at PUBLIC if it is new."""
    step = Step("OpenSession", "", None, conversation, label)
    if not guards.agent_takes_sessions(state.agent):
        if state.agent is not Agent.MARKED:  # it waits for DeleteAgent
            yield step._replace(answer="AGENT_NOT_FOUND"), state
    elif not guards.open_within_ceiling(label, state.ceiling):
        yield step._replace(answer="AGENT_CEILING_EXCEEDED"), state
    elif guards.open_waits(state, conversation):
        old = state.taints[conversation]
        asked = label if level_of(label) else label_of(level_of(old) or 1, trusted=is_trusted(label))
        taint = guards.taint_after_open(old, asked)
        if taint != asked:
            yield step._replace(answer="CONVERSATION_TAINTED"), state
        elif None in state.sessions:
            number = state.sessions.index(None)
            raised = _shown(_with_taint(state, conversation, taint), conversation, taint)
            after = _with_session(raised, number, Session(conversation, seen=taint))
            yield step._replace(opened=number, answer=f"OK {taint}"), after


def _closes(state: State, guards: Guards, number: int, session: Session) -> Iterator[Moved]:
    if guards.close_waits(state, session.conversation):
        after = _closed(state, [number])
        yield Step("CloseSession", "", number, answer="OK"), after


def _host_call_begins(state: State, guards: Guards, number: int, session: Session) -> Iterator[Moved]:
    """RaiseTaint and ResetSession: with steps of others in between, or, if another such call is under way, without."""
    for label in _named(state):
        step = Step("RaiseTaint", "begins", number, label=label)
        if not guards.level_is_known(label):
            yield step._replace(part="", answer="FIELD_INVALID"), state
        elif not guards.raise_within_ceiling(label, state.ceiling):
            yield step._replace(part="", answer="AGENT_CEILING_EXCEEDED"), state
        else:
            yield from _begun(state, guards, step, HostCall("RaiseTaint", number, label))
    found = state.open_in(session.conversation)
    for label in {PUBLIC, PUBLIC_TRUSTED}.intersection(state.labels):
        step = Step("ResetSession", "begins", number, label=label)
        yield from _begun(state, guards, step, HostCall("ResetSession", number, label, found))


def _begun(state: State, guards: Guards, step: Step, call: HostCall) -> Iterator[Moved]:
    if state.host_call is None:
        after = state._replace(host_call=call)
        if guards.reveals_early() and call.rpc == "RaiseTaint":
            session = state.sessions[call.session]
            assert session
            after = _shown(after, session.conversation, call.label)
        yield step, after
    else:
        for ended, after in _host_call_ends(state, guards, call, state.host_call):
            yield ended._replace(part=""), after


def _host_call_ends(state: State, guards: Guards, call: HostCall, other: HostCall | None) -> Iterator[Moved]:
    session = state.sessions[call.session]
    assert session is not None
    step = Step(call.rpc, "ends", call.session, label=call.label)
    done = state._replace(host_call=other)
    if not guards.raise_has_its_session(session) if call.rpc == "RaiseTaint" else not session.is_open:
        yield step._replace(answer="SESSION_NOT_FOUND"), done
    elif call.rpc == "RaiseTaint":
        if guards.raise_waits(state, session.conversation):
            taint = guards.taint_after_raise(state.taint_of(session), call.label)
            after = _shown(_with_taint(done, session.conversation, taint), session.conversation, taint)
            yield step._replace(answer=f"OK {taint}"), after
    elif guards.reset_waits(state, session.conversation):
        yield from _reset(done, guards, call, session.conversation)


def _reset(state: State, guards: Guards, call: HostCall, conversation: int) -> Iterator[Moved]:
    """A reset closes the sessions, lowers the taint to what is asked for, and opens a session for a new model."""
    closed = tidy(_closed(state, guards.sessions_to_reset(state, call, conversation)))
    if None in closed.sessions:
        number = closed.sessions.index(None)
        taint = guards.taint_after_reset(state.taints[conversation], call.label)
        new = Session(conversation, seen=call.label)
        after = _with_session(_with_taint(closed, conversation, taint), number, new)
        step = Step("ResetSession", "ends", call.session, conversation, call.label, answer=f"OK {taint}", opened=number)
        yield step, after


def _deletes_agent(state: State, guards: Guards) -> Iterator[Moved]:
    """DeleteAgent marks the agent, waits for its writers, and closes its sessions. The eraser erases the items."""
    if state.agent is Agent.LIVE:
        yield Step("DeleteAgent", "begins"), state._replace(agent=Agent.MARKED)
    elif state.agent is Agent.MARKED:
        if all(guards.delete_waits(state, conversation) for conversation in range(len(state.taints))):
            closed = _closed(state, range(len(state.sessions)))
            yield Step("DeleteAgent", "ends", answer="OK"), closed._replace(agent=Agent.DELETED)
    else:
        yield Step("DeleteAgent", answer="AGENT_NOT_FOUND"), state
        erased = state._replace(agent=Agent.ERASED, items=(False,) * len(state.items))
        yield Step("the eraser"), erased


# Calls of sessions


def _matching(state: State, guards: Guards, session: Session) -> list[int]:
    """The connections on which the session predicate matches."""
    if not guards.session_is_open(session):
        return []
    taint = state.taint_of(session)
    return [label for label in state.labels if guards.connection_fits(label, taint)]


def _reads_begin(state: State, guards: Guards, number: int, session: Session) -> Iterator[Moved]:
    for role in _matching(state, guards, session):
        shown = max((label for label in state.live() if guards.may_read(role, label)), default=0)
        after = _with_call(state, number, session, Call("GetMemory", shown))
        yield Step("GetMemory", "begins", number, label=role), after


def _read_ends(state: State, guards: Guards, number: int, session: Session, call: Call) -> Moved:
    done = _with_call(state, number, session, None)
    taken = guards.host_takes_answer(session)
    after = _shown(done, session.conversation, call.label) if taken else done
    return Step(
        "GetMemory", "ends", number, label=call.label, answer=f"OK {call.label}" if call.label else NOTHING
    ), after


def _writes_begin(state: State, guards: Guards, number: int, session: Session) -> Iterator[Moved]:
    """The statement finds the session by its predicate, and locks it."""
    if guards.write_waits(state, session.conversation):
        for role in _matching(state, guards, session):
            for rpc in WRITES:
                after = _with_call(state, number, session, Call(rpc, role))
                yield Step(rpc, "begins", number, label=role), after


def _write_ends(state: State, guards: Guards, number: int, session: Session, call: Call) -> Iterator[Moved]:
    """The commit; or, if the audit row cannot be written, no effect."""
    step = Step(call.rpc, "ends", number, label=call.label)
    done = _with_call(state, number, session, None)
    label = guards.label_written(call.label)
    answer = _answer(state, guards, call.rpc, label)
    if not answer.startswith("OK"):
        yield step._replace(answer=answer), done
        return
    kept = zip(state.labels, state.items, strict=True)
    items = tuple(live if at != label else call.rpc == "SaveMemory" for at, live in kept)
    after = done._replace(items=items)
    yield step._replace(answer=answer, written=label), after
    if guards.effect_without_audit():
        yield step._replace(answer=answer, written=label, audited=False), after
    else:
        yield step._replace(answer="INTERNAL"), done


def _answer(state: State, guards: Guards, rpc: str, label: int) -> str:
    if rpc == "SaveMemory":
        return f"OK {label}" if guards.name_is_free(state, label) else "ITEM_EXISTS"
    below = max((lower for lower in state.live() if lower != label and flows(lower, label)), default=0)
    if label in state.live():
        return f"OK reveals {below}"
    return "WRITE_LEVEL_MISMATCH" if below else NOTHING


# States


def _with_session(state: State, number: int, session: Session) -> State:
    return state._replace(sessions=(*state.sessions[:number], session, *state.sessions[number + 1 :]))


def _with_call(state: State, number: int, session: Session, call: Call | None) -> State:
    return _with_session(state, number, session._replace(call=call))


def _with_taint(state: State, conversation: int, taint: int) -> State:
    taints = (*state.taints[:conversation], taint, *state.taints[conversation + 1 :])
    return state._replace(taints=taints)


def _shown(state: State, conversation: int, label: int) -> State:
    """*state* after the model behind a conversation has seen something with *label*."""
    sessions = tuple(
        session._replace(seen=joined(session.seen, label))
        if session and session.is_open and session.conversation == conversation
        else session
        for session in state.sessions
    )
    return state._replace(sessions=sessions)


def _closed(state: State, numbers: Iterable[int]) -> State:
    """What an ended session has seen does not matter: its host has wiped the model's context, or never writes again."""
    ended = frozenset(numbers)
    sessions = tuple(
        session._replace(is_open=False, seen=PUBLIC) if session and number in ended else session
        for number, session in enumerate(state.sessions)
    )
    return state._replace(sessions=sessions)
