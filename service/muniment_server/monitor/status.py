"""The status of each error: code, reason and text, all from one fixed table. Nothing else is ever sent."""

from __future__ import annotations

from typing import NamedTuple

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode
from grpc_status import rpc_status

from muniment_server.domain import errors

DOMAIN = "muniment.v1"
_RETRY_DELAYS: dict[type[BaseException], duration_pb2.Duration] = {
    errors.Overloaded: duration_pb2.Duration(nanos=100_000_000),
    errors.RateLimited: duration_pb2.Duration(seconds=1),
}
_MAX_VIOLATIONS = 16
"""A whole status stays under 4 KiB: above about 8 KiB clients see RESOURCE_EXHAUSTED instead."""


class _Entry(NamedTuple):
    code: StatusCode
    reason: str
    text: str


_TABLE: dict[type[errors.MunimentError], _Entry] = {
    errors.InvalidArgument: _Entry(
        StatusCode.INVALID_ARGUMENT, "FIELD_INVALID", "the request breaks a rule of the contract"
    ),
    errors.InvalidPageToken: _Entry(
        StatusCode.INVALID_ARGUMENT,
        "PAGE_TOKEN_INVALID",
        "the page token is damaged or belongs to another call: start again with the first page",
    ),
    errors.Unauthenticated: _Entry(
        StatusCode.UNAUTHENTICATED, "CREDENTIAL_INVALID", "send one valid credential as `authorization: Bearer <token>`"
    ),
    errors.SessionExpired: _Entry(
        StatusCode.UNAUTHENTICATED, "CREDENTIAL_EXPIRED", "the session has expired: its host may open another one"
    ),
    errors.HostKeyExpired: _Entry(
        StatusCode.UNAUTHENTICATED, "CREDENTIAL_EXPIRED", "the host key has expired: ask the operator for another one"
    ),
    errors.PrincipalNotAllowed: _Entry(
        StatusCode.PERMISSION_DENIED, "PRINCIPAL_NOT_ALLOWED", "this method is not for this kind of caller"
    ),
    errors.SessionReadOnly: _Entry(
        StatusCode.PERMISSION_DENIED,
        "SESSION_READ_ONLY",
        "the session may only read: a session that its host opens without read_only may write",
    ),
    errors.CeilingExceeded: _Entry(
        StatusCode.PERMISSION_DENIED, "CEILING_EXCEEDED", "the level is above the ceiling of the host key"
    ),
    errors.IntegrityExceeded: _Entry(
        StatusCode.PERMISSION_DENIED,
        "INTEGRITY_EXCEEDED",
        "the host key is for untrusted sessions only: use one that was made without --integrity untrusted",
    ),
    errors.AgentCeilingExceeded: _Entry(
        StatusCode.PERMISSION_DENIED, "AGENT_CEILING_EXCEEDED", "the level is above the ceiling of the agent"
    ),
    errors.ConversationCeilingExceeded: _Entry(
        StatusCode.PERMISSION_DENIED,
        "CONVERSATION_CEILING_EXCEEDED",
        "the level is above the ceiling of the conversation: begin another one with a key that reaches the level",
    ),
    errors.AgentAboveCeiling: _Entry(
        StatusCode.PERMISSION_DENIED,
        "AGENT_ABOVE_CEILING",
        "the ceiling of the agent is above that of the host key: only a key that reaches it may do this",
    ),
    errors.AgentHeld: _Entry(
        StatusCode.FAILED_PRECONDITION, "AGENT_HELD", "an operator keeps all that the agent has: nothing can be erased"
    ),
    errors.AgentNotFound: _Entry(
        StatusCode.NOT_FOUND, "AGENT_NOT_FOUND", "no such agent, or it is not known to keys of this ceiling"
    ),
    errors.SessionNotFound: _Entry(StatusCode.NOT_FOUND, "SESSION_NOT_FOUND", "no such session"),
    errors.MemoryNotFound: _Entry(StatusCode.NOT_FOUND, "MEMORY_NOT_FOUND", "no such memory"),
    errors.NoteNotFound: _Entry(StatusCode.NOT_FOUND, "NOTE_NOT_FOUND", "no such note in this tier"),
    errors.NoteIsAgentNote: _Entry(
        StatusCode.NOT_FOUND, "NOTE_NOT_FOUND", "no such note in this tier: it is in TIER_MEMORY"
    ),
    errors.NoteIsUserProfile: _Entry(
        StatusCode.NOT_FOUND, "NOTE_NOT_FOUND", "no such note in this tier: it is in TIER_USER"
    ),
    errors.BlockNotFound: _Entry(StatusCode.NOT_FOUND, "BLOCK_NOT_FOUND", "no such block"),
    errors.SharedBlockNotFound: _Entry(
        StatusCode.NOT_FOUND, "SHARED_BLOCK_NOT_FOUND", "no such shared block: declare it with CreateSharedBlock"
    ),
    errors.BlockNotAttached: _Entry(
        StatusCode.NOT_FOUND, "BLOCK_NOT_ATTACHED", "the block is not attached to the agent"
    ),
    errors.PassageNotFound: _Entry(StatusCode.NOT_FOUND, "PASSAGE_NOT_FOUND", "no such passage"),
    errors.AgentExists: _Entry(StatusCode.ALREADY_EXISTS, "AGENT_EXISTS", "the agent id is taken"),
    errors.NoteExists: _Entry(
        StatusCode.ALREADY_EXISTS, "NOTE_EXISTS", "the note id is taken by a note with another content or tier"
    ),
    errors.BlockExists: _Entry(
        StatusCode.ALREADY_EXISTS, "BLOCK_EXISTS", "the block is shared already, or has a PUBLIC version already"
    ),
    errors.MemoryExists: _Entry(StatusCode.ALREADY_EXISTS, "MEMORY_EXISTS", "a memory with the new key is visible"),
    errors.PassageExists: _Entry(
        StatusCode.ALREADY_EXISTS, "PASSAGE_EXISTS", "the passage id is taken by another text"
    ),
    errors.ItemExists: _Entry(
        StatusCode.ALREADY_EXISTS, "ITEM_EXISTS", "an item of this name is live at this level: nothing was undeleted"
    ),
    errors.ReleaseRightMissing: _Entry(
        StatusCode.PERMISSION_DENIED,
        "RELEASE_RIGHT_MISSING",
        "the host key may not declassify, or not endorse: ask the operator for one created with `--may`",
    ),
    errors.ReleaseNotFound: _Entry(
        StatusCode.NOT_FOUND, "RELEASE_NOT_FOUND", "no such release, or the key does not reach the ceiling of its agent"
    ),
    errors.ReleaseNotOpen: _Entry(
        StatusCode.FAILED_PRECONDITION,
        "RELEASE_NOT_OPEN",
        "the release was rejected or is written already: ask for another one",
    ),
    errors.ReleaseExpired: _Entry(
        StatusCode.FAILED_PRECONDITION,
        "RELEASE_EXPIRED",
        "the release was not approved in time: ask for another one",
    ),
    errors.ReleaseOwnRequest: _Entry(
        StatusCode.PERMISSION_DENIED,
        "RELEASE_OWN_REQUEST",
        "this key has asked for the release: another one must approve it",
    ),
    errors.ReleaseHashMismatch: _Entry(
        StatusCode.FAILED_PRECONDITION,
        "RELEASE_HASH_MISMATCH",
        "the hash is not that of the release: review the text again, with GetRelease",
    ),
    errors.ReleaseSourceChanged: _Entry(
        StatusCode.FAILED_PRECONDITION,
        "RELEASE_SOURCE_CHANGED",
        "the item is not, or no longer, what the release names: read it again, and ask for another release",
    ),
    errors.ConversationTainted: _Entry(
        StatusCode.FAILED_PRECONDITION,
        "CONVERSATION_TAINTED",
        "the conversation's taint is higher: open the session without a taint, or reset the conversation",
    ),
    errors.WriteLevelMismatch: _Entry(
        StatusCode.FAILED_PRECONDITION,
        "WRITE_LEVEL_MISMATCH",
        "only lower versions are visible, and a session writes at its own level only",
    ),
    errors.EtagStale: _Entry(
        StatusCode.ABORTED, "ETAG_STALE", "the etag does not belong to the current version: read it again"
    ),
    errors.TierDisabled: _Entry(StatusCode.FAILED_PRECONDITION, "TIER_DISABLED", "the host has switched this tier off"),
    errors.BudgetExceeded: _Entry(
        StatusCode.FAILED_PRECONDITION,
        "BUDGET_EXCEEDED",
        "the notes would be over the tier's budget: replace or remove an entry first",
    ),
    errors.QuotaExceeded: _Entry(
        StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED", "the agent stores as much at this level as its limits allow"
    ),
    errors.ItemQuotaExceeded: _Entry(
        StatusCode.RESOURCE_EXHAUSTED,
        "QUOTA_EXCEEDED",
        "the agent has as many items at this level as it may have: delete some, or have the host raise max_items",
    ),
    errors.ByteQuotaExceeded: _Entry(
        StatusCode.RESOURCE_EXHAUSTED,
        "QUOTA_EXCEEDED",
        "the agent would store more bytes at this level than it may: have the host raise max_bytes, or"
        " an operator purge deleted items",
    ),
    errors.RevisionQuotaExceeded: _Entry(
        StatusCode.RESOURCE_EXHAUSTED,
        "QUOTA_EXCEEDED",
        "the item has as many revisions as it may have: delete it first, or have the host raise max_revisions",
    ),
    errors.TenantQuotaExceeded: _Entry(
        StatusCode.RESOURCE_EXHAUSTED,
        "QUOTA_EXCEEDED",
        "its agents would have more together than the tenant may have: lower the limits of others, or ask the operator",
    ),
    errors.TextNotFound: _Entry(
        StatusCode.FAILED_PRECONDITION, "TEXT_NOT_FOUND", "the text to replace is not in the block"
    ),
    errors.TextNotUnique: _Entry(
        StatusCode.FAILED_PRECONDITION,
        "TEXT_NOT_UNIQUE",
        "the text to replace is in the block more than once: give more of what stands around it",
    ),
    errors.LineOutOfRange: _Entry(StatusCode.FAILED_PRECONDITION, "LINE_OUT_OF_RANGE", "the block has fewer lines"),
    errors.BlockTooLarge: _Entry(
        StatusCode.FAILED_PRECONDITION, "BLOCK_TOO_LARGE", "the block would be larger than 64 KiB"
    ),
    errors.TaintChanged: _Entry(
        StatusCode.ABORTED, "TAINT_CHANGED", "the taint was raised meanwhile: begin again at the new taint"
    ),
    errors.MethodUnknown: _Entry(StatusCode.UNIMPLEMENTED, "METHOD_UNKNOWN", "the server has no such method"),
    errors.Overloaded: _Entry(StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", "too many calls in flight: try again later"),
    errors.RateLimited: _Entry(
        StatusCode.RESOURCE_EXHAUSTED, "RATE_LIMITED", "the agent's limit of calls a second is reached: try again later"
    ),
    errors.StorageFull: _Entry(
        StatusCode.RESOURCE_EXHAUSTED,
        "STORAGE_FULL",
        "the disk of the database is full: nothing is stored until an operator makes room; reads and deletions go on",
    ),
    errors.DeadlineExceeded: _Entry(
        StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", "the deadline passed before the answer was ready"
    ),
    errors.Unavailable: _Entry(StatusCode.UNAVAILABLE, "UNAVAILABLE", "the service cannot answer now: try again"),
}
_INTERNAL = _Entry(
    StatusCode.INTERNAL, "INTERNAL", "internal error: the server's log describes it under the request id"
)


def code_of(error: BaseException) -> tuple[StatusCode, str]:
    """The code and the reason for *error*."""
    entry = _entry(error)
    return entry.code, entry.reason


def status_of(error: BaseException, *, incident: str = "") -> grpc.Status:
    """The status that the caller receives for *error*. Under *incident* a fault of the server is in the log."""
    entry = _entry(error)
    info = error_details_pb2.ErrorInfo(reason=entry.reason, domain=DOMAIN)
    if incident and entry is _INTERNAL:
        info.metadata["incident"] = incident
    if isinstance(error, errors.QuotaExceeded):
        info.metadata["quota"] = error.quota
    return rpc_status.to_status(
        status_pb2.Status(
            code=entry.code.value[0], message=entry.text, details=[_packed(info), *map(_packed, details(error))]
        )
    )


def _entry(error: BaseException) -> _Entry:
    """The entry of the most specific class that has one."""
    return next((_TABLE[kind] for kind in type(error).__mro__ if kind in _TABLE), _INTERNAL)


def details(error: BaseException) -> list[Message]:
    """The messages that go with the status, for callers that can act on them."""
    found: list[Message] = []
    if isinstance(error, errors.InvalidArgument | errors.EtagStale) and error.violations:
        found.append(_bad_request(error))
    if type(error) in _RETRY_DELAYS:
        found.append(error_details_pb2.RetryInfo(retry_delay=_RETRY_DELAYS[type(error)]))
    if isinstance(error, errors.MunimentError) and isinstance(error.detail, Message):
        found.append(error.detail)
    return found


def _bad_request(error: errors.InvalidArgument | errors.EtagStale) -> error_details_pb2.BadRequest:
    return error_details_pb2.BadRequest(
        field_violations=[
            error_details_pb2.BadRequest.FieldViolation(field=violation.field[:100], description=violation.rule)
            for violation in error.violations[:_MAX_VIOLATIONS]
        ]
    )


def _packed(message: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed
