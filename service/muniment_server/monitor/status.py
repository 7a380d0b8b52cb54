"""The status of each error: code, reason and text, all fixed by its class. Nothing else is ever sent."""

from __future__ import annotations

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


def code_of(error: BaseException) -> tuple[StatusCode, str]:
    """The code and the reason for *error*."""
    status = _status(error)
    return StatusCode[status.code], status.reason


def status_of(error: BaseException, *, incident: str = "") -> grpc.Status:
    """The status that the caller receives for *error*. Under *incident* a fault of the server is in the log."""
    status = _status(error)
    info = error_details_pb2.ErrorInfo(reason=status.reason, domain=DOMAIN)
    if incident and status is errors.MunimentError.status:
        info.metadata["incident"] = incident
    if isinstance(error, errors.QuotaExceeded):
        info.metadata["quota"] = error.quota
    return rpc_status.to_status(
        status_pb2.Status(
            code=StatusCode[status.code].value[0],
            message=status.text,
            details=[_packed(info), *map(_packed, details(error))],
        )
    )


def _status(error: BaseException) -> errors.Status:
    """That of its class: whatever is set on one error, its text is fixed."""
    return type(error).status if isinstance(error, errors.MunimentError) else errors.MunimentError.status


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
