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
│   ├── NoteNotFound
│   │   ├── NoteIsAgentNote     it is in the other tier
│   │   └── NoteIsUserProfile   it is in the other tier
│   ├── BlockNotFound
│   ├── SharedBlockNotFound     not declared
│   ├── BlockNotAttached
│   ├── PassageNotFound
│   ├── AgentExists
│   ├── NoteExists              the id is taken by another content or tier
│   ├── BlockExists             shared already, or with a PUBLIC version already
│   ├── PassageExists           the id is taken by another text
│   ├── ConversationTainted     opened below the conversation's taint
│   ├── WriteLevelMismatch      only lower versions are visible
│   ├── EtagStale
│   ├── TierDisabled            the host has switched it off
│   ├── BudgetExceeded          the notes would be over the tier's budget
│   ├── TextNotFound            an edit's place is not in the block,
│   ├── TextNotUnique           or several times,
│   ├── LineOutOfRange          or beyond its last line
│   ├── BlockTooLarge
│   ├── PromptTooLarge
│   ├── TaintChanged            the taint was raised under a running call or page
│   └── MethodUnknown
├── Unavailable                 nothing is wrong with the call; try again
│   ├── Conflict                the database undid the transaction for another's sake; it may be run again
│   ├── Overloaded              too many calls in flight
│   └── DeadlineExceeded        the caller's time is over
├── StaleSession                the session is not open at the level it was looked for; never leaves the server
└── EgressViolation             an answer above the taint was held back: a wall below is broken

Errors carry no content, keys, tags or queries, but for the previews of BudgetExceeded, which pass the egress guard;
what a caller may read of them is in `rpc.status`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muniment_server.domain.classification import Classification
from muniment_server.domain.records import Usage


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How far a stream of passages came."""

    stored_count: int = 0
    existing_count: int = 0

    def after(self, outcomes: Sequence[str | None]) -> ImportProgress:
        """The progress after passages with these outcomes."""
        return ImportProgress(self.stored_count + outcomes.count("OK"), self.existing_count + outcomes.count("EXISTS"))


class MunimentError(Exception):
    """The root of all of ours."""

    progress: ImportProgress | None = None
    """How far a stream of passages had come when it failed."""


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


class NoteNotFound(Refusal):
    """No version of the note is visible to the session in the tier."""


class NoteIsAgentNote(NoteNotFound):
    """It is in the tier of the agent's own notes."""


class NoteIsUserProfile(NoteNotFound):
    """It is in the tier of the user's profile."""


class BlockNotFound(Refusal):
    """No version of the block is visible to the session."""


class SharedBlockNotFound(Refusal):
    """The block is not declared as shared."""


class BlockNotAttached(Refusal):
    """The block is not attached to the agent."""


class PassageNotFound(Refusal):
    """The passage is not visible to the session."""


class AgentExists(Refusal):
    """The agent id is taken."""


class NoteExists(Refusal):
    """The note id is taken by a visible note with another content or tier."""


class BlockExists(Refusal):
    """The block is shared already, or content was given where a PUBLIC version is."""


class PassageExists(Refusal):
    """The passage id is taken by a visible passage with another content."""


class ConversationTainted(Refusal):
    """The conversation has seen more than the session is to be opened at."""


class WriteLevelMismatch(Refusal):
    """Only lower versions are visible, and a session writes at its own level only."""


class EtagStale(Refusal):
    """The etag is not that of the version that Get would return."""


class TierDisabled(Refusal):
    """The host has switched the tier off."""


@dataclass(frozen=True, slots=True)
class BudgetEntry:
    """One note that takes room."""

    note_id: str
    length_chars: int
    preview: str
    own_level: bool
    classification: Classification


class BudgetExceeded(Refusal):
    """The notes would be over the tier's budget. Carries what the session needs to make room, from what it sees."""

    def __init__(self, usage: Usage, *, would_be_chars: int, entries: tuple[BudgetEntry, ...]) -> None:
        super().__init__()
        self.usage = usage
        self.would_be_chars = would_be_chars
        self.entries = entries


class TextNotFound(Refusal):
    """The text to replace is not in the block."""


class TextNotUnique(Refusal):
    """The text to replace is in the block more than once."""


class LineOutOfRange(Refusal):
    """The block has fewer lines."""


class BlockTooLarge(Refusal):
    """The block would be larger than a block may be."""


class PromptTooLarge(Refusal):
    """The prompt would be larger than a prompt may be."""


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
