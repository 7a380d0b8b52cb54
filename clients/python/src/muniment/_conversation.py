"""A conversation: a session that its host opens again before it expires."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from threading import Lock
from typing import TYPE_CHECKING

import grpc

from muniment import _convert
from muniment._calls import Calls, Request, Response
from muniment.errors import (
    ConversationTainted,
    CredentialExpired,
    InvalidPageToken,
    MunimentError,
    SessionNotFound,
    Unauthenticated,
)
from muniment.session import SessionClient
from muniment.v1.session_service_pb2 import GetSessionRequest
from muniment.values import Classification, Integrity, Session

if TYPE_CHECKING:
    from muniment.host import HostClient

_EARLY = 0.25
"""A session is opened again once less than this part of its time is left."""
_AT_ONCE = 0.001
"""The timeout of a call for which no time is left."""


class Conversation(SessionClient):
    """A session that its host opens again before it expires. Safe to use from several threads.

    It is opened again by the call that finds that less than a quarter of its time is left, or that it has expired; at
    the taint that its conversation has then, and never below what the session could have read. Nothing runs in the
    background. As a context manager, it closes its session at the end.

    Once the session was closed or reset, by whomever, calls raise Unauthenticated, and it is not opened again: clear
    the model's context, and begin with `HostClient.conversation`.
    """

    _calls: ConversationCalls

    def __init__(self, host: HostClient, opened: SessionClient, *, ttl: timedelta | None, since: float) -> None:
        super().__init__(ConversationCalls(opened._calls, self), opened.session)
        self._host = host
        self.ttl = ttl
        """How long each of its sessions lasts. None: as long as the server's default."""
        self._previous = ""
        """The id of the session before this one. It is left open for calls under way."""
        self._due = 0.0
        self._lock = Lock()
        """Held while the session is opened again or closed."""
        self._schedule(since)

    def get_session(self, *, timeout: float | None = None) -> Session:
        """The current state of the session."""
        response = self._calls(self._sessions.GetSession, GetSessionRequest(), timeout)
        seen = _convert.session(response.session)
        with self._lock:
            if seen.session_id == self.session_id:
                self._session = seen
        return seen

    def close(self, *, timeout: float | None = None) -> None:
        """Close the session. Its token is invalid from then on. If it has ended already, nothing happens."""
        with self._lock:
            if not self._closed:
                for each in filter(None, (self._previous, self.session_id)):
                    with suppress(SessionNotFound):
                        self._host.close_session(each, timeout=timeout)
                self._closed = True

    def keep_open(self, *, timeout: float | None = None) -> None:
        """Open the session again, if that is due. Every call does so by itself; use it before you hand the token on."""
        self._calls.renew_if_due(timeout)

    @property
    def _is_due(self) -> bool:
        """Whether the session should be opened again, and no call does so now."""
        return time.monotonic() >= self._due and not self._lock.locked()

    def _renew(self, token: str, deadline: float) -> bool:
        """Open the session again, unless *token* is no longer its token. False: it was ended, or purged.

        Raises whatever keeps the host from opening it.
        """
        with self._lock:
            if token != self.token:
                return True
            return not self._closed and self._open_again(deadline)

    def _open_again(self, deadline: float) -> bool:
        try:
            before = self._host.get_session(self.session_id, timeout=left(deadline))
        except SessionNotFound:
            return False
        if _was_ended(before) or _is_lower(before, self.session):
            return False  # or the server was set back to a time before a raise
        since = time.monotonic()
        opened = self._open_at(before.taint, before.integrity, before, deadline)
        self._previous, self._session = before.session_id, opened.session
        self._calls.use(opened.token)
        self._schedule(since)
        return True

    def _open_at(self, taint: Classification, integrity: Integrity, before: Session, deadline: float) -> SessionClient:
        """A session with this label, or with that to which the conversation was raised meanwhile.

        Always at one that is given: without, a reset meanwhile would lower it.
        """
        try:
            return self._host.open_session(
                before.agent_id,
                taint,
                integrity=integrity,
                conversation_id=before.conversation_id,
                ttl=self.ttl,
                read_only=before.read_only,
                timeout=left(deadline),
            )
        except ConversationTainted as error:
            raised = (max(taint, error.taint or taint), min(integrity, error.integrity))
            if raised == (taint, integrity):
                raise
            return self._open_at(*raised, before, deadline)

    def _schedule(self, since: float) -> None:
        """Have the session opened again in time. It was opened after *since*, by the monotonic clock."""
        lifetime = self.session.expire_time - self.session.create_time
        self._due = since + lifetime.total_seconds() * (1 - _EARLY)


def _was_ended(session: Session) -> bool:
    """Whether a session was closed or reset. One that only expired has no close_time, or its expire_time."""
    return session.close_time not in (None, session.expire_time)


def _is_lower(session: Session, known: Session) -> bool:
    """Whether either half of a label is one from which a raise had led away."""
    return session.taint < known.taint or session.integrity > known.integrity


class ConversationCalls(Calls):
    """Calls with the token of a session that is opened again before a call, or when it has expired."""

    def __init__(self, calls: Calls, conversation: Conversation) -> None:
        super().__init__(
            calls.channel, calls.credential, timeout=calls._timeout, retries=calls.retries, owns_channel=False
        )
        self.connect_timeout = calls.connect_timeout
        self._conversation = conversation
        self._previous: Calls | None = None
        """With the token before this one."""

    def use(self, token: str) -> None:
        """Make calls with *token* from now on."""
        self._previous = self.with_credential(self.credential)
        self.credential = token

    def renew_if_due(self, timeout: float | None) -> float:
        """Open the session again, if that is due, and return the deadline by the monotonic clock.

        A failure is left to the next call: the token is valid for a while yet.
        """
        token, deadline = self.credential, time.monotonic() + self._seconds(timeout)
        if self._conversation._is_due:
            with suppress(MunimentError):
                self._conversation._renew(token, deadline)
        return deadline

    def __call__(
        self,
        method: grpc.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        timeout: float | None = None,
    ) -> Response:
        """The response of *method*, or a MunimentError. *timeout* spans all attempts, and opening the session."""
        deadline = self.renew_if_due(timeout)
        token = self.credential
        try:
            return super().__call__(method, request, left(deadline))
        except CredentialExpired:
            if not self._conversation._renew(token, deadline):
                raise
        except InvalidPageToken as refused:
            return self._continued(method, request, deadline, refused)
        return super().__call__(method, request, left(deadline))

    def _continued(
        self,
        method: grpc.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        deadline: float,
        refused: InvalidPageToken,
    ) -> Response:
        """The next page of a list that was begun with the token before this one."""
        if self._previous is None or not getattr(request, "page_token", ""):
            raise refused
        try:
            return self._previous(method, request, left(deadline))
        except Unauthenticated:
            raise refused from None

    def stream(
        self,
        method: grpc.StreamUnaryMultiCallable[Request, Response],
        requests: Iterable[Request],
        timeout: float | None = None,
    ) -> Response:
        """The response of *method*, or a MunimentError, or whatever *requests* raises. Made once, with one token."""
        deadline = self.renew_if_due(timeout)
        return super().stream(method, requests, left(deadline))


def left(deadline: float) -> float:
    """The seconds until *deadline*, by the monotonic clock."""
    return max(deadline - time.monotonic(), _AT_ONCE)
