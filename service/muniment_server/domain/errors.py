"""The errors of the server, each with what a caller receives: a code, a reason of the contract and a fixed text.

Errors contain no content, keys, tags or queries, except for the previews in BudgetExceeded, which pass the egress
filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from muniment_server.domain.budgets import BudgetEntry, Usage
from muniment_server.domain.classification import Label


class Status(NamedTuple):
    """What a caller receives for an error."""

    code: str
    """The name of a gRPC status code."""
    reason: str
    """A reason of the contract: error.proto."""
    text: str
    """Says what to do next."""


class MunimentError(Exception):
    """The base class of all errors of the server. One without a status of its own has that of its base."""

    status: ClassVar[Status] = Status(
        "INTERNAL", "INTERNAL", "internal error: the server's log describes it under the request id"
    )
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

    status = Status("INVALID_ARGUMENT", "FIELD_INVALID", "the request breaks a rule of the contract")

    def __init__(self, *violations: FieldViolation) -> None:
        super().__init__()
        self.violations = violations


class InvalidPageToken(Refusal):
    """The page token is damaged, or was made by another method, filter or credential."""

    status = Status(
        "INVALID_ARGUMENT",
        "PAGE_TOKEN_INVALID",
        "the page token is damaged or belongs to another call: start again with the first page",
    )


class Unauthenticated(Refusal):
    """The call has no valid credential. The caller learns only whether a genuine one has expired."""

    status = Status(
        "UNAUTHENTICATED", "CREDENTIAL_INVALID", "send one valid credential as `authorization: Bearer <token>`"
    )


class SessionExpired(Unauthenticated):
    """The token is that of a session that has expired, and was not closed before."""

    status = Status(
        "UNAUTHENTICATED", "CREDENTIAL_EXPIRED", "the session has expired: its host may renew it, or open another one"
    )


class HostKeyExpired(Unauthenticated):
    """The credential is a host key that has expired, and is neither revoked nor frozen."""

    status = Status(
        "UNAUTHENTICATED", "CREDENTIAL_EXPIRED", "the host key has expired: ask the operator for another one"
    )


class PrincipalNotAllowed(Refusal):
    """The method is not for this kind of caller."""

    status = Status("PERMISSION_DENIED", "PRINCIPAL_NOT_ALLOWED", "this method is not for this kind of caller")


class SessionReadOnly(Refusal):
    """The method writes, and the session may only read."""

    status = Status(
        "PERMISSION_DENIED",
        "SESSION_READ_ONLY",
        "the session may only read: a session that its host opens without read_only may write",
    )


class CeilingExceeded(Refusal):
    """The level is above the ceiling of the host key."""

    status = Status("PERMISSION_DENIED", "CEILING_EXCEEDED", "the level is above the ceiling of the host key")


class IntegrityExceeded(Refusal):
    """The host key is for untrusted sessions only."""

    status = Status(
        "PERMISSION_DENIED",
        "INTEGRITY_EXCEEDED",
        "the host key is for untrusted sessions only: use one that was made without --integrity untrusted",
    )


class AgentCeilingExceeded(Refusal):
    """The level is above the ceiling of the agent."""

    status = Status("PERMISSION_DENIED", "AGENT_CEILING_EXCEEDED", "the level is above the ceiling of the agent")


class ConversationCeilingExceeded(Refusal):
    """The level is above the ceiling of the conversation."""

    status = Status(
        "PERMISSION_DENIED",
        "CONVERSATION_CEILING_EXCEEDED",
        "the level is above the ceiling of the conversation: begin another one with a key that reaches the level",
    )


class AgentAboveCeiling(Refusal):
    """The host key knows the agent, but changes it only if it reaches the ceiling of the agent."""

    status = Status(
        "PERMISSION_DENIED",
        "AGENT_ABOVE_CEILING",
        "the ceiling of the agent is above that of the host key: only a key that reaches it may do this",
    )


class AgentHeld(Refusal):
    """An operator keeps all that the agent has: nothing of it can be erased."""

    status = Status(
        "FAILED_PRECONDITION", "AGENT_HELD", "an operator keeps all that the agent has: nothing can be erased"
    )


class AgentNotFound(Refusal):
    """The tenant has no such agent, or the host key does not know it."""

    status = Status("NOT_FOUND", "AGENT_NOT_FOUND", "no such agent, or it is not known to keys of this ceiling")


class SessionNotFound(Refusal):
    """There is no such session, or it is above the ceiling, or not open."""

    status = Status("NOT_FOUND", "SESSION_NOT_FOUND", "no such session")


class MemoryNotFound(Refusal):
    """No version of the key is visible to the session."""

    status = Status("NOT_FOUND", "MEMORY_NOT_FOUND", "no such memory")


class NoteNotFound(Refusal):
    """No version of the note is visible to the session in the tier."""

    status = Status("NOT_FOUND", "NOTE_NOT_FOUND", "no such note in this tier")


class NoteIsAgentNote(NoteNotFound):
    """The note is in the tier of the agent's own notes."""

    status = Status("NOT_FOUND", "NOTE_NOT_FOUND", "no such note in this tier: it is in TIER_MEMORY")


