"""Checks requests before the gateway sees them, and tells browsers which pages may call (CORS)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from importlib import resources
from typing import Any, TypeAlias

from connectrpc.code import Code

_Message: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[_Message]]
Send: TypeAlias = Callable[[_Message], Awaitable[None]]
Application: TypeAlias = Callable[[Mapping[str, Any], Receive, Send], Awaitable[None]]
_Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

OPENAPI = "/openapi.json"
_SLACK_SECONDS = 5.0
"""How long after the longest deadline of its method a request is broken off."""
_EXPOSED = b"request-id, grpc-status, grpc-message, grpc-status-details-bin"
_MAX_AGE_SECONDS = b"7200"
_PRINTABLE = re.compile(rb"[ -~]*")
_CONTENT_TYPES = (b"application/json", b"application/proto", b"application/connect+", b"application/grpc-web")


class Middleware:
    """Refuses requests that are not calls of a method, serves the OpenAPI file, and answers preflight requests."""

    def __init__(self, gateway: Application, seconds: Mapping[str, float], origins: Collection[str]) -> None:
        """*seconds*: the longest deadline of each method, by path. Only pages of *origins* may call."""
        self._gateway = gateway
        self._seconds = seconds
        self._origins = frozenset(origin.encode() for origin in origins)
        self._openapi = resources.files(__package__).joinpath("openapi.json").read_bytes()

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._gateway(scope, receive, send)
        headers = dict(scope["headers"])
        cors = self._cors(headers.get(b"origin"))
        if (scope["method"], scope["path"]) == ("GET", OPENAPI):
            return await _answer(send, 200, [(b"content-type", b"application/json"), *cors], self._openapi)
        if refusal := self._refusal(scope):
            return await _refuse(send, *refusal, cors)
        if scope["method"] == "POST" and not _is_known(headers.get(b"content-type", b"")):
            message = "set a content type: `content-type: application/json`, or one of Connect or gRPC-Web"
            return await _refuse(send, 415, Code.UNIMPLEMENTED, message, cors)
        if scope["method"] == "OPTIONS":
            return await _answer(send, 204, [*cors, *_allowed(headers)])

        async def send_with_cors(message: _Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *cors]}
            await send(message)

        async with asyncio.timeout(self._seconds[scope["path"]] + _SLACK_SECONDS):
            await self._gateway({**scope, "headers": _printable(scope["headers"])}, receive, send_with_cors)

    def _refusal(self, scope: Mapping[str, Any]) -> tuple[int, Code, str] | None:
        """Status, code and message, if the request is refused for its path, its method or its URL."""
        if scope["path"] not in self._seconds:
            example = "/muniment.v1.MemoryService/GetMemory"
            return 404, Code.UNIMPLEMENTED, f"there is no method at this path: POST to one such as {example}"
        if scope["method"] not in {"POST", "OPTIONS"}:
            return 405, Code.UNIMPLEMENTED, "methods are called by POST"
        if scope["query_string"]:
            return 400, Code.INVALID_ARGUMENT, "the URL must not have a query: send all fields in the body"
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


def _printable(headers: _Headers) -> _Headers:
    """Those in printable ASCII, as gRPC requires. Others may be cookies of another server on this machine."""
    return [(name, value) for name, value in headers if _PRINTABLE.fullmatch(value)]


def _is_known(content_type: bytes) -> bool:
    """Whether a body of this type is passed on. The gateway itself refuses unknown codecs and compressions."""
    return content_type.strip().lower().startswith(_CONTENT_TYPES)


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
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
