"""The errors of calls.

MunimentError                   the base class, and any status that is none of these
├── InvalidArgument             fields break rules: see `violations`
│   └── InvalidPageToken        damaged, or made by another method, filter or credential
├── Unauthenticated             the credential is unknown, revoked, frozen or closed
│   └── CredentialExpired       it was valid: open the session again
├── PermissionDenied
│   ├── PrincipalNotAllowed     the method is not for this kind of caller
│   ├── SessionReadOnly         the host has opened the session for reading alone
│   ├── CeilingExceeded         above the host key's ceiling
│   ├── AgentCeilingExceeded    above the agent's ceiling
│   ├── IntegrityExceeded       the host key is for untrusted sessions only
│   ├── AgentAboveCeiling       the key knows the agent, but does not reach its ceiling
│   ├── ReleaseRightMissing     the key may not declassify, or not endorse
│   ├── ReleaseOwnRequest       the key has asked for the release that it approves
│   └── ConversationCeilingExceeded   above the conversation's ceiling
├── NotFound
│   ├── AgentNotFound
│   ├── SessionNotFound         or above the ceiling, or not open
│   ├── MemoryNotFound          no version of the key is visible
│   ├── NoteNotFound            no version of the note is visible in this tier
│   ├── BlockNotFound           no version of the block is visible
│   ├── PassageNotFound         not visible
│   ├── ReleaseNotFound
│   ├── SharedBlockNotFound     not declared as shared
│   └── BlockNotAttached        not to this agent
├── AlreadyExists
│   ├── AgentExists
│   ├── MemoryExists            a memory with the new key is visible
│   ├── NoteExists              a note with other content or in the other tier has the id
│   ├── BlockExists             already shared, or already has a PUBLIC version
│   ├── PassageExists           a passage with other content has the id
│   └── ItemExists              one of the name is live at the level
├── FailedPrecondition
│   ├── AgentHeld               an operator keeps all that the agent has
│   ├── ConversationTainted     opened below the conversation's taint: see `taint`
│   ├── WriteLevelMismatch      only lower versions are visible
│   ├── TierDisabled            disabled by the host
│   ├── BudgetExceeded          see `usage`, `over_by_chars`, `entries`
│   ├── TextNotFound            the text to replace is not in the block
│   ├── TextNotUnique           the text to replace occurs more than once
│   ├── LineOutOfRange          the block has fewer lines
│   ├── BlockTooLarge           over 64 KiB
│   ├── ReleaseNotOpen          rejected, or written already
│   ├── ReleaseExpired          not approved in time
│   ├── ReleaseHashMismatch     another text was reviewed
│   ├── ReleaseSourceChanged    the item is not, or no longer, what the release names
│   └── PromptTooLarge          over 2 MiB; only from servers of 0.1.0
├── Aborted                     something has changed: read again, and retry
│   ├── EtagStale
│   └── TaintChanged            the taint was raised during a call or between two pages
├── ResourceExhausted
│   ├── Overloaded              too many calls in flight: see `retry_after`
│   ├── RateLimited             too many calls a second: see `retry_after`
│   ├── QuotaExceeded           the agent stores as much at this level as its limits allow: see `quota`
│   └── StorageFull             the disk of the database is full, or nearly so
├── Unavailable                 the server or its database is down: see `retry_after`
│   └── TLSMismatch             a server was reached, but TLS is set up differently there: see `mismatch`
├── DeadlineExceeded            a write may or may not have happened
├── Unimplemented
│   └── MethodUnknown           the server is older than this client
└── InternalError               a bug or failure in the server: see `request_id`

The leaves are the reasons of the contract (`ErrorReason`). For a reason that this client does not know, the class of
the status is raised. Arguments that cannot be sent raise ValueError.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import grpc

from muniment.values import BudgetEntry, Classification, ImportCounts, Integrity, Usage


@dataclass(frozen=True, slots=True)
class Violation:
    """One field of the request and the rule that it breaks."""

    field: str
    description: str


@dataclass(frozen=True, slots=True)
class Overrun:
    """The details of notes that would exceed the budget of their tier."""

    usage: Usage
    would_be_chars: int
    over_by_chars: int
    entries: tuple[BudgetEntry, ...]


@dataclass(frozen=True, slots=True)
class Details:
    """The details of an error in addition to its reason. Missing ones are None or empty."""

    violations: tuple[Violation, ...] = ()
    retry_after: float | None = None
    incident: str = ""
    request_id: str = ""
    overrun: Overrun | None = None
    progress: ImportCounts | None = None
    quota: str = ""
    mismatch: str = ""
    taint: Classification | None = None
    integrity: Integrity = Integrity.UNTRUSTED


NO_DETAILS = Details()

REMEDIES = {
    "tls_expected": "give tls=True, or tls=TLS(ca=…) if the authority is your own (MUNIMENT_TLS_CA)",
    "no_tls": "connect without tls and MUNIMENT_TLS_CA, or give the server a certificate",
    "unknown_authority": "name the file of its authority: tls=TLS(ca=…), or MUNIMENT_TLS_CA",
    "other_name": "connect by a name or address that is in the certificate",
    "certificate_invalid": "give the server another one",
    "certificate_expected": "give tls=TLS(certificate=…, key=…)",
}
"""What to do about each kind of TLS mismatch."""


class MunimentError(Exception):
    """A call failed.

    *reason* is that of the contract without its prefix, such as `ETAG_STALE`. It is empty if the error does not come
    from Muniment itself. *message* is for people, and may change.
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
        facts = "; ".join(self._facts())
        return f"{self.summary} ({facts})" if facts else self.summary

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def _facts(self) -> Iterator[str]:
        """What is printed in parentheses: numbers, when to retry, and the request id."""
        if self.progress is not None:
            yield f"{self.progress.stored_count:,} passages stored, {self.progress.existing_count:,} already there"
        if self.retry_after is not None:
            yield f"retry after {self.retry_after:g} s"
        if self.request_id:
            yield f"request {self.request_id}"

    @property
    def summary(self) -> str:
        """The printed error without numbers and request id: the same text for the same refusal."""
        broken = "; ".join(f"{each.field}: {each.description}" for each in self.violations)
        return f"{self.reason or self.code.name}: {self.message}" + (f" ({broken})" if broken else "")

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The fields that are refused, each with the reason. Empty if the server names none."""
        return self.details.violations

    @property
    def request_id(self) -> str:
        """Identifies the call in the server's log; after retries, the last attempt. Empty if no server answered."""
        return self.details.request_id

    @property
    def retry_after(self) -> float | None:
        """After how many seconds the server asks for a retry. None if it does not say."""
        return self.details.retry_after

    @property
    def progress(self) -> ImportCounts | None:
        """How many passages `import_passages` has stored. None if the server does not say."""
        return self.details.progress