class NoteIsUserProfile(NoteNotFound):
    """The note is in the tier of the user profile."""

    status = Status("NOT_FOUND", "NOTE_NOT_FOUND", "no such note in this tier: it is in TIER_USER")


class BlockNotFound(Refusal):
    """No version of the block is visible to the session."""

    status = Status("NOT_FOUND", "BLOCK_NOT_FOUND", "no such block")


class SharedBlockNotFound(Refusal):
    """The block is not declared as shared."""

    status = Status("NOT_FOUND", "SHARED_BLOCK_NOT_FOUND", "no such shared block: declare it with CreateSharedBlock")


class BlockNotAttached(Refusal):
    """The block is not attached to the agent."""

    status = Status("NOT_FOUND", "BLOCK_NOT_ATTACHED", "the block is not attached to the agent")


class PassageNotFound(Refusal):
    """The passage is not visible to the session."""

    status = Status("NOT_FOUND", "PASSAGE_NOT_FOUND", "no such passage")


class AgentExists(Refusal):
    """The agent id is taken."""

    status = Status("ALREADY_EXISTS", "AGENT_EXISTS", "the agent id is taken")


class NoteExists(Refusal):
    """The note id belongs to a visible note with another content or tier."""

    status = Status("ALREADY_EXISTS", "NOTE_EXISTS", "the note id is taken by a note with another content or tier")


class BlockExists(Refusal):
    """The block is already shared, or content was given although a PUBLIC version exists."""

    status = Status("ALREADY_EXISTS", "BLOCK_EXISTS", "the block is shared already, or has a PUBLIC version already")


class MemoryExists(Refusal):
    """The new key of a memory is that of a visible memory."""

    status = Status("ALREADY_EXISTS", "MEMORY_EXISTS", "a memory with the new key is visible")


class PassageExists(Refusal):
    """The passage id belongs to a visible passage with another content."""

    status = Status("ALREADY_EXISTS", "PASSAGE_EXISTS", "the passage id is taken by another text")


class ItemExists(Refusal):
    """An item of the name is live at the level, so that no deleted one can come back."""

    status = Status(
        "ALREADY_EXISTS", "ITEM_EXISTS", "an item of this name is live at this level: nothing was undeleted"
    )


class ReleaseRightMissing(Refusal):
    """The host key lacks a right that the release needs: to declassify, or to endorse."""

    status = Status(
        "PERMISSION_DENIED",
        "RELEASE_RIGHT_MISSING",
        "the host key may not declassify, or not endorse: ask the operator for one created with `--may`",
    )


class ReleaseNotFound(Refusal):
    """There is no such release, or the key does not reach the ceiling of its agent."""

    status = Status(
        "NOT_FOUND", "RELEASE_NOT_FOUND", "no such release, or the key does not reach the ceiling of its agent"
    )


class ReleaseNotOpen(Refusal):
    """The release was rejected, or is already written."""

    status = Status(
        "FAILED_PRECONDITION", "RELEASE_NOT_OPEN", "the release was rejected or is written already: ask for another one"
    )


class ReleaseExpired(Refusal):
    """The release was not approved in time."""

    status = Status(
        "FAILED_PRECONDITION", "RELEASE_EXPIRED", "the release was not approved in time: ask for another one"
    )


class ReleaseOwnRequest(Refusal):
    """The key has asked for the release, so another must approve it."""

    status = Status(
        "PERMISSION_DENIED", "RELEASE_OWN_REQUEST", "this key has asked for the release: another one must approve it"
    )


class ReleaseHashMismatch(Refusal):
    """The hash is not that of the release: another text was reviewed."""

    status = Status(
        "FAILED_PRECONDITION",
        "RELEASE_HASH_MISMATCH",
        "the hash is not that of the release: review the text again, with GetRelease",
    )


class ReleaseSourceChanged(Refusal):
    """The item is not, or no longer, what the release names."""

    status = Status(
        "FAILED_PRECONDITION",
        "RELEASE_SOURCE_CHANGED",
        "the item is not, or no longer, what the release names: read it again, and ask for another release",
    )


class ConversationTainted(Refusal):
    """The session would be opened below the *taint* of its conversation."""

    status = Status(
        "FAILED_PRECONDITION",
        "CONVERSATION_TAINTED",
        "the conversation's taint is higher: open the session without a taint, or reset the conversation",
    )

    def __init__(self, taint: Label) -> None:
        super().__init__()
        self.taint = taint


class WriteLevelMismatch(Refusal):
    """Only lower versions are visible, and a session writes only at its own level."""

    status = Status(
        "FAILED_PRECONDITION",
        "WRITE_LEVEL_MISMATCH",
        "only lower versions are visible, and a session writes at its own level only",
    )


class EtagStale(Refusal):
    """The etag is not that of the version that Get would return.

    *violations* names the stale etags of a request with several memories. It is empty otherwise.
    """

    status = Status("ABORTED", "ETAG_STALE", "the etag does not belong to the current version: read it again")

    def __init__(self, *violations: FieldViolation) -> None:
        super().__init__()
        self.violations = violations


