"""Between the messages of the contract and the values of the domain."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from muniment.v1 import (
    agent_pb2,
    audit_pb2,
    block_pb2,
    classification_pb2,
    memory_pb2,
    memory_service_pb2,
    note_pb2,
    note_service_pb2,
    passage_pb2,
    passage_service_pb2,
    session_pb2,
)
from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import BudgetExceeded, FieldViolation, ImportProgress, InvalidArgument
from muniment_server.domain.records import (
    Agent,
    AuditEvent,
    Block,
    Memory,
    MemoryResult,
    MemorySettings,
    Note,
    NoteResult,
    Passage,
    PassageResult,
    Session,
    Tier,
    Usage,
)
from muniment_server.monitor import paging

_NANOS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def level_to_proto(level: Classification | None) -> classification_pb2.Classification.ValueType:
    """The number is the same in the contract; None is UNSPECIFIED."""
    return classification_pb2.Classification.ValueType(level or 0)


def join(levels: Iterable[Classification]) -> classification_pb2.Classification.ValueType:
    """The highest of *levels*; PUBLIC when there are none (Denning: the least element)."""
    return level_to_proto(max(levels, default=Classification.PUBLIC))


def time_to_proto(time: datetime | None) -> Timestamp | None:
    """An instant; None stays absent."""
    if time is None:
        return None
    since = time - _EPOCH
    return Timestamp(seconds=since.days * 86_400 + since.seconds, nanos=since.microseconds * 1000)


def time_from_proto(message: Timestamp, *, field: str) -> datetime:
    """An instant, cut to microseconds. Raises InvalidArgument for what is outside the years 1 to 9999."""
    if 0 <= message.nanos < _NANOS:
        with contextlib.suppress(ValueError, OverflowError):
            return message.ToDatetime(tzinfo=UTC)
    raise InvalidArgument(FieldViolation(field, "is not a time between the years 1 and 9999"))


def duration_from_proto(message: Duration, *, field: str) -> timedelta:
    """A length of time that is not negative, cut to microseconds. Raises InvalidArgument for nanos that cannot be."""
    if not 0 <= message.nanos < _NANOS:
        raise InvalidArgument(FieldViolation(field, "is not a duration"))
    return message.ToTimedelta()


def uuid_from_proto(text: str) -> UUID | None:
    """An id; None for the empty one. The contract's rules have made sure that it is one."""
    return UUID(text) if text else None


def id_from_proto(text: str) -> str:
    """An id as it is kept; empty stays empty. The contract's rules have made sure that it is one."""
    return str(UUID(text)) if text else ""


def optional_time_from_proto(message: Message, field: str, *, within: str = "") -> datetime | None:
    """The instant in a *field* of *message*; None when it is absent. Raises InvalidArgument."""
    return time_from_proto(getattr(message, field), field=f"{within}{field}") if message.HasField(field) else None


def tier_from_proto(tier: note_pb2.Tier.ValueType) -> Tier:
    """A tier; unspecified is the agent's own notes."""
    return Tier(tier or Tier.MEMORY)


def memory_to_proto(memory: Memory) -> memory_pb2.Memory:
    """A memory."""
    return memory_pb2.Memory(
        key=memory.key,
        content=memory.content,
        tags=memory.tags,
        classification=level_to_proto(memory.classification),
        etag=paging.etag(memory.version),
        create_time=time_to_proto(memory.create_time),
        update_time=time_to_proto(memory.update_time),
        expire_time=time_to_proto(memory.expire_time),
    )


def result_to_proto(result: MemoryResult) -> memory_service_pb2.MemoryResult:
    """A match of a search."""
    return memory_service_pb2.MemoryResult(
        memory=memory_to_proto(result.memory), score=result.score, snippet=result.snippet
    )


def note_to_proto(note: Note) -> note_pb2.Note:
    """A note."""
    return note_pb2.Note(
        note_id=note.note_id,
        tier=note_pb2.Tier.ValueType(note.tier),
        content=note.content,
        classification=level_to_proto(note.classification),
        etag=paging.etag(note.version),
        create_time=time_to_proto(note.create_time),
        update_time=time_to_proto(note.update_time),
    )


def note_result_to_proto(result: NoteResult) -> note_service_pb2.NoteResult:
    """A match of a search."""
    return note_service_pb2.NoteResult(note=note_to_proto(result.note), score=result.score, snippet=result.snippet)