class InvalidArgument(MunimentError):
    """Fields of the request break rules of the contract: see `violations`."""


class InvalidPageToken(InvalidArgument):
    """The page token is damaged, or was made by another method, filter or credential."""


class Unauthenticated(MunimentError):
    """The credential is unknown, revoked, frozen or closed. The server never says which."""


class CredentialExpired(Unauthenticated):
    """The host key has expired, or the session has and was not closed before. The call was not executed."""


class PermissionDenied(MunimentError):
    """The caller may not do this."""


class PrincipalNotAllowed(PermissionDenied):
    """The method is not for this kind of caller."""


class SessionReadOnly(PermissionDenied):
    """The host has opened the session for reading alone."""


class CeilingExceeded(PermissionDenied):
    """The level is above the ceiling of the host key."""


class IntegrityExceeded(PermissionDenied):
    """The host key is for untrusted sessions only."""


class ConversationCeilingExceeded(PermissionDenied):
    """The level is above the ceiling of the conversation: a key that reaches less has begun it."""


class AgentAboveCeiling(PermissionDenied):
    """The key knows the agent, but only a key that reaches the agent's ceiling may change it."""


class AgentCeilingExceeded(PermissionDenied):
    """The level is above the ceiling of the agent."""


class ReleaseRightMissing(PermissionDenied):
    """The key may not declassify, or not endorse. The operator gives these rights to a new key."""


class ReleaseOwnRequest(PermissionDenied):
    """The key has asked for the release, so another key must approve it."""


class NotFound(MunimentError):
    """There is none, or none that the caller may know of."""


class AgentNotFound(NotFound):
    """The tenant has no such agent, or it is not known to keys of this ceiling."""


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


class ReleaseNotFound(NotFound):
    """There is no such release, or the key does not reach the ceiling of its agent."""


class SharedBlockNotFound(NotFound):
    """The block is not declared as shared."""


class BlockNotAttached(NotFound):
    """The block is not attached to the agent."""


class AlreadyExists(MunimentError):
    """The name is already used."""


class AgentExists(AlreadyExists):
    """An agent with that id already exists."""


class MemoryExists(AlreadyExists):
    """A memory with the new key is visible."""


class NoteExists(AlreadyExists):
    """A visible note with other content, or of the other tier, has that id."""


class BlockExists(AlreadyExists):
    """The block is already shared, or already has a PUBLIC version."""


class PassageExists(AlreadyExists):
    """A visible passage with other content has that id."""


class ItemExists(AlreadyExists):
    """An item of the name is live at the level, so that no deleted one can come back."""


class FailedPrecondition(MunimentError):
    """The current state does not allow the call."""


class AgentHeld(FailedPrecondition):
    """An operator keeps all that the agent has: nothing of it can be erased until the hold ends."""


