"""Every way in which a call fails.

MunimentError                   anything but OK; itself for a status that is none of these
├── InvalidArgument             fields break rules: see `violations`
│   └── InvalidPageToken        damaged, or made by another method, filter or credential
├── Unauthenticated             the credential is unknown, revoked, closed or expired
├── PermissionDenied
│   ├── PrincipalNotAllowed     the method is not for this kind of caller
│   └── CeilingExceeded         above the host key's ceiling
├── NotFound
│   ├── AgentNotFound
│   ├── SessionNotFound         or above the ceiling, or not open
│   ├── MemoryNotFound          no version of the key is visible
│   ├── NoteNotFound            no version of the note is visible in this tier
│   ├── BlockNotFound           no version of the block is visible
│   ├── PassageNotFound         not visible
│   ├── SharedBlockNotFound     not declared as shared
│   └── BlockNotAttached        not to this agent
├── AlreadyExists
│   ├── AgentExists
│   ├── NoteExists              the id is taken, by other content or in the other tier
│   ├── BlockExists             shared already, or it has a PUBLIC version already
│   └── PassageExists           the id is taken, by other content
├── FailedPrecondition
│   ├── ConversationTainted     opened below the conversation's taint
│   ├── WriteLevelMismatch      only lower versions are visible
│   ├── TierDisabled            switched off by the host
│   ├── BudgetExceeded          see `usage`, `over_by_chars`, `entries`
│   ├── TextNotFound            nowhere in the block
│   ├── TextNotUnique           in several places of the block
│   ├── LineOutOfRange          the block has fewer lines
│   ├── BlockTooLarge           over 64 KiB
│   └── PromptTooLarge          over 2 MiB
├── Aborted                     start again with what is true now
│   ├── EtagStale
│   └── TaintChanged            the taint was raised under a running call or between two pages
├── ResourceExhausted
│   └── Overloaded              too many calls in flight: see `retry_after`
├── Unavailable                 the server or its database is away: see `retry_after`
├── DeadlineExceeded            a write may or may not have happened
├── Unimplemented
│   └── MethodUnknown           the server is older than this client
└── InternalError               a fault of the server: see `incident`

The leaves are the reasons of the contract (`ErrorReason`); a reason that this client does not know
becomes the class of its status. Arguments that cannot be sent at all are a ValueError.
"""

from __future__ import annotations

from dataclasses import dataclass

import grpc

from muniment.values import BudgetEntry, ImportCounts, Usage


@dataclass(frozen=True, slots=True)
class Violation:
    """One field of the request and the rule that it breaks."""

    field: str
    description: str


@dataclass(frozen=True, slots=True)
class Overrun:
    """Notes that would be over their tier's budget."""

    usage: Usage
    would_be_chars: int
    over_by_chars: int
    entries: tuple[BudgetEntry, ...]


@dataclass(frozen=True, slots=True)
class Details:
    """What a failure says beside its reason. What it does not say is None or empty."""

    violations: tuple[Violation, ...] = ()
    retry_after: float | None = None
    incident: str = ""
    overrun: Overrun | None = None
    progress: ImportCounts | None = None


NO_DETAILS = Details()


class MunimentError(Exception):
    """A call failed.

    *reason* is that of the contract without its prefix, such as `ETAG_STALE`; empty when the answer does
    not come from Muniment itself. *message* is for people and may change.
    """

    def __init__(
        self, code: grpc.StatusCode, reason: str = "", message: str = "", details: Details = NO_DETAILS
    ) -> None:
        super().__init__(code, reason, message, details)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def __str__(self) -> str:
        return f"{self.reason or self.code.name}: {self.message}"

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the server asks to be tried again. None: it does not say."""
        return self.details.retry_after

    @property
    def progress(self) -> ImportCounts | None:
        """How far `import_passages` came: these passages are stored. None: the server does not say."""
        return self.details.progress


class InvalidArgument(MunimentError):
    """Fields of the request break rules of the contract."""

    def __str__(self) -> str:
        broken = "; ".join(f"{each.field}: {each.description}" for each in self.violations)
        return f"{super().__str__()} ({broken})" if broken else super().__str__()

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The fields, each with the rule that it breaks."""
        return self.details.violations


class InvalidPageToken(InvalidArgument):
    """The page token is damaged, or was made by another method, filter or credential."""


