"""From a status of gRPC to an error of ours."""

from __future__ import annotations

from contextlib import suppress
from typing import TypeVar, cast

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from muniment import errors

DOMAIN = "muniment.v1"

BY_REASON: dict[str, type[errors.MunimentError]] = {
    "FIELD_INVALID": errors.InvalidArgument,
    "PAGE_TOKEN_INVALID": errors.InvalidPageToken,
    "CREDENTIAL_INVALID": errors.Unauthenticated,
    "PRINCIPAL_NOT_ALLOWED": errors.PrincipalNotAllowed,
    "CEILING_EXCEEDED": errors.CeilingExceeded,
    "AGENT_NOT_FOUND": errors.AgentNotFound,
    "SESSION_NOT_FOUND": errors.SessionNotFound,
    "MEMORY_NOT_FOUND": errors.MemoryNotFound,
    "AGENT_EXISTS": errors.AgentExists,
    "CONVERSATION_TAINTED": errors.ConversationTainted,
    "WRITE_LEVEL_MISMATCH": errors.WriteLevelMismatch,
    "ETAG_STALE": errors.EtagStale,
    "TAINT_CHANGED": errors.TaintChanged,
    "OVERLOADED": errors.Overloaded,
    "UNAVAILABLE": errors.Unavailable,
    "DEADLINE_EXCEEDED": errors.DeadlineExceeded,
    "METHOD_UNKNOWN": errors.MethodUnknown,
    "INTERNAL": errors.InternalError,
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
    """The error that a failed call stands for."""
    status = _rich_status(failure)
    info = _detail(status, ErrorInfo)
    reason = info.reason if info.domain == DOMAIN else ""
    error = BY_REASON.get(reason) or BY_CODE.get(failure.code(), errors.MunimentError)
    return error(failure.code(), reason, failure.details() or "", _details(status, info))


def _rich_status(failure: grpc.RpcError) -> Status:
    """The details beside the code. Whatever stands between may have damaged them: then there are none."""
    try:
        # What a unary call raises is its call, too; the stubs do not say so.
        return rpc_status.from_call(cast("grpc.Call", failure)) or Status()
    except (ValueError, DecodeError):
        return Status()


def _details(status: Status, info: ErrorInfo) -> errors.Details:
    return errors.Details(
        violations=tuple(
            errors.Violation(each.field, each.description) for each in _detail(status, BadRequest).field_violations
        ),
        retry_after=_retry_after(_detail(status, RetryInfo)),
        incident=info.metadata.get("incident", ""),
    )


def _retry_after(retry: RetryInfo) -> float | None:
    """Seconds, never negative: they are slept."""
    if not retry.HasField("retry_delay"):
        return None
    return float(max(0.0, retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9))


def _detail(status: Status, kind: type[Detail]) -> Detail:
    """The first detail of one kind, or an empty one."""
    found = kind()
    for packed in status.details:
        if packed.Is(kind.DESCRIPTOR):
            with suppress(DecodeError):
                packed.Unpack(found)
            break
    return found
