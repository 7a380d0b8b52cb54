"""What a session may do: its own memories, as far as its taint sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Literal, Self

from muniment import _convert
from muniment._calls import Calls, pages
from muniment.errors import MunimentError, Unauthenticated
from muniment.v1 import memory_service_pb2 as pb
from muniment.v1.memory_service_pb2_grpc import MemoryServiceStub
from muniment.v1.session_service_pb2 import CloseSessionRequest, GetSessionRequest
from muniment.v1.session_service_pb2_grpc import SessionServiceStub
from muniment.values import Classification, Memory, MemoryPage, SearchResults, Session


class SessionClient:
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
        self._memories = MemoryServiceStub(calls.channel)
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

    def save_memory(
        self,
        key: str,
        content: str,
        *,
        tags: Iterable[str] = (),
        expire_time: datetime | None = None,
        etag: str | None = None,
        timeout: float | None = None,
    ) -> Memory:
        """Create or replace the memory at the session's own level. Versions at other levels stay.

        *key* is 1 to 256 code points, *content* 1 byte to 64 KiB, *tags* up to 32 of up to 64 code points.
        Tags are replaced, not merged. With *etag* only that version is replaced, or EtagStale.
        """
        request = pb.SaveMemoryRequest(
            key=key,
            content=content,
            tags=_convert.tags_to_proto(tags),
            expire_time=_convert.time_to_proto(expire_time),
            etag=etag or "",
        )
        return _convert.memory(self._calls(self._memories.SaveMemory, request, timeout).memory)

    def get_memory(self, key: str, *, timeout: float | None = None) -> Memory:
        """The memory at its highest visible level. MemoryNotFound: none is visible."""
        request = pb.GetMemoryRequest(key=key)
        return _convert.memory(self._calls(self._memories.GetMemory, request, timeout).memory)

    def list_memories(
        self, tag: str | None = None, *, page_size: int = 0, timeout: float | None = None
    ) -> Iterator[Memory]:
        """The visible memories by key, each at its highest visible level; pages are fetched as needed.

        *timeout* is for each page. TaintChanged: the taint was raised between two pages, start again.
        """
        for page in pages(
            lambda token: self.list_memories_page(tag, page_size=page_size, page_token=token, timeout=timeout)
        ):
            yield from page

    def list_memories_page(
        self,
        tag: str | None = None,
        *,
        page_size: int = 0,
        page_token: str = "",
        timeout: float | None = None,
    ) -> MemoryPage:
        """One page, with the highest level in it. A *page_size* of 0 means 50; the most is 250."""
        request = pb.ListMemoriesRequest(tag=tag or "", page_size=page_size, page_token=page_token)
        return _convert.memory_page(self._calls(self._memories.ListMemories, request, timeout))

    def search_memories(
        self,
        query: str,
        *,
        max_results: int = 0,
        tags: Iterable[str] = (),
        tag_match: Literal["all", "any"] = "all",
        timeout: float | None = None,
    ) -> SearchResults:
        """The memories that match a query in plain language, best first.

        *query* is 1 to 1024 code points; nothing in it is syntax. A *max_results* of 0 means 10; the most
        is 100.
        """
        request = pb.SearchMemoriesRequest(
            query=query,
            max_results=max_results,
            tags=_convert.tags_to_proto(tags),
            tag_match=_convert.tag_match_to_proto(tag_match),
        )
        return _convert.search_results(self._calls(self._memories.SearchMemories, request, timeout))

    def delete_memory(
        self, key: str, *, etag: str | None = None, timeout: float | None = None
    ) -> Classification | None:
        """Delete the session's own-level version, and say at which level a lower one is seen from now on.

        WriteLevelMismatch: only lower versions are visible. MemoryNotFound: none is.
        """
        request = pb.DeleteMemoryRequest(key=key, etag=etag or "")
        return _convert.revealed(self._calls(self._memories.DeleteMemory, request, timeout))

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
