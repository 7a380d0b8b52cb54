"""What a session may do: what its agent keeps, as far as its taint sees."""

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
from muniment.errors import MunimentError, Unauthenticated
from muniment.v1.session_service_pb2 import CloseSessionRequest, GetSessionRequest
from muniment.v1.session_service_pb2_grpc import SessionServiceStub
from muniment.values import Session


class SessionClient(Memories, Notes, Blocks, Passages, Prompts):
    """One session of an agent. Safe to use from several threads.

    Made by `HostClient.open_session`, leaving it (`with`) closes the session. Made from a token,
    leaving it only lets go of the connection: the session belongs to whoever opened it.

    Every method takes a *timeout* in seconds, for all its attempts; None means the client's.
    """

    def __init__(self, calls: Calls, opened: Session | None = None) -> None:
        self._calls = calls
        self._opened = opened is not None
        self._closed = False
        self._session = opened
        self._sessions = SessionServiceStub(calls.channel)

    @property
    def token(self) -> str:
        """The credential. Whoever has it is this session."""
        return self._calls.credential

    @property
    def session(self) -> Session:
        """The session as this client last got it: by opening it, or by `get_session`, now if not before.

        A host may have raised its taint since.
        """
        return self._session or self.get_session()

    @property
    def session_id(self) -> str:
        """The id. Of a session made from a token, the first time asks the server."""
        return self.session.session_id

    def get_session(self, *, timeout: float | None = None) -> Session:
        """The session as it is now."""
        response = self._calls(self._sessions.GetSession, GetSessionRequest(), timeout)
        self._session = _convert.session(response.session)
        return self._session

    def close(self, *, timeout: float | None = None) -> None:
        """Close the session: its token is worth nothing from then on. A second time does nothing.

        Unauthenticated: it is over already, by its host, a reset, or time.
        """
        if not self._closed:
            self._calls(self._sessions.CloseSession, CloseSessionRequest(), timeout)
            self._closed = True
            self._calls.close()

    def disconnect(self) -> None:
        """Let go of the connection and leave the session open. One lent by a host stays the host's."""
        self._calls.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened:
            # A session that is over already is what was wanted, and no failure to close hides the first one.
            with suppress(Unauthenticated if error is None else MunimentError):
                self.close()
        else:
            self.disconnect()

    def __repr__(self) -> str:
        return f"<SessionClient {self._session.session_id if self._session else 'by token'}>"
