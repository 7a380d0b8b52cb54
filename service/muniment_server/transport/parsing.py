"""Requests of health and reflection, which no interceptor parses."""

from __future__ import annotations

from typing import TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.monitor.status import status_of

_M = TypeVar("_M", bound=Message)
_NO_MESSAGE = status_of(InvalidArgument(FieldViolation("", "is not a message of this method")))


def parsed(request_type: type[_M], content: bytes, context: grpc.ServicerContext) -> _M:
    """The request in *content*. Aborts the call with INVALID_ARGUMENT if there is none.

    If grpc parsed it, it would answer INTERNAL or UNKNOWN, and write a traceback to the log for any caller.
    """
    try:
        return request_type.FromString(content)
    except DecodeError:
        context.abort_with_status(_NO_MESSAGE)
        raise