class ConversationTainted(FailedPrecondition):
    """The session would be opened below the taint of its conversation."""

    def _facts(self) -> Iterator[str]:
        if self.taint is not None:
            yield f"the taint is {self.taint.name}"
        yield from super()._facts()

    @property
    def taint(self) -> Classification | None:
        """The taint of the conversation. None if the server did not say."""
        return self.details.taint

    @property
    def integrity(self) -> Integrity:
        """The integrity of the conversation."""
        return self.details.integrity


class WriteLevelMismatch(FailedPrecondition):
    """Only lower versions of the name are visible, and a session writes at its own level only."""


class TierDisabled(FailedPrecondition):
    """The host has disabled the tier. Its notes can be listed, searched and deleted."""


class BudgetExceeded(FailedPrecondition):
    """The notes would exceed the tier's budget. Nothing was changed."""

    def _facts(self) -> Iterator[str]:
        if self.usage is not None:
            size = f"{self.would_be_chars:,} of {self.usage.limit_chars:,}"
            yield f"over by {self.over_by_chars:,} characters: {size}"
        yield from super()._facts()

    @property
    def usage(self) -> Usage | None:
        """The tier's current usage. None if the server did not say."""
        return self.details.overrun.usage if self.details.overrun else None

    @property
    def would_be_chars(self) -> int:
        """How many characters the notes would have taken."""
        return self.details.overrun.would_be_chars if self.details.overrun else 0

    @property
    def over_by_chars(self) -> int:
        """By how many characters that exceeds the budget."""
        return self.details.overrun.over_by_chars if self.details.overrun else 0

    @property
    def entries(self) -> tuple[BudgetEntry, ...]:
        """Up to ten notes of the tier, largest first: candidates to shorten or delete."""
        return self.details.overrun.entries if self.details.overrun else ()


class TextNotFound(FailedPrecondition):
    """The text to replace is not in the block."""


class TextNotUnique(FailedPrecondition):
    """The text to replace occurs more than once. Include more of its context."""


class LineOutOfRange(FailedPrecondition):
    """The block has fewer lines."""


class BlockTooLarge(FailedPrecondition):
    """The block would be larger than 64 KiB."""


class ReleaseNotOpen(FailedPrecondition):
    """The release was rejected, or is already written."""


class ReleaseExpired(FailedPrecondition):
    """The release was not approved in time."""


class ReleaseHashMismatch(FailedPrecondition):
    """The hash is not that of the release: another text was reviewed."""


class ReleaseSourceChanged(FailedPrecondition):
    """The item is not, or no longer, what the release names. Read it again, and ask for another release."""


class PromptTooLarge(FailedPrecondition):
    """The prompt would be larger than 2 MiB. Only raised by servers of 0.1.0: later ones leave out what has no room."""


class Aborted(MunimentError):
    """Something has changed meanwhile. Read again, and retry."""


class EtagStale(Aborted):
    """The etag is not that of the version that Get would return. Read again, then write.

    After `save_memories`, `violations` names the memories.
    """


class TaintChanged(Aborted):
    """The taint was raised meanwhile. Start again at the new taint."""


class ResourceExhausted(MunimentError):
    """A limit is exhausted."""


class Overloaded(ResourceExhausted):
    """Too many calls are in flight."""


class RateLimited(ResourceExhausted):
    """The session, or its agent's sessions at its level, have made as many calls as the agent's limit allows."""


class QuotaExceeded(ResourceExhausted):
    """The agent would store more items, bytes or revisions at the session's level than its limits allow."""

    def _facts(self) -> Iterator[str]:
        if self.quota:
            yield f"quota: {self.quota}"
        yield from super()._facts()

    @property
    def quota(self) -> str:
        """What there would be too many of, such as `items`. Empty if the server did not say."""
        return self.details.quota


class StorageFull(ResourceExhausted):
    """The disk of the database is full, or nearly so. Reads and deletions go on; nothing else was done."""


class Unavailable(MunimentError):
    """The server or its database is down. A write may or may not have happened."""


class TLSMismatch(Unavailable):
    """A server was reached, but TLS is set up differently there. Nothing was sent."""

    @property
    def summary(self) -> str:
        """What is wrong, and what to do."""
        return f"{super().summary}: {REMEDIES[self.mismatch]}"

    @property
    def mismatch(self) -> str:
        """What is wrong, as a key of REMEDIES."""
        return self.details.mismatch


class DeadlineExceeded(MunimentError):
    """The deadline passed before the response arrived. A write may or may not have happened."""


class Unimplemented(MunimentError):
    """The server cannot do this."""


class MethodUnknown(Unimplemented):
    """The server has no such method."""


class InternalError(MunimentError):
    """A bug or failure in the server."""

    @property
    def incident(self) -> str:
        """The request id, as the status itself has it. Empty if the server did not say."""
        return self.details.incident
