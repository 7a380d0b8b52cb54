"""The errors of the server.

MunimentError
├── Refusal                     the request breaks a rule of the contract
│   ├── InvalidArgument         fields break rules
│   ├── InvalidPageToken        damaged, or made by another method, filter or credential
│   ├── Unauthenticated         no valid credential
│   │   ├── SessionExpired      the session of the token has expired
│   │   └── HostKeyExpired      the host key has expired
│   ├── PrincipalNotAllowed     the method is not for this kind of caller
│   ├── SessionReadOnly         the method writes, and the session may only read
│   ├── CeilingExceeded         above the host key's ceiling
│   ├── IntegrityExceeded       the host key is for untrusted sessions only
│   ├── AgentCeilingExceeded    the level is above the agent's ceiling
│   ├── ConversationCeilingExceeded  the level is above the conversation's ceiling
│   ├── AgentAboveCeiling       the key knows the agent, but does not reach its ceiling
│   ├── AgentHeld               an operator keeps all that the agent has
│   ├── AgentNotFound
│   ├── SessionNotFound
│   ├── MemoryNotFound
│   ├── NoteNotFound
│   │   ├── NoteIsAgentNote     it is in the other tier
│   │   └── NoteIsUserProfile   it is in the other tier
│   ├── BlockNotFound
│   ├── SharedBlockNotFound     not declared as shared
│   ├── BlockNotAttached
│   ├── PassageNotFound
│   ├── AgentExists
│   ├── NoteExists              the id belongs to a note with another content or tier
│   ├── BlockExists             already shared, or already has a PUBLIC version
│   ├── MemoryExists            a visible memory has the new key
│   ├── PassageExists           the id belongs to a passage with another content
│   ├── ItemExists              live at its level: nothing to undelete
│   ├── ReleaseRightMissing     the host key may not declassify, or not endorse
│   ├── ReleaseNotFound
│   ├── ReleaseNotOpen          rejected, or written already
│   ├── ReleaseExpired          not approved in time
│   ├── ReleaseOwnRequest       the key has asked for the release that it approves
│   ├── ReleaseHashMismatch     another text was reviewed
│   ├── ReleaseSourceChanged    the item is not, or no longer, what the release names
│   ├── ConversationTainted     opened below the conversation's taint
│   ├── WriteLevelMismatch      only lower versions are visible
│   ├── EtagStale
│   ├── TierDisabled            the host has disabled the tier
│   ├── BudgetExceeded          the notes would exceed the tier's budget
│   ├── QuotaExceeded           the agent would store more at the session's level than its limits allow
│   │   ├── ItemQuotaExceeded
│   │   ├── ByteQuotaExceeded
│   │   ├── RevisionQuotaExceeded   of one item
│   │   └── TenantQuotaExceeded     for a host: its agents together may take as much as the tenant
│   ├── TextNotFound            the text to replace is not in the block
│   ├── TextNotUnique           the text to replace occurs more than once
│   ├── LineOutOfRange          the block has fewer lines
│   ├── BlockTooLarge
│   ├── TaintChanged            the taint was raised during a call, or between two pages
│   └── MethodUnknown
├── Unavailable                 nothing is wrong with the request; retry
│   ├── Conflict                the database rolled back the transaction; it can be retried at once
│   ├── Overloaded              too many calls in flight
│   ├── RateLimited             too many calls a second of this session, or of its agent at its level
│   ├── StorageFull             the disk of the database is full, or nearly so
│   └── DeadlineExceeded        the caller's deadline has passed
├── StorageDamaged              a page, row or index of the database is damaged; a retry heals nothing
├── StaleSession                the session is not open at the expected level; never leaves the server
└── EgressViolation             a response above the taint was withheld: another guard has failed

Errors contain no content, keys, tags or queries, except for the previews in BudgetExceeded, which pass the egress
filter. What a caller sees of each error is in `monitor.status`.
"""

from __future__ import annotations

from dataclasses import dataclass

from muniment_server.domain.budgets import BudgetEntry, Usage
from muniment_server.domain.classification import Label


class MunimentError(Exception):
    """The base class of all errors of the server."""

    detail: object = None
    """A message of the contract to send with the status, set by the noun that raises the error. None sends none."""
    cause: str = ""
    """The SQLSTATE of the database's failure behind it, for the log. Never sent."""


