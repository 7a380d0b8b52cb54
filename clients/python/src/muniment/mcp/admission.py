"""The checks of a request that come before its bearer is looked at."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muniment import MunimentError, ResourceExhausted

BODY_SECONDS = 10.0
"""How long the body of a request may take to arrive."""
MOST_CALLS = 8
"""How many requests of one bearer are served at a time."""

_RETRY = {"Retry-After": "1"}


class Admission:
    """Refuses requests from web pages, requests to foreign names, anything but calls, and too many calls of one bearer.

    The SDK refuses the first two as well, but only after it has checked the bearer.
    """

    def __init__(self, app: ASGIApp, *, security: TransportSecuritySettings) -> None:
        self._app = app
        self._security = TransportSecurityMiddleware(security)
        self._calls: Counter[bytes] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request in, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        refusal = await self._security.validate_request(request) or _refusal(request)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        with self._counted(request.headers) as too_many:
            await (_busy() if too_many else self._serve)(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive_in_time(receive), send_until_read(send))
        except TimeoutError:
            response = PlainTextResponse(f"the body took longer than {BODY_SECONDS:.0f} seconds", 408)
            await response(scope, receive, send)
        except ResourceExhausted:
            await _busy()(scope, receive, send)
        except MunimentError:
            response = PlainTextResponse("the memory cannot be reached: try again later", 503, headers=_RETRY)
            await response(scope, receive, send)

    @contextmanager
    def _counted(self, headers: Headers) -> Iterator[bool]:
        """Count the request for its bearer. Yields whether the bearer makes too many."""
        _, _, token = headers.get("authorization", "").partition(" ")  # the scheme may be in upper or lower case
        bearer = hashlib.sha256(token.encode()).digest()
        self._calls[bearer] += 1
        try:
            yield self._calls[bearer] > MOST_CALLS
        finally:
            self._calls[bearer] -= 1
            if not self._calls[bearer]:
                del self._calls[bearer]


def receive_in_time(receive: Receive) -> Receive:
    """*receive*, except that it raises TimeoutError if the body does not arrive in time."""
    deadline = anyio.current_time() + BODY_SECONDS
    arrived = False

    async def receiving() -> Message:
        nonlocal arrived
        if arrived:
            return await receive()
        with anyio.fail_after(deadline - anyio.current_time()):
            message = await receive()
        arrived = not message.get("more_body", False)
        return message

    return receiving


def send_until_read(send: Send) -> Send:
    """*send*, except that it returns when the caller has read enough for the rest to fit into the send buffers.

    uvicorn waits for a slow reader only before a further part of the response, so there is one more part, an empty one.
    """

    async def sending(message: Message) -> None:
        if message["type"] != "http.response.body" or message.get("more_body", False):
            await send(message)
            return
        await send({**message, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    return sending


def _refusal(request: Request) -> Response | None:
    """The refusal of a stream (GET), of an MCP session, which this server does not have, or of two credentials."""
    if request.method != "POST":
        return PlainTextResponse("only POST is allowed", 405, headers={"Allow": "POST"})
    if "mcp-session-id" in request.headers:
        return PlainTextResponse("session not found: this server has none, so send no Mcp-Session-Id", 404)
    if len(request.headers.getlist("authorization")) > 1:
        return PlainTextResponse("send one Authorization header", 400)
    return None


def _busy() -> Response:
    return PlainTextResponse("too many requests: try again later", 429, headers=_RETRY)
