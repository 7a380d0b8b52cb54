"""Converts errors of the server to errors of the Connect protocol."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
from connectrpc.code import Code
from connectrpc.errors import ConnectError, ErrorDetail
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any
from google.rpc import error_details_pb2, status_pb2
from protobuf.wkt import Any as WireAny
from protobuf.wkt import Struct

from muniment.v1 import error_pb2

_STATUS = "grpc-status-details-bin"
_STATUS_LOST = "Internal error from Core"
"""What grpc's asyncio says, with INTERNAL, if a stream is refused during a write: it does not await the status."""
_CODES = {code.name: code for code in Code} | {"CANCELLED": Code.CANCELED}
_KNOWN = (error_details_pb2, error_pb2)
"""Define the messages of error details. Unless they are imported, `MessageToJson` does not know them."""


class _Detail(ErrorDetail):
    """A detail with its message in JSON, too, which the library sends as `debug`: callers by JSON need no decoder."""

    def __init__(self, detail: Any) -> None:
        super().__init__(WireAny(type_url=detail.type_url, value=detail.value))
        self._json = Struct.from_json(json_format.MessageToJson(detail))

    def value(self, *_: object) -> Struct:  # type: ignore[override]
        return self._json


def connect_error(error: grpc.aio.AioRpcError) -> ConnectError:
    """The error to send to the caller, if the server has answered with *error*."""
    if error.details() == _STATUS_LOST:
        return ConnectError(Code.UNAVAILABLE, "the server has ended the stream early, and the reason is lost")
    return ConnectError(_CODES[error.code().name], error.details() or "", list(_details(error)))


def _details(error: grpc.aio.AioRpcError) -> Iterator[_Detail]:
    status = error.trailing_metadata().get(_STATUS)
    if status is not None:
        yield from map(_Detail, status_pb2.Status.FromString(status).details)
