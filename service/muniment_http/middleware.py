"""Checks requests before the gateway sees them, and tells browsers which pages may call (CORS)."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from importlib import resources
from typing import Any, TypeAlias

from connectrpc.code import Code
from connectrpc.errors import ConnectError

_Message: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[_Message]]
Send: TypeAlias = Callable[[_Message], Awaitable[None]]
Application: TypeAlias = Callable[[Mapping[str, Any], Receive, Send], Awaitable[None]]
_Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

OPENAPI = "/openapi.json"
_SLACK_SECONDS = 5.0
"""How long after the longest deadline of its method a request is broken off."""
_BODY_SECONDS = 15.0
"""How long a body may take to arrive; of a stream, each part of it."""
_MAX_BODIES = 64
"""The most requests of one address whose bodies are still arriving: an eighth of all requests."""
_EXPOSED = b"request-id, grpc-status, grpc-message, grpc-status-details-bin"
_MAX_AGE_SECONDS = b"7200"
_PRINTABLE = re.compile(rb"[ -~]*")
_EMPTY = {
    b"application/json": b"{}",
    b"application/proto": b"",
    b"application/connect+": b"",
    b"application/grpc-web": bytes(5),
}
"""What content types begin with, and the body of an empty message of each."""
_UNARY = (b"application/json", b"application/proto")
_CLOSE = (b"connection", b"close")
"""Ends the connection. Only a call that succeeds keeps it open: else a stranger could hold all connections with one
refused request every few seconds."""


class Middleware:
    """Refuses requests that are not calls of a method, serves the OpenAPI file, and answers preflight requests."""

    def __init__(
        self, gateway: Application, seconds: Mapping[str, float], streams: Collection[str], origins: Collection[str]
    ) -> None:
        """*seconds*: the longest deadline of each method, by path. *streams*: those that take a stream of messages.

        Only pages of *origins* may call.
        """
        self._gateway = gateway
        self._seconds = seconds
        self._streams = frozenset(streams)
        self._arriving: Counter[str] = Counter()
        """How many bodies are arriving from each address."""
        self._origins = frozenset(origin.encode() for origin in origins)
        self._openapi = resources.files(__package__).joinpath("openapi.json").read_bytes()

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._gateway(scope, receive, send)
        headers = dict(scope["headers"])
        cors = self._cors(headers.get(b"origin"))
        if (scope["method"], scope["path"]) == ("GET", OPENAPI):
            return await _answer(send, 200, [(b"content-type", b"application/json"), *cors], self._openapi)
        if refusal := self._refusal(scope, headers):
            return await _refuse(send, *refusal, cors)
        if scope["method"] == "OPTIONS":
            return await _answer(send, 204, [*cors, *_allowed(headers)])

        async def send_with_cors(message: _Message) -> None:
            if message["type"] == "http.response.start":
                closing = [] if _has_succeeded(message) else [_CLOSE]
                message = {**message, "headers": [*message["headers"], *cors, *closing]}
            await send(message)

        if b"authorization" not in headers:  # the server refuses such a call whatever its body says
            receive = _receiving(_empty(headers[b"content-type"]) or b"")
        body = _Body(receive, self._arriving, scope["client"][0], is_stream=scope["path"] in self._streams)
        try:
            async with asyncio.timeout(self._seconds[scope["path"]] + _SLACK_SECONDS):
                await self._gateway({**scope, "headers": _printable(scope["headers"])}, body.receive, send_with_cors)
        finally:
            body.end()

    def _refusal(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> tuple[int, Code, str] | None:
        """Status, code and message, if the request is refused before its body is read."""
        if scope["path"] not in self._seconds or b"%" in scope["raw_path"]:  # a proxy that refuses paths may not decode
            example = "/muniment.v1.MemoryService/GetMemory"
            return 404, Code.UNIMPLEMENTED, f"there is no method at this path: POST to one such as {example}"
        if scope["method"] not in {"POST", "OPTIONS"}:
            return 405, Code.UNIMPLEMENTED, "methods are called by POST"
        if scope["query_string"]:
            return 400, Code.INVALID_ARGUMENT, "the URL must not have a query: send all fields in the body"
        return self._refusal_of_body(scope["client"][0], headers) if scope["method"] == "POST" else None

    def _refusal_of_body(self, address: str, headers: Mapping[bytes, bytes]) -> tuple[int, Code, str] | None:
        if _empty(headers.get(b"content-type", b"")) is None:
            message = "set a content type: `content-type: application/json`, or one of Connect or gRPC-Web"
            return 415, Code.UNIMPLEMENTED, message
        if self._arriving[address] >= _MAX_BODIES:
            message = f"{_MAX_BODIES} requests from this address have not sent their bodies yet: wait for some of them"
            return 429, Code.RESOURCE_EXHAUSTED, message
        return None

    def _cors(self, origin: bytes | None) -> _Headers:
        """The headers by which a browser lets a page of *origin* read the response."""
        if origin not in self._origins:
            return [(b"vary", b"Origin")]
        return [
            (b"access-control-allow-origin", origin or b""),
            (b"access-control-expose-headers", _EXPOSED),
            (b"vary", b"Origin"),
        ]


def _receiving(body: bytes) -> Receive:
    """Receives *body*, and then waits for the end of the request."""
    parts = iter([{"type": "http.request", "body": body}])

    async def receive() -> _Message:
        for part in parts:
            return part
        never: asyncio.Future[_Message] = asyncio.get_running_loop().create_future()
        return await never

    return receive


class _Body:
    """The body of a request, which must arrive in time. While it arrives, it counts for its address."""

    def __init__(self, receive: Receive, arriving: Counter[str], address: str, *, is_stream: bool) -> None:
        self._receive = receive
        self._arriving = arriving
        self._address = address
        self._end_by = None if is_stream else asyncio.get_running_loop().time() + _BODY_SECONDS
        self._has_ended = False
        arriving[address] += 1

    def end(self) -> None:
        """Stop counting it: it has arrived, or is waited for no longer. May be called twice."""
        if not self._has_ended:
            self._has_ended = True
            self._arriving[self._address] -= 1
            if not self._arriving[self._address]:
                del self._arriving[self._address]

    async def receive(self) -> _Message:
        """The next part of it, or what comes after it. Raises ConnectError if the part is late."""
        if self._has_ended:
            return await self._receive()
        try:
            async with asyncio.timeout(_BODY_SECONDS) as timeout:
                if self._end_by is not None:
                    timeout.reschedule(self._end_by)
                message = await self._receive()
        except TimeoutError:
            raise ConnectError(
                Code.DEADLINE_EXCEEDED, f"the body did not arrive within {_BODY_SECONDS:g} seconds"
            ) from None
        if not message.get("more_body"):
            self.end()
        return message


def _has_succeeded(start: _Message) -> bool:
    """Whether it begins the response of a call that has succeeded. Those of streams and gRPC-Web tell only later."""
    return start["status"] == 200 and dict(start["headers"]).get(b"content-type") in _UNARY


def _printable(headers: _Headers) -> _Headers:
    """The headers in printable ASCII, as gRPC requires.

    Others, which may be cookies of another server on this machine, are emptied. They are not left out: a credential
    beside another, or beside a certificate, must not vanish.
    """
    return [(name, value if _PRINTABLE.fullmatch(value) else b"") for name, value in headers]


def _empty(content_type: bytes) -> bytes | None:
    """An empty body of this type. None if bodies of the type are not passed on.

    The gateway itself refuses unknown codecs and compressions.
    """
    given = content_type.strip().lower()
    return next((body for prefix, body in _EMPTY.items() if given.startswith(prefix)), None)


def _allowed(headers: Mapping[bytes, bytes]) -> _Headers:
    """What a page may send: any header, since the gateway ignores those that it does not know."""
    return [
        (b"access-control-allow-methods", b"POST"),
        (b"access-control-allow-headers", headers.get(b"access-control-request-headers", b"")),
        (b"access-control-max-age", _MAX_AGE_SECONDS),
    ]


async def _refuse(send: Send, status: int, code: Code, message: str, headers: _Headers) -> None:
    body = json.dumps({"code": code.value, "message": message}).encode()
    allow = [(b"allow", b"POST")] if status == 405 else []
    await _answer(send, status, [(b"content-type", b"application/json"), *allow, *headers], body)


async def _answer(send: Send, status: int, headers: _Headers, body: bytes = b"") -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*headers, _CLOSE]})
    await send({"type": "http.response.body", "body": body})
