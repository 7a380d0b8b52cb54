"""Memory services for Google's ADK. Requires the extra `muniment[adk]`.

Both are `google.adk.memory.BaseMemoryService`. An event with text is a passage: the text of its parts, the author, the
time, the ADK session as its thread, and a tag for application and user, `muniment:adk:` and a hash. So an event that is
added again is stored once, and a passage that a model stores is no event.

- `MunimentMemoryService(session)` is for one conversation, whose taint the host raises as usual.
- `MunimentSharedMemoryService(uri="muniment://internal")` is for a whole application, without code: see its
  documentation. All its conversations read and write at one level, that of the URI.

Neither takes a level or an agent from a model. Memories above the taint do not exist, and one that exists only below
it cannot be deleted: that raises `WriteLevelMismatch`. What was deleted stays deleted, also if its ADK session is added
again at that level. A search returns the ten best matches, among them what was said right before and after one.
`custom_metadata` is not stored. Characters that cannot be stored, U+0000 and half of a surrogate pair, become U+FFFD: a
message that has one must not keep the rest of its session from being stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.genai.types import Content, Part

from muniment._blocking import require_blocking
from muniment._connect import connect_host
from muniment._imports import import_all
from muniment._listing import undisturbed
from muniment._reserved import RESERVED
from muniment.errors import AgentExists, AgentNotFound, MunimentError, PassageNotFound
from muniment.session import SessionClient
from muniment.values import Classification, NewPassage, Passage

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

MAX_RESULTS = 10
MAX_QUERY_CHARS = 1024
MAX_AUTHOR_CHARS = 256
MAX_PASSAGE_BYTES = 256 * 1024
DELETED = f"{RESERVED}adk-deleted/"
"""What the key of the memory that records a deletion begins with."""
TTL = timedelta(hours=1)
"""How long a session for one call stays open if closing it fails: longer than any import takes, even when it is
repeated."""
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_IDS = uuid.UUID("5f0c61a4-5b5c-4c9c-9d54-0d4a6c3f2b1e")
"""The namespace of the ids of events."""


class MunimentMemoryService(BaseMemoryService):
    """The memory of one conversation: that of its agent, up to the session's taint.

    It does not close the session. Memories of each application and user are kept apart. Calls run in threads, so it may
    be used from any event loop.
    """

    def __init__(self, session: SessionClient) -> None:
        require_blocking(session)
        self._session = session

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events of an ADK session that have text and are not stored yet.

        If some have more than 256 KiB of text, the others are stored, and it raises ValueError.
        """
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store the events that have text and are not stored yet. See `add_session_to_memory`."""
        passages = [
            NewPassage(
                text,
                thread=session_id or None,
                author=event.author[:MAX_AUTHOR_CHARS] or None,
                event_time=datetime.fromtimestamp(event.timestamp, UTC),
                passage_id=_id_of(app_name, user_id, session_id or "", event.id, text),
            )
            for event in events
            if (text := _text_of(event.content))
        ]
        await asyncio.to_thread(self._add, app_name, user_id, passages)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories that have text. One with an id is stored once. See `add_session_to_memory`."""
        passages = [
            NewPassage(
                text,
                author=(memory.author or "")[:MAX_AUTHOR_CHARS] or None,
                event_time=_time_of(memory.timestamp),
                passage_id=_id_of(app_name, user_id, "", memory.id, text) if memory.id else str(uuid.uuid4()),
            )
            for memory in memories
            if (text := _text_of(memory.content))
        ]
        await asyncio.to_thread(self._add, app_name, user_id, passages)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """The ten memories that match best."""
        wanted = _storable(query).strip()[:MAX_QUERY_CHARS]
        return SearchMemoryResponse(
            memories=await asyncio.to_thread(self._found, app_name, user_id, wanted) if wanted else []
        )

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete a memory by the id that a search returned. Does nothing if it does not exist."""
        passage_id = _passage_id(memory_id or "")
        if passage_id:
            await asyncio.to_thread(self._delete, app_name, user_id, passage_id)

    def _session_of(self, app_name: str, user_id: str) -> AbstractContextManager[SessionClient]:
        return nullcontext(self._session)

    def _add(self, app_name: str, user_id: str, passages: Sequence[NewPassage]) -> None:
        fitting = [each for each in passages if len(each.content.encode()) <= MAX_PASSAGE_BYTES]
        if fitting:
            self._add_fitting(app_name, user_id, fitting)
        if len(fitting) < len(passages):
            left_out = len(passages) - len(fitting)
            raise ValueError(f"events with more than 256 KiB of text were not stored: {left_out}. All others were")

    def _add_fitting(self, app_name: str, user_id: str, passages: Sequence[NewPassage]) -> None:
        tag = _tag_of(app_name, user_id)
        tagged = [
            NewPassage(each.content, [tag], each.thread, each.author, each.event_time, each.passage_id)
            for each in passages
        ]
        with self._session_of(app_name, user_id) as session:
            # They have ids: where the taint is raised meanwhile, those that are stored already are not stored again.
            undisturbed(lambda: _import_what_is_not_deleted(session, tagged))

    def _found(self, app_name: str, user_id: str, query: str) -> list[MemoryEntry]:
        tag = _tag_of(app_name, user_id)
        with self._session_of(app_name, user_id) as session:
            return [
                _entry(each.passage) for each in session.search_passages(query, tags=[tag], max_results=MAX_RESULTS)
            ]

    def _delete(self, app_name: str, user_id: str, memory_id: str) -> None:
        with self._session_of(app_name, user_id) as session, suppress(PassageNotFound):
            passage = session.get_passage(memory_id)
            if _tag_of(app_name, user_id) not in passage.tags:
                return
            # Recorded first: if that fails, the deletion can be repeated. One that is refused is not recorded.
            own = session.get_session()
            if (passage.classification, passage.integrity) == (own.taint, own.integrity):
                session.save_memory(f"{DELETED}{memory_id}", "deleted")
            session.delete_passage(memory_id)


class MunimentSharedMemoryService(MunimentMemoryService):
    """The memory of an application, at one level, with an agent for each of its users.

    Configured without code, in `services.yaml` in the folder of the agents:

        services:
          - scheme: muniment
            type: memory
            class: muniment.adk.MunimentSharedMemoryService

    and `adk web --memory_service_uri muniment://internal`. It connects as `muniment.connect_host()` does.
    The host of the URI is the level: public, internal, confidential or restricted. It opens a session for each call,
    because ADK does not say to which conversation a call belongs. So it is right for an application all of whose
    conversations are at that level; where a conversation may rise, give each a `MunimentMemoryService`. A user's agent
    is created when something is stored for the user for the first time.
    """

    def __init__(self, uri: str, **_: object) -> None:
        self._level = _level_of(uri)
        self._host = connect_host()

    async def close(self) -> None:
        """Close the connection."""
        await asyncio.to_thread(self._host.close)

    @contextmanager
    def _session_of(self, app_name: str, user_id: str) -> Iterator[SessionClient]:
        session = self._host.open_session(_agent_of(app_name, user_id), self._level, ttl=TTL)
        try:
            yield session
        finally:
            # An error here would make a success look like a failure, and ADK would store the same again. The session
            # expires by itself.
            with suppress(MunimentError):
                session.close()

    def _add_fitting(self, app_name: str, user_id: str, passages: Sequence[NewPassage]) -> None:
        """Creates the agent only if it does not exist: CreateAgent locks the tenant's limits."""
        try:
            super()._add_fitting(app_name, user_id, passages)
        except AgentNotFound:
            with suppress(AgentExists):
                self._host.create_agent(_agent_of(app_name, user_id), display_name=app_name)
            super()._add_fitting(app_name, user_id, passages)

    def _found(self, app_name: str, user_id: str, query: str) -> list[MemoryEntry]:
        with suppress(AgentNotFound):
            return super()._found(app_name, user_id, query)
        return []

    def _delete(self, app_name: str, user_id: str, memory_id: str) -> None:
        with suppress(AgentNotFound):
            super()._delete(app_name, user_id, memory_id)


