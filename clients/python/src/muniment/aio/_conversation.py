# Generated from ../_conversation.py: make aio.
"""A conversation: a session that its host renews before it expires."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from muniment.aio._calls import Calls, Request, Response
from muniment.aio.session import SessionClient
from muniment.errors import CredentialExpired, MunimentError, SessionNotFound

if TYPE_CHECKING:
    from muniment.aio.host import HostClient
from collections.abc import AsyncIterable

from grpc import aio

from muniment._conversation import _AGAIN, _EARLY, left
from muniment.aio._calls import Unary

"A session is renewed once less than this part of its time is left."
"After this part of its time, a renewal that has failed, or is still under way, is tried again."
"The timeout of a call for which no time is left."


class Conversation(SessionClient):
    """A session that its host renews before it expires. It belongs to one event loop.

    It is renewed by the call that finds that less than a quarter of its time is left, or that it has expired. Nothing
    runs in the background. `async with` closes its session at the end.

    Once the session was closed or reset, by whomever, calls raise Unauthenticated: clear the model's context, and begin
    with `HostClient.conversation`.
    """

    _calls: ConversationCalls

    def __init__(self, host: HostClient, opened: SessionClient, *, since: float) -> None:
        super().__init__(ConversationCalls(opened._calls, self), opened.session)
        self._host = host
        self._ttl = opened.session.expire_time - opened.session.create_time
        self._due = since + self._seconds(1 - _EARLY)

    async def keep_open(self, *, timeout: float | None = None) -> None:
        """Renew the session, if that is due. Every call does so by itself; use it before you hand the token on."""
        await self._calls.renew_if_due(timeout)

    async def _renew_if_due(self, timeout: float) -> None:
        """Renew the session, if that is due and no other call does. A failure is left to a later call."""
        if (now := time.monotonic()) >= self._due:
            self._due = now + self._seconds(_AGAIN)
            with suppress(MunimentError):
                await self._renew(timeout)

    async def _renew(self, timeout: float) -> None:
        """Renew the session. SessionNotFound: it was ended, or purged."""
        since = time.monotonic()
        self._session = await self._host.renew_session(self.session_id, self._ttl, timeout=timeout)
        self._due = since + self._seconds(1 - _EARLY)

    def _seconds(self, part: float) -> float:
        """A part of the time for which the session is valid."""
        return self._ttl.total_seconds() * part


class ConversationCalls(Calls):
    """Calls with the token of a session that is renewed before a call, or when it has expired."""

    def __init__(self, calls: Calls, conversation: Conversation) -> None:
        super().__init__(
            calls.channel, calls.credential, timeout=calls._timeout, retries=calls.retries, owns_channel=False
        )
        self.connect_timeout = calls.connect_timeout
        self._conversation = conversation

    async def renew_if_due(self, timeout: float | None) -> float:
        """Renew the session, if that is due, and return the deadline by the monotonic clock."""
        deadline = time.monotonic() + self._seconds(timeout)
        await self._conversation._renew_if_due(left(deadline))
        return deadline

    async def __call__(
        self, method: Unary[Request, Response], request: Request, timeout: float | None = None
    ) -> Response:
        """The response of *method*, or a MunimentError. *timeout* spans all attempts, and renewing the session."""
        deadline = await self.renew_if_due(timeout)
        try:
            return await super().__call__(method, request, left(deadline))
        except CredentialExpired as expired:
            try:
                await self._conversation._renew(left(deadline))
            except SessionNotFound:
                raise expired from expired.__cause__
        return await super().__call__(method, request, left(deadline))

    async def stream(
        self,
        method: aio.StreamUnaryMultiCallable[Request, Response],
        requests: AsyncIterable[Request],
        timeout: float | None = None,
    ) -> Response:
        """The response of *method*, or a MunimentError, or whatever *requests* raises. Made once."""
        deadline = await self.renew_if_due(timeout)
        return await super().stream(method, requests, left(deadline))