class Refusal(MunimentError):
    """The request breaks a rule of the contract."""


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One field and the rule that it breaks. Both are fixed texts."""

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
    """The call has no valid credential. The caller learns only whether a genuine one has expired."""


class SessionExpired(Unauthenticated):
    """The token is that of a session that has expired, and was not closed before."""


class HostKeyExpired(Unauthenticated):
    """The credential is a host key that has expired, and is neither revoked nor frozen."""


class PrincipalNotAllowed(Refusal):
    """The method is not for this kind of caller."""


class SessionReadOnly(Refusal):
    """The method writes, and the session may only read."""


class CeilingExceeded(Refusal):
    """The level is above the ceiling of the host key."""


class IntegrityExceeded(Refusal):
    """The host key is for untrusted sessions only."""


class AgentCeilingExceeded(Refusal):
    """The level is above the ceiling of the agent."""


class ConversationCeilingExceeded(Refusal):
    """The level is above the ceiling of the conversation."""


class AgentAboveCeiling(Refusal):
    """The host key knows the agent, but changes it only if it reaches the ceiling of the agent."""


class AgentHeld(Refusal):
    """An operator keeps all that the agent has: nothing of it can be erased."""


class AgentNotFound(Refusal):
    """The tenant has no such agent, or the host key does not know it."""


class SessionNotFound(Refusal):
    """There is no such session, or it is above the ceiling, or not open."""


class MemoryNotFound(Refusal):
    """No version of the key is visible to the session."""


class NoteNotFound(Refusal):
    """No version of the note is visible to the session in the tier."""


class NoteIsAgentNote(NoteNotFound):
    """The note is in the tier of the agent's own notes."""


class NoteIsUserProfile(NoteNotFound):
    """The note is in the tier of the user profile."""


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
    """The note id belongs to a visible note with another content or tier."""


class BlockExists(Refusal):
    """The block is already shared, or content was given although a PUBLIC version exists."""


class MemoryExists(Refusal):
    """The new key of a memory is that of a visible memory."""


class PassageExists(Refusal):
    """The passage id belongs to a visible passage with another content."""


class ItemExists(Refusal):
    """An item of the name is live at the level, so that no deleted one can come back."""


class ReleaseRightMissing(Refusal):
    """The host key lacks a right that the release needs: to declassify, or to endorse."""


class ReleaseNotFound(Refusal):
    """There is no such release, or the key does not reach the ceiling of its agent."""


class ReleaseNotOpen(Refusal):
    """The release was rejected, or is already written."""


class ReleaseExpired(Refusal):
    """The release was not approved in time."""


class ReleaseOwnRequest(Refusal):
    """The key has asked for the release, so another must approve it."""


class ReleaseHashMismatch(Refusal):
    """The hash is not that of the release: another text was reviewed."""


class ReleaseSourceChanged(Refusal):
    """The item is not, or no longer, what the release names."""


class ConversationTainted(Refusal):
    """The session would be opened below the *taint* of its conversation."""

    def __init__(self, taint: Label) -> None:
        super().__init__()
        self.taint = taint


class WriteLevelMismatch(Refusal):
    """Only lower versions are visible, and a session writes only at its own level."""


class EtagStale(Refusal):
    """The etag is not that of the version that Get would return.

    *violations* names the stale etags of a request with several memories. It is empty otherwise.
    """

    def __init__(self, *violations: FieldViolation) -> None:
        super().__init__()
        self.violations = violations


class TierDisabled(Refusal):
    """The host has disabled the tier."""


class BudgetExceeded(Refusal):
    """The notes would exceed the tier's budget. Carries the largest notes that the session sees."""

    def __init__(self, usage: Usage, *, would_be_chars: int, entries: tuple[BudgetEntry, ...]) -> None:
        super().__init__()
        self.usage = usage
        self.would_be_chars = would_be_chars
        self.entries = entries


class QuotaExceeded(Refusal):
    """The agent would store more at the session's level than its limits allow."""

    quota = ""


class ItemQuotaExceeded(QuotaExceeded):
    """The agent has as many items at the level as it may have."""

    quota = "items"


class ByteQuotaExceeded(QuotaExceeded):
    """The agent would store more bytes at the level than it may."""

    quota = "bytes"


class RevisionQuotaExceeded(QuotaExceeded):
    """The item has as many revisions as it may have."""

    quota = "revisions"


class TenantQuotaExceeded(QuotaExceeded):
    """The limits of all agents of the tenant together would be above those of the tenant."""

    quota = "tenant"


class TextNotFound(Refusal):
    """The text to replace is not in the block."""


class TextNotUnique(Refusal):
    """The text to replace occurs in the block more than once."""


class LineOutOfRange(Refusal):
    """The block has fewer lines."""


class BlockTooLarge(Refusal):
    """The block would exceed its size limit."""


class TaintChanged(Refusal):
    """The taint was raised during the call, or between two pages."""


class MethodUnknown(Refusal):
    """The server has no such method."""


class Unavailable(MunimentError):
    """Nothing is wrong with the request; it may be retried."""


class Conflict(Unavailable):
    """The database rolled back the transaction in favor of another one. It can be retried at once."""


class Overloaded(Unavailable):
    """Too many calls are in flight."""


class RateLimited(Unavailable):
    """The session, or its agent at its level, has made as many calls as its limit allows."""


class StorageFull(Unavailable):
    """The disk of the database is full, or has no more room than what must go on needs."""


class DeadlineExceeded(Unavailable):
    """The caller's deadline has passed, or the caller has canceled the call."""


class StorageDamaged(MunimentError):
    """A page, row or index of the database is damaged. Callers get INTERNAL."""


class StaleSession(MunimentError):
    """The session is not open at the expected level. Never leaves the server."""


class EgressViolation(MunimentError):
    """A response above the taint was withheld: another guard has failed."""
