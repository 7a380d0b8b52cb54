"""Who makes a call over HTTP: the session whose token is the bearer token of the request."""

from __future__ import annotations

import hashlib

import anyio.to_thread
from google.protobuf.message import Message
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from pydantic import Field

from muniment import (
    InvalidArgument,
    MunimentError,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    SessionClient,
    Unauthenticated,
)
from muniment._calls import Calls
from muniment._channel import TLS, open_channel

NOT_A_SESSION = (Unauthenticated, PermissionDenied, InvalidArgument, NotFound)
"""How the server refuses host keys, and tokens that are not those of open sessions."""

_SECONDS = 10.0


class _Calls(Calls):
    """Calls that are not retried at a limit: a caller that waits for its own would hold a thread that others need."""

    def _may_help(self, request: Message, error: MunimentError) -> bool:
        return not isinstance(error, ResourceExhausted) and super()._may_help(request, error)


class _Bearer(AccessToken, arbitrary_types_allowed=True):
    """A bearer, and the session that it is."""

    session: SessionClient = Field(exclude=True, repr=False)


class Callers:
    """The sessions of all callers, over one connection to Muniment. A token verifier for the SDK."""

    def __init__(self, address: str, tls: bool | TLS) -> None:
        self._channel = open_channel(address, tls)

    def session(self) -> SessionClient:
        """The session of the request that is being served."""
        bearer = get_access_token()
        if not isinstance(bearer, _Bearer):
            raise RuntimeError("no request is being served")
        return bearer.session

    async def verify_token(self, token: str) -> AccessToken | None:
        """The bearer, or None if *token* is not that of an open session. MunimentError: this cannot be decided now."""
        try:
            calls = _Calls(self._channel, token, timeout=_SECONDS, retries=True, owns_channel=False)
            session = SessionClient(calls)
            await anyio.to_thread.run_sync(session.get_session)
        except (ValueError, *NOT_A_SESSION):
            return None
        return _Bearer(token=token, client_id=hashlib.sha256(token.encode()).hexdigest(), scopes=[], session=session)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()
