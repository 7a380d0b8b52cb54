"""Forwards calls by HTTP to a server, by gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any, TypeAlias

import grpc
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from connectrpc.request import RequestContext
from connectrpc.server import ConnectASGIApplication, Endpoint
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor

from muniment_http.contract import EncodedMessage, encoded, methods, path_of
from muniment_http.failures import connect_error

_Context: TypeAlias = RequestContext[EncodedMessage, EncodedMessage]
_Method: TypeAlias = Callable[..., Any]
_Endpoint: TypeAlias = Any
"""Of a method with one request or with a stream. The library does not export their types."""

_FORWARDED = ("authorization", "traceparent")
_REQUEST_ID = "request-id"
_SECONDS, _STREAM_SECONDS = 60.0, 600.0
"""The longest deadlines of a call and of a stream. Callers may set an earlier one."""
MAX_BYTES = 4 << 20
"""The size limit of a message. The limits of the server are lower for most methods."""


class Binary:
    """Encodes messages as gRPC does."""

    def name(self) -> str:
        return "proto"

    def encode(self, message: EncodedMessage) -> bytes:
        return bytes(message)

    def decode(self, data: bytes | bytearray, message_class: type[EncodedMessage]) -> EncodedMessage:
        return message_class(data)


class Json:
    """Encodes messages in JSON. Refuses unknown fields: if they were ignored, a typing error would go unnoticed."""

    def name(self) -> str:
        return "json"

    def encode(self, message: EncodedMessage) -> bytes:
        return message.to_json()

    def decode(self, data: bytes | bytearray, message_class: type[EncodedMessage]) -> EncodedMessage:
        try:
            return message_class.of_json(bytes(data))
        except json_format.ParseError as error:
            raise ConnectError(Code.INVALID_ARGUMENT, " ".join(str(error).split())) from None


class Gateway(ConnectASGIApplication[grpc.aio.Channel]):
    """All methods of the contract, by the Connect protocol, gRPC-Web, or a plain POST of JSON."""

    path = "/"

    def __init__(self, channel: AsyncGenerator[grpc.aio.Channel]) -> None:
        """*channel* opens the channel to the server, and closes it when the gateway stops."""
        super().__init__(
            service=channel,
            endpoints=endpoints,
            codecs=[Binary(), Json()],
            read_max_bytes=MAX_BYTES,
            compressions=(),  # 3 MB of empty gzip members take seconds to decompress, and all callers wait
        )


def seconds_of(method: MethodDescriptor) -> float:
    """The longest deadline of a call of *method*, in seconds."""
    return _STREAM_SECONDS if method.client_streaming else _SECONDS


def endpoints(channel: grpc.aio.Channel) -> Mapping[str, _Endpoint]:
    """The endpoint of each method, by its path."""
    return {path_of(method): _endpoint(channel, method) for method in methods()}


def _endpoint(channel: grpc.aio.Channel, method: MethodDescriptor) -> _Endpoint:
    response = encoded(method.output_type)
    info = MethodInfo(
        name=method.name,
        service_name=method.containing_service.full_name,
        input=encoded(method.input_type),
        output=response,
        idempotency_level=IdempotencyLevel.UNKNOWN,  # no calls by GET: keys and queries must not appear in URLs
        stream_type=StreamType.CLIENT_STREAM if method.client_streaming else StreamType.UNARY,
    )

    if method.client_streaming:
        streaming: _Method = channel.stream_unary(path_of(method))

        async def stream(requests: AsyncIterator[EncodedMessage], context: _Context) -> EncodedMessage:
            errors: list[ConnectError] = []
            try:
                return response(await _forward(streaming, _encodings(requests, errors), context, seconds_of(method)))
            except asyncio.CancelledError:
                if errors:
                    raise errors[0] from None
                raise

        return Endpoint.client_stream(info, stream)
    calling: _Method = channel.unary_unary(path_of(method))

    async def unary(request: EncodedMessage, context: _Context) -> EncodedMessage:
        return response(await _forward(calling, bytes(request), context, seconds_of(method)))

    return Endpoint.unary(info, unary)


async def _encodings(requests: AsyncIterator[EncodedMessage], errors: list[ConnectError]) -> AsyncIterator[bytes]:
    """The encodings of *requests*. If one is invalid, gRPC cancels the call, and the error is in *errors*."""
    try:
        async for request in requests:
            yield bytes(request)
    except ConnectError as error:
        errors.append(error)
        raise


async def _forward(rpc: _Method, request: bytes | AsyncIterator[bytes], context: _Context, seconds: float) -> bytes:
    """Make the call, and return the response. Raises ConnectError."""
    if context.timeout_ms is not None:
        seconds = min(seconds, context.timeout_ms / 1000)
    metadata = [(name, value) for name, value in context.request_headers.allitems() if name in _FORWARDED]
    call = rpc(request, metadata=metadata, timeout=seconds)
    try:
        response: bytes = await call
    except grpc.aio.AioRpcError as error:
        _copy_request_id(context, error.trailing_metadata())
        raise connect_error(error) from None
    _copy_request_id(context, await call.trailing_metadata())
    return response


def _copy_request_id(context: _Context, trailers: grpc.aio.Metadata) -> None:
    """Tell the caller the id by which the server's log names the call."""
    if request_id := trailers.get(_REQUEST_ID):
        context.response_headers[_REQUEST_ID] = str(request_id)
