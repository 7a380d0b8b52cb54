"""Takes calls by HTTP, and makes them at a server by gRPC."""

from __future__ import annotations

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

from muniment_http.contract import Passing, methods, passing, path_of
from muniment_http.failures import of_call

_Context: TypeAlias = RequestContext[Passing, Passing]
_Method: TypeAlias = Callable[..., Any]
_Endpoint: TypeAlias = Any
"""The library tells its kinds apart, and exports the type of none."""

_PASSED_ON = ("authorization", "traceparent")
_REQUEST_ID = "request-id"
_SECONDS, _STREAM_SECONDS = 60.0, 600.0
"""How long a call may take, and a stream, unless its caller allows less time."""
MAX_BYTES = 4 << 20
"""The size limit of one message. The server has a limit of its own, which is lower for most methods."""


class Binary:
    """Messages as the contract writes them."""

    def name(self) -> str:
        return "proto"

    def encode(self, message: Passing) -> bytes:
        return bytes(message)

    def decode(self, data: bytes | bytearray, message_class: type[Passing]) -> Passing:
        return message_class(data)


class Json:
    """Messages as JSON. What the contract does not have is refused: a misspelled field would be lost in silence."""

    def name(self) -> str:
        return "json"

    def encode(self, message: Passing) -> bytes:
        return message.to_json()

    def decode(self, data: bytes | bytearray, message_class: type[Passing]) -> Passing:
        try:
            return message_class.of_json(bytes(data))
        except json_format.ParseError as error:
            raise ConnectError(Code.INVALID_ARGUMENT, " ".join(str(error).split())) from None


class Door(ConnectASGIApplication[grpc.aio.Channel]):
    """All methods of the contract, by the Connect protocol, gRPC-Web, or a plain POST of JSON."""

    path = "/"

    def __init__(self, channel: AsyncGenerator[grpc.aio.Channel]) -> None:
        """*channel* opens the channel to the server, and closes it in the end."""
        super().__init__(service=channel, endpoints=endpoints, codecs=[Binary(), Json()], read_max_bytes=MAX_BYTES)


def seconds_of(method: MethodDescriptor) -> float:
    """How long a call of a method may take."""
    return _STREAM_SECONDS if method.client_streaming else _SECONDS


def endpoints(channel: grpc.aio.Channel) -> Mapping[str, _Endpoint]:
    """Where each method is called, and what calls it."""
    return {path_of(method): _endpoint(channel, method) for method in methods()}


def _endpoint(channel: grpc.aio.Channel, method: MethodDescriptor) -> _Endpoint:
    answer = passing(method.output_type)
    info = MethodInfo(
        name=method.name,
        service_name=method.containing_service.full_name,
        input=passing(method.input_type),
        output=answer,
        idempotency_level=IdempotencyLevel.UNKNOWN,  # none by GET: no key or query stands in a URL
        stream_type=StreamType.CLIENT_STREAM if method.client_streaming else StreamType.UNARY,
    )

    if method.client_streaming:
        streaming: _Method = channel.stream_unary(path_of(method))

        async def stream(requests: AsyncIterator[Passing], context: _Context) -> Passing:
            passed_on = (bytes(request) async for request in requests)
            return answer(await _answered(streaming, passed_on, context, seconds_of(method)))

        return Endpoint.client_stream(info, stream)
    calling: _Method = channel.unary_unary(path_of(method))

    async def unary(request: Passing, context: _Context) -> Passing:
        return answer(await _answered(calling, bytes(request), context, seconds_of(method)))

    return Endpoint.unary(info, unary)


async def _answered(rpc: _Method, request: bytes | AsyncIterator[bytes], context: _Context, seconds: float) -> bytes:
    """The server's answer. Raises ConnectError."""
    if context.timeout_ms is not None:
        seconds = min(seconds, context.timeout_ms / 1000)
    metadata = [(name, value) for name in _PASSED_ON if (value := context.request_headers.get(name))]
    call = rpc(request, metadata=metadata, timeout=seconds)
    try:
        answer: bytes = await call
    except grpc.aio.AioRpcError as error:
        _name_request(context, error.trailing_metadata())
        raise of_call(error) from None
    _name_request(context, await call.trailing_metadata())
    return answer


def _name_request(context: _Context, trailers: grpc.aio.Metadata) -> None:
    """Give the answer the id of the call in the server's log."""
    if request_id := trailers.get(_REQUEST_ID):
        context.response_headers[_REQUEST_ID] = str(request_id)
