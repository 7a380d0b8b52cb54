"""The client of a session: the items of its agent, up to its taint."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import Self

from muniment import _convert
from muniment._blocks import Blocks
from muniment._calls import Calls
from muniment._memories import Memories
from muniment._notes import Notes
from muniment._passages import Passages
from muniment._prompts import Prompts
from muniment._versions import Versions
from muniment.errors import MunimentError, Unauthenticated
from muniment.v1.session_service_pb2 import CloseSessionRequest, GetSessionRequest
from muniment.v1.session_service_pb2_grpc import SessionServiceStub
from muniment.values import Session


class SessionClient(Memories, Notes, Blocks, Passages, Prompts, Versions):
    """One session of an agent. Safe to use from several threads.

    As a context manager, a client from `HostClient.open_session` closes the session at the end. A client from a token
    closes only the connection, because another client has opened the session.

    Every method takes a *timeout* in seconds, for all its attempts; None means the client's default.
    """

    def __init__(self, calls: Calls, opened: Session | None = None) -> None:
        self._calls = calls
        self._opened = opened is not None
        self._closed = False
        self._session = opened
        self._sessions = SessionServiceStub(calls.channel)

    @property
    def token(self) -> str:
        """The credential. Anyone who has it can act as this session."""
        return self._calls.credential

    @property
    def retries(self) -> bool:
        """Whether calls that failed are retried."""
        return self._calls.retries

    @property
    def session(self) -> Session:
        """The session as the client last received it, which it requests now if it has not yet.

        A host may have raised the taint since then.
        """
        return self._session or self.get_session()

    @property
    def session_id(self) -> str:
        """The id. For a session from a token, the first access asks the server."""
        return self.session.session_id

    def get_session(self, *, timeout: float | None = None) -> Session:
        """The current state of the session."""
        response = self._calls(self._sessions.GetSession, GetSessionRequest(), timeout)
        self._session = _convert.session(response.session)
        return self._session

    def close(self, *, timeout: float | None = None) -> None:
        """Close the session. Its token is invalid from then on. A second call does nothing.

        Unauthenticated: the session has already been closed or reset, or has expired.
        """
        if not self._closed:
            self._calls(self._sessions.CloseSession, CloseSessionRequest(), timeout)
            self._closed = True
            self._calls.close()

    def disconnect(self) -> None:
        """Close the connection, unless a host owns it, and leave the session open."""
        self._calls.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened:
            # A session that is already closed is fine, and a failure to close must not hide the first error.
            with suppress(Unauthenticated if error is None else MunimentError):
                self.close()
        else:
            self.disconnect()

    def __repr__(self) -> str:
        return f"<SessionClient {self._session.session_id if self._session else 'by token'}>"