def usage_to_proto(usage: Usage) -> note_pb2.Usage:
    """How much of a budget is used."""
    return note_pb2.Usage(
        tier=note_pb2.Tier.ValueType(usage.tier),
        used_chars=usage.used_chars,
        limit_chars=usage.limit_chars,
        percent=usage.percent,
    )


def budget_exceeded_to_proto(error: BudgetExceeded) -> note_pb2.BudgetExceeded:
    """What a session needs to make room."""
    return note_pb2.BudgetExceeded(
        usage=usage_to_proto(error.usage),
        would_be_chars=error.would_be_chars,
        over_by_chars=error.would_be_chars - error.usage.limit_chars,
        entries=[
            note_pb2.BudgetEntry(
                note_id=entry.note_id,
                length_chars=entry.length_chars,
                preview=entry.preview,
                own_level=entry.own_level,
                classification=level_to_proto(entry.classification),
            )
            for entry in error.entries
        ],
    )


def progress_to_proto(progress: ImportProgress) -> passage_pb2.ImportProgress:
    """How far a stream of passages came."""
    return passage_pb2.ImportProgress(stored_count=progress.stored_count, existing_count=progress.existing_count)


def block_to_proto(block: Block) -> block_pb2.Block:
    """A core block."""
    return block_pb2.Block(
        owner_agent_id=block.owner_agent_id,
        label=block.label,
        content=block.content,
        shared=block.shared,
        classification=level_to_proto(block.classification),
        etag=paging.etag(block.version),
        create_time=time_to_proto(block.create_time),
        update_time=time_to_proto(block.update_time),
    )


def passage_to_proto(passage: Passage) -> passage_pb2.Passage:
    """A passage."""
    return passage_pb2.Passage(
        passage_id=passage.passage_id,
        content=passage.content,
        tags=passage.tags,
        thread=passage.thread or "",
        author=passage.author or "",
        event_time=time_to_proto(passage.event_time),
        classification=level_to_proto(passage.classification),
        create_time=time_to_proto(passage.create_time),
        expire_time=time_to_proto(passage.expire_time),
    )


def passage_result_to_proto(result: PassageResult) -> passage_service_pb2.PassageResult:
    """A match of a search."""
    return passage_service_pb2.PassageResult(
        passage=passage_to_proto(result.passage), score=result.score, snippet=result.snippet
    )


def settings_from_proto(message: agent_pb2.MemorySettings) -> MemorySettings:
    """Settings, None where absent."""
    return MemorySettings(
        memory_enabled=message.memory_enabled if message.HasField("memory_enabled") else None,
        user_profile_enabled=message.user_profile_enabled if message.HasField("user_profile_enabled") else None,
        memory_char_limit=message.memory_char_limit if message.HasField("memory_char_limit") else None,
        user_char_limit=message.user_char_limit if message.HasField("user_char_limit") else None,
    )


def agent_to_proto(agent: Agent) -> agent_pb2.Agent:
    """An agent."""
    settings = agent.memory_settings
    return agent_pb2.Agent(
        agent_id=agent.agent_id,
        display_name=agent.display_name,
        language=agent.language,
        memory_settings=agent_pb2.MemorySettings(
            memory_enabled=settings.memory_enabled,
            user_profile_enabled=settings.user_profile_enabled,
            memory_char_limit=settings.memory_char_limit,
            user_char_limit=settings.user_char_limit,
        ),
        create_time=time_to_proto(agent.create_time),
        update_time=time_to_proto(agent.update_time),
    )


def session_to_proto(session: Session) -> session_pb2.Session:
    """A session."""
    return session_pb2.Session(
        session_id=str(session.session_id),
        agent_id=session.agent_id,
        conversation_id=session.conversation_id,
        taint=level_to_proto(session.taint),
        create_time=time_to_proto(session.create_time),
        expire_time=time_to_proto(session.expire_time),
        close_time=time_to_proto(session.close_time),
    )


def event_to_proto(event: AuditEvent) -> audit_pb2.AuditEvent:
    """An audit event; what it does not have stays empty."""
    return audit_pb2.AuditEvent(
        event_id=str(event.event_id),
        time=time_to_proto(event.time),
        classification=level_to_proto(event.classification),
        agent_id=event.agent_id or "",
        session_id=_text(event.session_id),
        host_key_id=_text(event.host_key_id),
        method=event.method,
        outcome=event.outcome,
        kind=audit_pb2.ItemKind.ValueType(event.kind or 0),
        item_id=_text(event.item_id),
        revision=event.revision or 0,
        result_count=event.result_count or 0,
        reason=event.reason or "",
    )


def _text(value: UUID | None) -> str:
    return str(value) if value is not None else ""
