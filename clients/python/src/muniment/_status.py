"""Converts a gRPC status to a MunimentError."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TypeVar, cast

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from muniment import _convert, errors
from muniment.v1 import note_pb2, session_pb2
from muniment.v1.passage_pb2 import ImportProgress
from muniment.values import BudgetEntry, Classification, ImportCounts, Integrity

DOMAIN = "muniment.v1"

# The trailer with the id of the call in the server's log.
REQUEST_ID = "request-id"

# How gRPC ends the calls of a channel that this process closes.
CLOSED_HERE = "Channel closed!"
_STATUS_LOST = "Internal error from Core"
"""What grpc's asyncio says, with INTERNAL, if a stream ends while it sends a message: it does not await the status."""

BY_REASON: dict[str, type[errors.MunimentError]] = {
    "FIELD_INVALID": errors.InvalidArgument,
    "PAGE_TOKEN_INVALID": errors.InvalidPageToken,
    "CREDENTIAL_INVALID": errors.Unauthenticated,
    "CREDENTIAL_EXPIRED": errors.CredentialExpired,
    "PRINCIPAL_NOT_ALLOWED": errors.PrincipalNotAllowed,
    "CEILING_EXCEEDED": errors.CeilingExceeded,
    "SESSION_READ_ONLY": errors.SessionReadOnly,
    "INTEGRITY_EXCEEDED": errors.IntegrityExceeded,
    "AGENT_CEILING_EXCEEDED": errors.AgentCeilingExceeded,
    "CONVERSATION_CEILING_EXCEEDED": errors.ConversationCeilingExceeded,
    "AGENT_ABOVE_CEILING": errors.AgentAboveCeiling,
    "AGENT_HELD": errors.AgentHeld,
    "RELEASE_RIGHT_MISSING": errors.ReleaseRightMissing,
    "RELEASE_NOT_FOUND": errors.ReleaseNotFound,
    "RELEASE_NOT_OPEN": errors.ReleaseNotOpen,
    "RELEASE_EXPIRED": errors.ReleaseExpired,
    "RELEASE_OWN_REQUEST": errors.ReleaseOwnRequest,
    "RELEASE_HASH_MISMATCH": errors.ReleaseHashMismatch,
    "RELEASE_SOURCE_CHANGED": errors.ReleaseSourceChanged,
    "AGENT_NOT_FOUND": errors.AgentNotFound,
    "SESSION_NOT_FOUND": errors.SessionNotFound,
    "MEMORY_NOT_FOUND": errors.MemoryNotFound,
    "MEMORY_EXISTS": errors.MemoryExists,
    "AGENT_EXISTS": errors.AgentExists,
    "CONVERSATION_TAINTED": errors.ConversationTainted,
    "WRITE_LEVEL_MISMATCH": errors.WriteLevelMismatch,
    "ETAG_STALE": errors.EtagStale,
    "TAINT_CHANGED": errors.TaintChanged,
    "OVERLOADED": errors.Overloaded,
    "RATE_LIMITED": errors.RateLimited,
    "QUOTA_EXCEEDED": errors.QuotaExceeded,
    "STORAGE_FULL": errors.StorageFull,
    "UNAVAILABLE": errors.Unavailable,
    "DEADLINE_EXCEEDED": errors.DeadlineExceeded,
    "METHOD_UNKNOWN": errors.MethodUnknown,
    "INTERNAL": errors.InternalError,
    "NOTE_NOT_FOUND": errors.NoteNotFound,
    "NOTE_EXISTS": errors.NoteExists,
    "TIER_DISABLED": errors.TierDisabled,
    "BUDGET_EXCEEDED": errors.BudgetExceeded,
    "BLOCK_NOT_FOUND": errors.BlockNotFound,
    "BLOCK_EXISTS": errors.BlockExists,
    "TEXT_NOT_FOUND": errors.TextNotFound,
    "TEXT_NOT_UNIQUE": errors.TextNotUnique,
    "LINE_OUT_OF_RANGE": errors.LineOutOfRange,
    "BLOCK_TOO_LARGE": errors.BlockTooLarge,
    "SHARED_BLOCK_NOT_FOUND": errors.SharedBlockNotFound,
    "BLOCK_NOT_ATTACHED": errors.BlockNotAttached,
    "PASSAGE_NOT_FOUND": errors.PassageNotFound,
    "PASSAGE_EXISTS": errors.PassageExists,
    "ITEM_EXISTS": errors.ItemExists,
    "PROMPT_TOO_LARGE": errors.PromptTooLarge,
}