def _import_what_is_not_deleted(session: SessionClient, passages: Sequence[NewPassage]) -> None:
    """Import *passages*, without those whose deletion is recorded.

    Raises TaintChanged if the taint is raised meanwhile: at the new taint, more deletions may be recorded.
    """
    listed = session.list_memories(key_prefix=DELETED, page_size=250)
    deleted = {memory.key.removeprefix(DELETED) for memory in listed}
    import_all(session, [each for each in passages if each.passage_id not in deleted])


def _passage_id(text: str) -> str | None:
    """The id as the server writes it, so that the record of a deletion names the passage. None if it is no UUID."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return None


def _level_of(uri: str) -> Classification:
    levels = {level.name.lower(): level for level in Classification}
    scheme, host, *rest = urlsplit(uri)
    if scheme != "muniment" or host.lower() not in levels or any(each.strip("/") for each in rest):
        raise ValueError(f"the URI must be muniment:// and a level, which is one of {', '.join(levels)}")
    return levels[host.lower()]


def _text_of(content: Content | None) -> str:
    parts = (content and content.parts) or ()
    return _storable(" ".join(part.text for part in parts if part.text and not part.thought))


def _storable(text: str) -> str:
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _time_of(timestamp: str | None) -> datetime | None:
    """The time of an entry. None if it is absent or not in ISO 8601."""
    try:
        time = datetime.fromisoformat(timestamp or "")
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _entry(passage: Passage) -> MemoryEntry:
    return MemoryEntry(
        id=passage.passage_id,
        content=Content(parts=[Part(text=passage.content)], role="user" if passage.author == "user" else "model"),
        author=passage.author,
        timestamp=passage.event_time.isoformat(),
    )


def _joined(*names: str) -> str:
    """One text for the names, different for others however they are split. The same in every language's adapter."""
    return "".join(f"{len(name.encode())}:{name}" for name in names)


def _digest(*names: str) -> str:
    return hashlib.sha256(_joined(*names).encode()).hexdigest()[:32]


def _tag_of(app_name: str, user_id: str) -> str:
    return f"{RESERVED}adk:{_digest(app_name, user_id)}"


def _agent_of(app_name: str, user_id: str) -> str:
    return f"adk-{_digest(app_name, user_id)}"


def _id_of(app_name: str, user_id: str, session_id: str, event_id: str, text: str) -> str:
    return str(uuid.uuid5(_IDS, _joined(app_name, user_id, session_id, event_id, text)))