class TierDisabled(Refusal):
    """The host has disabled the tier."""

    status = Status("FAILED_PRECONDITION", "TIER_DISABLED", "the host has switched this tier off")


class BudgetExceeded(Refusal):
    """The notes would exceed the tier's budget. Carries the largest notes that the session sees."""

    status = Status(
        "FAILED_PRECONDITION",
        "BUDGET_EXCEEDED",
        "the notes would be over the tier's budget: replace or remove an entry first",
    )

    def __init__(self, usage: Usage, *, would_be_chars: int, entries: tuple[BudgetEntry, ...]) -> None:
        super().__init__()
        self.usage = usage
        self.would_be_chars = would_be_chars
        self.entries = entries


class QuotaExceeded(Refusal):
    """The agent would store more at the session's level than its limits allow."""

    status = Status(
        "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", "the agent stores as much at this level as its limits allow"
    )

    quota = ""


class ItemQuotaExceeded(QuotaExceeded):
    """The agent has as many items at the level as it may have."""

    status = Status(
        "RESOURCE_EXHAUSTED",
        "QUOTA_EXCEEDED",
        "the agent has as many items at this level as it may have: delete some, or have the host raise max_items",
    )

    quota = "items"


class ByteQuotaExceeded(QuotaExceeded):
    """The agent would store more bytes at the level than it may."""

    status = Status(
        "RESOURCE_EXHAUSTED",
        "QUOTA_EXCEEDED",
        "the agent would store more bytes at this level than it may: have the host raise max_bytes, or"
        " an operator purge deleted items",
    )

    quota = "bytes"


class RevisionQuotaExceeded(QuotaExceeded):
    """The item has as many revisions as it may have."""

    status = Status(
        "RESOURCE_EXHAUSTED",
        "QUOTA_EXCEEDED",
        "the item has as many revisions as it may have: delete it first, or have the host raise max_revisions",
    )

    quota = "revisions"


class TenantQuotaExceeded(QuotaExceeded):
    """The limits of all agents of the tenant together would be above those of the tenant."""

    status = Status(
        "RESOURCE_EXHAUSTED",
        "QUOTA_EXCEEDED",
        "its agents would have more together than the tenant may have: lower the limits of others, or ask the operator",
    )

    quota = "tenant"


class TextNotFound(Refusal):
    """The text to replace is not in the block."""

    status = Status("FAILED_PRECONDITION", "TEXT_NOT_FOUND", "the text to replace is not in the block")


class TextNotUnique(Refusal):
    """The text to replace occurs in the block more than once."""

    status = Status(
        "FAILED_PRECONDITION",
        "TEXT_NOT_UNIQUE",
        "the text to replace is in the block more than once: give more of what stands around it",
    )


class LineOutOfRange(Refusal):
    """The block has fewer lines."""

    status = Status("FAILED_PRECONDITION", "LINE_OUT_OF_RANGE", "the block has fewer lines")


class BlockTooLarge(Refusal):
    """The block would exceed its size limit."""

    status = Status("FAILED_PRECONDITION", "BLOCK_TOO_LARGE", "the block would be larger than 64 KiB")


class TaintChanged(Refusal):
    """The taint was raised during the call, or between two pages."""

    status = Status("ABORTED", "TAINT_CHANGED", "the taint was raised meanwhile: begin again at the new taint")


class MethodUnknown(Refusal):
    """The server has no such method."""

    status = Status("UNIMPLEMENTED", "METHOD_UNKNOWN", "the server has no such method")


class Unavailable(MunimentError):
    """Nothing is wrong with the request; it may be retried."""

    status = Status("UNAVAILABLE", "UNAVAILABLE", "the service cannot answer now: try again")


class Conflict(Unavailable):
    """The database rolled back the transaction in favor of another one. It can be retried at once."""


class Overloaded(Unavailable):
    """Too many calls are in flight."""

    status = Status("RESOURCE_EXHAUSTED", "OVERLOADED", "too many calls in flight: try again later")


class RateLimited(Unavailable):
    """The session, or its agent at its level, has made as many calls as its limit allows."""

    status = Status(
        "RESOURCE_EXHAUSTED", "RATE_LIMITED", "the agent's limit of calls a second is reached: try again later"
    )


class StorageFull(Unavailable):
    """The disk of the database is full, or has no more room than what must go on needs."""

    status = Status(
        "RESOURCE_EXHAUSTED",
        "STORAGE_FULL",
        "the disk of the database is full: nothing is stored until an operator makes room; reads and deletions go on",
    )


class DeadlineExceeded(Unavailable):
    """The caller's deadline has passed, or the caller has canceled the call."""

    status = Status("DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED", "the deadline passed before the answer was ready")


class StorageDamaged(MunimentError):
    """A page, row or index of the database is damaged. Callers get INTERNAL."""


class StaleSession(MunimentError):
    """The session is not open at the expected level. Never leaves the server."""


class EgressViolation(MunimentError):
    """A response above the taint was withheld: another guard has failed."""