BY_CODE: dict[grpc.StatusCode, type[errors.MunimentError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: errors.InvalidArgument,
    grpc.StatusCode.UNAUTHENTICATED: errors.Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: errors.PermissionDenied,
    grpc.StatusCode.NOT_FOUND: errors.NotFound,
    grpc.StatusCode.ALREADY_EXISTS: errors.AlreadyExists,
    grpc.StatusCode.FAILED_PRECONDITION: errors.FailedPrecondition,
    grpc.StatusCode.ABORTED: errors.Aborted,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.ResourceExhausted,
    grpc.StatusCode.UNAVAILABLE: errors.Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.DeadlineExceeded,
    grpc.StatusCode.UNIMPLEMENTED: errors.Unimplemented,
    grpc.StatusCode.INTERNAL: errors.InternalError,
}

Detail = TypeVar("Detail", bound=Message)


def error_of(failure: grpc.RpcError) -> errors.MunimentError:
    """The error for a failed call."""
    status = _rich_status(failure)
    info = _detail(status, ErrorInfo) or ErrorInfo()
    reason = info.reason if info.domain == DOMAIN else ""
    code = _code(failure)
    error = BY_REASON.get(reason) or BY_CODE.get(code, errors.MunimentError)
    return error(code, reason, failure.details() or "", _details(status, info, _request_id(failure, info)))


def _code(failure: grpc.RpcError) -> grpc.StatusCode:
    """The status code. UNAVAILABLE if it is not known, or if the server broke the call off, as when it stops."""
    code = failure.code()
    if code is grpc.StatusCode.INTERNAL and failure.details() == _STATUS_LOST:
        return grpc.StatusCode.UNAVAILABLE
    if code is grpc.StatusCode.CANCELLED and failure.details() != CLOSED_HERE:
        return grpc.StatusCode.UNAVAILABLE
    return code


def _request_id(failure: grpc.RpcError, info: ErrorInfo) -> str:
    """The id in the trailer. A server of version 0.1.0 sends none, but faults have an incident."""
    trailers = cast("Iterable[tuple[str, str | bytes]]", failure.trailing_metadata() or ())
    sent = (str(value) for key, value in trailers if key == REQUEST_ID)
    return next(sent, info.metadata.get("incident", ""))


def _rich_status(failure: grpc.RpcError) -> Status:
    """The details of a status. Empty if a proxy has damaged them."""
    try:
        # A call raises itself as the error, which the type stubs do not say.
        return rpc_status.from_call(cast("grpc.Call", failure)) or Status()
    except (ValueError, DecodeError):
        return Status()


def _details(status: Status, info: ErrorInfo, request_id: str) -> errors.Details:
    request = _detail(status, BadRequest) or BadRequest()
    tainted = _detail(status, session_pb2.ConversationTainted)
    return errors.Details(
        violations=tuple(errors.Violation(each.field, each.description) for each in request.field_violations),
        retry_after=_retry_after(_detail(status, RetryInfo)),
        incident=info.metadata.get("incident", ""),
        request_id=request_id,
        overrun=_overrun(_detail(status, note_pb2.BudgetExceeded)),
        progress=_progress(_detail(status, ImportProgress)),
        quota=info.metadata.get("quota", ""),
        taint=_taint(tainted),
        integrity=Integrity(bool(tainted and tainted.integrity)),
    )


def _retry_after(retry: RetryInfo | None) -> float | None:
    """The delay in seconds, never negative, since callers sleep for it."""
    if retry is None or not retry.HasField("retry_delay"):
        return None
    return float(max(0.0, retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9))


def _overrun(exceeded: note_pb2.BudgetExceeded | None) -> errors.Overrun | None:
    """None if it has a tier or level that this client does not know: the error itself must be raised."""
    if exceeded is not None:
        with suppress(ValueError):
            return errors.Overrun(
                usage=_convert.usage(exceeded.usage),
                would_be_chars=exceeded.would_be_chars,
                over_by_chars=exceeded.over_by_chars,
                entries=tuple(map(_entry, exceeded.entries)),
            )
    return None


def _taint(tainted: session_pb2.ConversationTainted | None) -> Classification | None:
    """None if it is a level that this client does not know: the error itself must be raised."""
    with suppress(ValueError):
        return Classification(tainted.taint) if tainted is not None else None
    return None


def _entry(message: note_pb2.BudgetEntry) -> BudgetEntry:
    return BudgetEntry(
        note_id=message.note_id,
        length_chars=message.length_chars,
        preview=message.preview,
        own_level=message.own_level,
        classification=Classification(message.classification),
        integrity=Integrity(bool(message.integrity)),
    )


def _progress(progress: ImportProgress | None) -> ImportCounts | None:
    return None if progress is None else ImportCounts(progress.stored_count, progress.existing_count)


def _detail(status: Status, kind: type[Detail]) -> Detail | None:
    """The first detail of one kind. None if there is none, or it is damaged."""
    for packed in status.details:
        if packed.Is(kind.DESCRIPTOR):
            with suppress(DecodeError):
                found = kind()
                packed.Unpack(found)
                return found
            break
    return None