class Unauthenticated(MunimentError):
    """The credential is unknown, revoked, closed or expired. Which one is never said."""


class PermissionDenied(MunimentError):
    """The caller may not do this."""


class PrincipalNotAllowed(PermissionDenied):
    """The method is not for this kind of caller."""


class CeilingExceeded(PermissionDenied):
    """The level is above the ceiling of the host key."""


class NotFound(MunimentError):
    """There is no such thing, as far as the caller may know."""


class AgentNotFound(NotFound):
    """The tenant has no such agent."""


class SessionNotFound(NotFound):
    """There is no such session, or it is above the ceiling, or (where an open one is needed) not open."""


class MemoryNotFound(NotFound):
    """No version of the key is visible to the session."""


class NoteNotFound(NotFound):
    """No version of the note is visible to the session in this tier."""


class BlockNotFound(NotFound):
    """No version of the block is visible to the session."""


class PassageNotFound(NotFound):
    """The passage is not visible to the session."""


class SharedBlockNotFound(NotFound):
    """The block is not declared as shared."""


class BlockNotAttached(NotFound):
    """The block is not attached to the agent."""


class AlreadyExists(MunimentError):
    """The name is taken."""


class AgentExists(AlreadyExists):
    """The agent id is taken."""


class NoteExists(AlreadyExists):
    """The note id is taken by a visible note with other content or of the other tier."""


class BlockExists(AlreadyExists):
    """The block is shared already, or has a PUBLIC version already."""


class PassageExists(AlreadyExists):
    """The passage id is taken by a visible passage with other content."""


class FailedPrecondition(MunimentError):
    """The call does not fit what is there."""


class ConversationTainted(FailedPrecondition):
    """The conversation has seen more sensitive information than the session is to be opened at."""


class WriteLevelMismatch(FailedPrecondition):
    """Only lower versions of the name are visible, and a session writes at its own level only."""


class TierDisabled(FailedPrecondition):
    """The host has switched the tier off. Its notes can be listed, searched and deleted."""


class BudgetExceeded(FailedPrecondition):
    """The notes would be over the tier's budget. Nothing was changed."""

    @property
    def usage(self) -> Usage | None:
        """The tier's usage as it is. None: the server did not say."""
        return self.details.overrun.usage if self.details.overrun else None

    @property
    def would_be_chars(self) -> int:
        """What the notes would have taken."""
        return self.details.overrun.would_be_chars if self.details.overrun else 0

    @property
    def over_by_chars(self) -> int:
        """By how much that is too much."""
        return self.details.overrun.over_by_chars if self.details.overrun else 0

    @property
    def entries(self) -> tuple[BudgetEntry, ...]:
        """The largest notes of the tier, largest first, ten at most: what to shorten or delete."""
        return self.details.overrun.entries if self.details.overrun else ()


class TextNotFound(FailedPrecondition):
    """The text to replace is not in the block."""


class TextNotUnique(FailedPrecondition):
    """The text to replace is in the block more than once. Give more of what stands around it."""


class LineOutOfRange(FailedPrecondition):
    """The block has fewer lines."""


class BlockTooLarge(FailedPrecondition):
    """The block would be larger than 64 KiB."""


class PromptTooLarge(FailedPrecondition):
    """The prompt would be larger than 2 MiB."""


class Aborted(MunimentError):
    """Something changed meanwhile. Start again with what is true now."""


class EtagStale(Aborted):
    """The etag is not that of the version that Get would return. Read again, then write."""


class TaintChanged(Aborted):
    """The taint was raised meanwhile. Start again, at the new taint."""


class ResourceExhausted(MunimentError):
    """Something is used up."""


class Overloaded(ResourceExhausted):
    """Too many calls are in flight."""


class Unavailable(MunimentError):
    """The server or its database is away. A write may or may not have happened."""


class DeadlineExceeded(MunimentError):
    """The deadline passed before the answer was ready. A write may or may not have happened."""


class Unimplemented(MunimentError):
    """The server cannot do this."""


class MethodUnknown(Unimplemented):
    """The server has no such method."""


class InternalError(MunimentError):
    """A fault of the server."""

    @property
    def incident(self) -> str:
        """Finds the fault in the server's log. Empty: the server did not say."""
        return self.details.incident
