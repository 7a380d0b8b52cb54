"""The states of the machine. Named tuples, not dataclasses: millions of them are hashed and compared."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from enum import IntEnum
from typing import NamedTuple

UNKNOWN = 0
"""The level that a host names if it names none."""
PUBLIC = 1


class Agent(IntEnum):
    """How far DeleteAgent has got."""

    LIVE = 1
    MARKED = 2
    DELETED = 3
    ERASED = 4


class Call(NamedTuple):
    """A call of a session: a write that holds the session lock, or a read whose answer is under way."""

    rpc: str
    level: int
    """Of the connection of a write; of the version that a read shows, 0 if it shows none."""


class Session(NamedTuple):
    """A session, and the model behind it."""

    conversation: int
    is_open: bool = True
    seen: int = PUBLIC
    """The highest level of what its model has seen. The server does not know it: the taint must cover it."""
    call: Call | None = None


class HostCall(NamedTuple):
    """RaiseTaint or ResetSession, between the statement that finds its session and the one that has its effect."""

    rpc: str
    session: int
    level: int = UNKNOWN
    found: tuple[int, ...] = ()
    """The open sessions of the conversation when the call began."""


class State(NamedTuple):
    """Everything: one agent, its conversations and sessions, and the versions of one name."""

    ceiling: int
    agent: Agent
    taints: tuple[int, ...]
    """Of each conversation. 0: there is none yet."""
    items: tuple[bool, ...]
    """At which levels, from PUBLIC, there is a live version."""
    sessions: tuple[Session | None, ...]
    """None is a place for a session. One that has ended leaves its place when no call of it is under way."""
    host_call: HostCall | None = None

    def taint_of(self, session: Session) -> int:
        """The taint of the session's conversation."""
        return self.taints[session.conversation]

    def open_in(self, conversation: int) -> tuple[int, ...]:
        """The open sessions of a conversation."""
        return tuple(
            number
            for number, session in enumerate(self.sessions)
            if session and session.is_open and session.conversation == conversation
        )

    def visible(self, level: int) -> tuple[bool, ...]:
        """The items at or below *level*."""
        return self.items[:level]


class Step(NamedTuple):
    """One step of one call, which no other step interrupts."""

    rpc: str
    part: str = ""
    """`begins` or `ends`, for a call of two steps."""
    session: int | None = None
    conversation: int | None = None
    level: int = UNKNOWN
    """What a host asks for; for a session, the level of the connection, or of what is shown."""
    answer: str = ""
    """Empty if the call goes on."""
    written: int = 0
    """The level at which a version was written or deleted."""
    audited: bool = True
    opened: int | None = None
    """The session that a call opens."""

    def __str__(self) -> str:
        words = [self.rpc, self.part]
        words += [f"session {self.session}"] if self.session is not None else []
        words += [f"conversation {self.conversation}"] if self.conversation is not None else []
        words += [f"level {self.level}"] if self.level or self.rpc in ("OpenSession", "RaiseTaint") else []
        words += [f"-> {self.answer}"] if self.answer else []
        words += [f"opens session {self.opened}"] if self.opened is not None else []
        words += ["without an audit row"] if not self.audited else []
        return " ".join(filter(None, words))


Moved = tuple[Step, State]


def beginning(*, ceiling: int, conversations: int, sessions: int, levels: int) -> State:
    """An agent that nothing has happened to."""
    return State(ceiling, Agent.LIVE, (0,) * conversations, (False,) * levels, (None,) * sessions)


def tidy(state: State) -> State:
    """*state*, without the sessions that have ended and of which no call is under way: they are as unknown ones."""
    sessions = tuple(
        session if session and (session.is_open or session.call or _awaited(state, number)) else None
        for number, session in enumerate(state.sessions)
    )
    return state if sessions == state.sessions else state._replace(sessions=sessions)


def shape(state: State) -> Hashable:
    """*state* without the numbers of its sessions and conversations: states of one shape go on alike."""
    conversations = range(len(state.taints))
    return min(_as_numbered(state, order) for order in itertools.permutations(conversations))


def _as_numbered(state: State, order: tuple[int, ...]) -> tuple[object, ...]:
    """*state*, with the conversations renumbered, and the sessions sorted."""
    call = state.host_call
    sessions = sorted(
        (order[session.conversation], session.is_open, session.seen, session.call or (), *_roles(call, number))
        if session
        else ()
        for number, session in enumerate(state.sessions)
    )
    taints = tuple(taint for _, taint in sorted(zip(order, state.taints, strict=True)))
    awaited = (call.rpc, call.level) if call else ()
    return taints, tuple(sessions), state.items, state.agent, state.ceiling, awaited


def _roles(call: HostCall | None, number: int) -> tuple[bool, bool]:
    return (call.session == number, number in call.found) if call else (False, False)


def _awaited(state: State, number: int) -> bool:
    return state.host_call is not None and state.host_call.session == number
