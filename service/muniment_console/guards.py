"""Refuses requests that no reader of the console sends, before any page is read."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from typing import Any, TypeAlias

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_Refusal: TypeAlias = tuple[int, str, Mapping[str, str]]

_HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The policy of an answer that is not a page: nothing runs, is fetched, or frames it."""
_SIGN_IN = {"www-authenticate": 'Basic realm="Muniment console", charset="UTF-8"'}


def policy(style: str) -> str:
    """The policy of a page whose one style sheet has the hash *style*: nothing else is fetched, and nothing runs."""
    return f"default-src 'none'; style-src '{style}'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"


class Guards:
    """Lets a request pass if it names this console, reads, comes from no other site, and has the password."""

    def __init__(self, application: ASGIApp, *, hosts: Collection[str], password: str) -> None:
        """*hosts* are the names and ports by which browsers reach the console, as the Host header has them."""
        self._application = application
        self._hosts = frozenset(host.lower() for host in hosts)
        self._password = password.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._application(scope, receive, send)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                _guard(message)
            await send(message)

        refusal = next(self._refusals(scope["method"], Headers(scope=scope)), None)
        if refusal is None:
            return await self._application(scope, receive, send_guarded)
        status, text, headers = refusal
        await PlainTextResponse(f"{text}\n", status, headers)(scope, receive, send_guarded)

    def _refusals(self, method: str, headers: Headers) -> Iterator[_Refusal]:
        """Why the request is refused. The first reason counts: who knows no password learns of no page."""
        if [host.lower() for host in headers.getlist("host")] not in [[host] for host in self._hosts]:
            yield 421, "this is not a name of the console: use the one it was started with, or start it with --host", {}
        if method not in ("GET", "HEAD"):
            yield 405, "the console only shows: GET", {"allow": "GET, HEAD"}
        if _is_embedded(headers):
            yield 403, "another site asks for this page: open it by its address", {}
        if "sec-purpose" in headers or "purpose" in headers:
            yield 503, "pages are read when somebody looks, since each look is audited", {}
        if not self._has_password(", ".join(headers.getlist("authorization"))):
            yield 401, "sign in with the password of the console, and any name", _SIGN_IN

    def _has_password(self, credential: str) -> bool:
        """Whether the credential has the password, with any name."""
        scheme, _, encoded = credential.partition(" ")
        try:
            _, _, sent = base64.b64decode(encoded, validate=True).partition(b":")
        except (binascii.Error, ValueError):
            return False
        return scheme.lower() == "basic" and hmac.compare_digest(sent, self._password)


def _is_embedded(headers: Headers) -> bool:
    """Whether a page of another site fetches or frames this. To follow a link is allowed, such as from a sign-in."""
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) != ("navigate", "document")


def _guard(message: MutableMapping[str, Any]) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in _HEADERS.items():
        headers[name] = value
    headers.setdefault("content-security-policy", _NOTHING)
