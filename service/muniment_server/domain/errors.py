"""Every way in which Muniment says no.

MunimentError
├── Refusal                     a rule of the contract says no; the caller did or asked something
│   ├── InvalidArgument         fields break rules
│   ├── InvalidPageToken        damaged, or made by another method, filter or credential
│   ├── Unauthenticated         no credential that is good now
│   ├── PrincipalNotAllowed     the method is not for this kind of caller
│   ├── CeilingExceeded         above the host key's ceiling
│   ├── AgentNotFound
│   ├── SessionNotFound
│   ├── MemoryNotFound
│   ├── AgentExists
│   ├── ConversationTainted     opened below the conversation's taint
│   ├── WriteLevelMismatch      only lower versions are visible
│   ├── EtagStale
│   ├── TaintChanged            the taint was raised under a running call or page
│   └── MethodUnknown
├── Unavailable                 nothing is wrong with the call; try again
│   ├── Conflict                the database undid the transaction for another's sake; it may be run again
│   ├── Overloaded              too many calls in flight
│   └── DeadlineExceeded        the caller's time is over
├── StaleSession                the session is not open at the level it was looked for; never leaves the server
└── EgressViolation             an answer above the taint was held back: a wall below is broken

Errors carry no content, keys, tags or queries: what a caller may read of them is in `rpc.status`.
"""

from __future__ import annotations

from dataclasses import dataclass


class MunimentError(Exception):
    """The root of all of ours."""


class Refusal(MunimentError):
    """A rule of the contract says no."""


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One field and the rule that it breaks, both in fixed words."""

    field: str
    rule: str


class InvalidArgument(Refusal):
    """Fields of the request break rules."""

    def __init__(self, *violations: FieldViolation) -> None:
        super().__init__()
        self.violations = violations


class InvalidPageToken(Refusal):
    """The page token is damaged, or was made by another method, filter or credential."""


class Unauthenticated(Refusal):
    """There is no credential that is good now. Why is never said."""


class PrincipalNotAllowed(Refusal):
    """The method is not for this kind of caller."""


class CeilingExceeded(Refusal):
    """The level is above the ceiling of the host key."""


class AgentNotFound(Refusal):
    """The tenant has no such agent."""


class SessionNotFound(Refusal):
    """There is no such session, or it is above the ceiling, or not open."""


class MemoryNotFound(Refusal):
    """No version of the key is visible to the session."""


class AgentExists(Refusal):
    """The agent id is taken."""


class ConversationTainted(Refusal):
    """The conversation has seen more than the session is to be opened at."""


class WriteLevelMismatch(Refusal):
    """Only lower versions are visible, and a session writes at its own level only."""


class EtagStale(Refusal):
    """The etag is not that of the version that Get would return."""


class TaintChanged(Refusal):
    """The taint was raised under a running call, or between two pages."""


class MethodUnknown(Refusal):
    """The server has no such method."""


class Unavailable(MunimentError):
    """Nothing is wrong with the call; it may be tried again."""


class Conflict(Unavailable):
    """The database undid the transaction for another's sake. Nothing happened; it may be run again at once."""


class Overloaded(Unavailable):
    """Too many calls are in flight."""


class DeadlineExceeded(Unavailable):
    """The caller's deadline passed, or the caller went away."""


class StaleSession(MunimentError):
    """The session is not open at the level it was looked for. Never leaves the server."""


class EgressViolation(MunimentError):
    """An answer above the taint was held back: a wall below is broken."""
