"""The states of the machine. Named tuples, not dataclasses: millions of them are hashed and compared."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator
from enum import IntEnum
from typing import NamedTuple

PUBLIC_TRUSTED, PUBLIC = 1, 2
"""A label is a number: twice its level, less one if it is trusted. The highest visible one shadows the others."""
UNKNOWN_TRUSTED, UNKNOWN = -1, 0
"""The labels that a host names if it names an integrity only, or nothing."""
LEVELS = (2, 4, 6)
"""The labels of three levels, of which no host asks for a trusted one."""
PRODUCT = (1, 2, 3, 4)
"""The labels of two levels."""


def level_of(label: int) -> int:
    """The level of a label; 0 if it names none."""
    return (label + 1) // 2


def is_trusted(label: int) -> bool:
    """Whether the integrity of a label is TRUSTED."""
    return label % 2 == 1


def label_of(level: int, *, trusted: bool) -> int:
    """The label of a level and an integrity."""
    return 2 * level - trusted


def flows(source: int, target: int) -> bool:
    """Whether what has the label *source* may reach *target*: by its level, and by its integrity."""
    return level_of(source) <= level_of(target) and is_trusted(source) >= is_trusted(target)


def joined(one: int, other: int) -> int:
    """The least label that both flow to. 0, of what has none yet, flows to all."""
    if not one or not other:
        return one or other
    return label_of(max(level_of(one), level_of(other)), trusted=is_trusted(one) and is_trusted(other))


class Agent(IntEnum):
    """How far DeleteAgent has got."""

    LIVE = 1
    MARKED = 2
    DELETED = 3
    ERASED = 4


class Call(NamedTuple):
    """A call of a session: a write that holds the session lock, or a read whose answer is under way."""

    rpc: str
    label: int
    """Of the connection of a write; of the version that a read shows, 0 if it shows none."""


class Session(NamedTuple):
    """A session, and the model behind it."""

    conversation: int
    is_open: bool = True
    seen: int = PUBLIC
    """The join of what its model has seen. The server does not know it: the taint must cover it."""
    call: Call | None = None


class HostCall(NamedTuple):
    """RaiseTaint or ResetSession, between the statement that finds its session and the one that has its effect."""

    rpc: str
    session: int
    label: int = UNKNOWN
    found: tuple[int, ...] = ()
    """The open sessions of the conversation when the call began."""


class State(NamedTuple):
    """Everything: one agent, its conversations and sessions, and the versions of one name."""

    labels: tuple[int, ...]
    """What conversations and items may have: with any two of them, their join."""
    ceiling: int
    agent: Agent
    taints: tuple[int, ...]
    """Of each conversation. 0: there is none yet."""
    items: tuple[bool, ...]
    """For each label, whether there is a live version."""
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

    def live(self) -> Iterator[int]:
        """The labels that have a live version."""
        return (label for label, live in zip(self.labels, self.items, strict=True) if live)

    def visible(self, label: int) -> tuple[int, ...]:
        """The labels of live items that flow to *label*."""
        return tuple(source for source in self.live() if flows(source, label))


class Step(NamedTuple):
    """One step of one call, which no other step interrupts."""

    rpc: str
    part: str = ""
    """`begins` or `ends`, for a call of two steps."""
    session: int | None = None
    conversation: int | None = None
    label: int = UNKNOWN
    """What a host asks for; for a session, the label of the connection, or of what is shown."""
    answer: str = ""
    """Empty if the call goes on."""
    written: int = 0
    """The label with which a version was written or deleted."""
    audited: bool = True
    opened: int | None = None
    """The session that a call opens."""

    def __str__(self) -> str:
        words = [self.rpc, self.part]
        words += [f"session {self.session}"] if self.session is not None else []
        words += [f"conversation {self.conversation}"] if self.conversation is not None else []
        words += [f"label {self.label}"] if self.label or self.rpc in ("OpenSession", "RaiseTaint") else []
        words += [f"-> {self.answer}"] if self.answer else []
        words += [f"opens session {self.opened}"] if self.opened is not None else []
        words += ["without an audit row"] if not self.audited else []
        return " ".join(filter(None, words))


Moved = tuple[Step, State]


def beginning(*, ceiling: int, conversations: int, sessions: int, labels: tuple[int, ...]) -> State:
    """An agent that nothing has happened to."""
    return State(labels, ceiling, Agent.LIVE, (0,) * conversations, (False,) * len(labels), (None,) * sessions)


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
    awaited = (call.rpc, call.label) if call else ()
    return taints, tuple(sessions), state.items, state.agent, state.ceiling, awaited


def _roles(call: HostCall | None, number: int) -> tuple[bool, bool]:
    return (call.session == number, number in call.found) if call else (False, False)


def _awaited(state: State, number: int) -> bool:
    return state.host_call is not None and state.host_call.session == number
