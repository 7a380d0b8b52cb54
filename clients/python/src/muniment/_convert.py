"""Converts between messages of the contract and values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, ParamSpec, Protocol, TypeVar, cast
from uuid import uuid4

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from muniment import values
from muniment.errors import InvalidArgument
from muniment.v1 import agent_pb2, agent_service_pb2, audit_pb2, classification_pb2, session_pb2, tag_match_pb2

if TYPE_CHECKING:
    from muniment.v1 import block_pb2, classification_pb2, memory_pb2, note_pb2, passage_pb2, prompt_pb2

    Shown = memory_pb2.Memory | note_pb2.Note | block_pb2.Block | passage_pb2.Passage | prompt_pb2.PromptSection
    """What says whether a lower version is newer."""

TAG_MATCHES = {"all": tag_match_pb2.TAG_MATCH_ALL, "any": tag_match_pb2.TAG_MATCH_ANY}
KINDS = {int(kind): kind for kind in values.ItemKind}
TIERS = {int(tier): tier for tier in values.Tier}


Fields = ParamSpec("Fields")
Made = TypeVar("Made")


class HasRevealed(Protocol):
    """The response to a deletion."""

    @property
    def revealed(self) -> classification_pb2.Classification.ValueType:
        """The level of the lower version that is now visible. UNSPECIFIED if there is none."""


def message(kind: Callable[Fields, Made], /, *_: Fields.args, **fields: Fields.kwargs) -> Made:
    """A message to send. InvalidArgument: a text in it has half of a surrogate pair. TypeError names a wrong value.

    The UnicodeEncodeError of protobuf has the whole text, so the new error does not refer to it.
    """
    given = {name: [*value] if isinstance(value, Iterator) else value for name, value in fields.items()}
    make = cast("Callable[..., Made]", kind)
    try:
        return make(**given)
    except TypeError:
        for name, value in given.items():
            _require_type(kind, name, value)
        raise
    except UnicodeEncodeError:
        raise InvalidArgument(
            grpc.StatusCode.INVALID_ARGUMENT, message="a text has half of a surrogate pair, which cannot be sent"
        ) from None


def _require_type(kind: Callable[..., object], name: str, value: object) -> None:
    """Raise a TypeError that names the field, if that is the one that protobuf refuses."""
    try:
        kind(**{name: value})
    except TypeError:
        raise TypeError(f"{name} has a value of the wrong type: {type(value).__name__}") from None


def require(value: object, kind: type, name: str) -> None:
    """Raise a TypeError that names the argument, unless *value* is of that kind."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, not {type(value).__name__}")


def kind_to_proto(kind: values.ItemKind) -> audit_pb2.ItemKind.ValueType:
    """The number of a kind. Anything else is a ValueError before it is sent."""
    return cast("audit_pb2.ItemKind.ValueType", int(values.ItemKind(kind)))


def level_to_proto(level: values.Classification) -> classification_pb2.Classification.ValueType:
    """The number of a level. Anything else is a ValueError before it is sent."""
    return cast("classification_pb2.Classification.ValueType", int(values.Classification(level)))


def integrity_to_proto(integrity: values.Integrity) -> classification_pb2.Integrity.ValueType:
    """The number of an integrity. Anything else is a ValueError before it is sent."""
    return cast("classification_pb2.Integrity.ValueType", int(values.Integrity(integrity)))


def integrity(number: int) -> values.Integrity:
    """The integrity of a number of the contract. What this client does not know is not trusted."""
    return values.Integrity(number == values.Integrity.TRUSTED)


def taint_to_proto(taint: values.Classification | None) -> classification_pb2.Classification.ValueType:
    """The number of the taint to open a session at; None is that of the conversation."""
    return classification_pb2.CLASSIFICATION_UNSPECIFIED if taint is None else level_to_proto(taint)


def tag_match_to_proto(match: Literal["all", "any"]) -> tag_match_pb2.TagMatch.ValueType:
    if match not in ("all", "any"):
        raise ValueError("tag_match is 'all' or 'any'")
    return TAG_MATCHES[match]


def tier_to_proto(tier: values.Tier) -> note_pb2.Tier.ValueType:
    """The number of a tier. Anything else is a ValueError before it is sent."""
    return cast("note_pb2.Tier.ValueType", int(values.Tier(tier)))


def id_to_proto(given: str | None) -> str:
    """The id, or a new one. A request with an id is safe to retry."""
    return given or str(uuid4())


def tags_to_proto(tags: Iterable[str]) -> Iterable[str]:
    """The tags. Rejects a string, which would become one tag for each letter."""
    if isinstance(tags, str):
        raise TypeError("tags must be a list of strings, not one string")
    return tags


def time_to_proto(time: datetime | None) -> Timestamp | None:
    if time is None:
        return None
    if not isinstance(time, datetime):
        raise TypeError("a time must be a datetime with a zone")
    if time.tzinfo is None:
        raise ValueError("a time needs a zone, such as datetime.UTC")
    sent = Timestamp()
    try:
        sent.FromDatetime(time)
    except OverflowError:
        raise ValueError("a time must be from year 1 to 9999 in UTC") from None
    return sent


def duration_to_proto(duration: timedelta | None) -> Duration | None:
    if duration is None:
        return None
    require(duration, timedelta, "a duration")
    sent = Duration()
    sent.FromTimedelta(duration)
    return sent


def settings_to_proto(settings: values.MemorySettings | None) -> agent_pb2.MemorySettings | None:
    if settings is None:
        return None
    require(settings, values.MemorySettings, "memory_settings")
    return message(
        agent_pb2.MemorySettings,
        memory_enabled=settings.memory_enabled,
        user_profile_enabled=settings.user_profile_enabled,
        memory_char_limit=settings.memory_char_limit,
        user_char_limit=settings.user_char_limit,
    )


def limits_to_proto(limits: values.AgentLimits | None) -> agent_pb2.AgentLimits | None:
    if limits is None:
        return None
    require(limits, values.AgentLimits, "limits")
    ttls = {name: duration_to_proto(getattr(limits, name)) for name in ("memory_ttl", "passage_ttl")}
    return message(agent_pb2.AgentLimits, **asdict(limits) | ttls)


def initial_blocks_to_proto(blocks: Mapping[str, str] | None) -> Iterable[agent_service_pb2.InitialBlock]:
    """The blocks. An empty mapping is rejected: to the server, no blocks means its three default blocks."""
    if blocks is None:
        return ()
    require(blocks, Mapping, "initial_blocks")
    if not blocks:
        raise ValueError("initial_blocks must have a block, or be None for the three default blocks")
    return [message(agent_service_pb2.InitialBlock, label=label, content=text) for label, text in blocks.items()]


def utc(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(tzinfo=UTC)


def newer_below(message: Shown) -> values.NewerBelow | None:
    if not message.HasField("newer_below"):
        return None
    newer = message.newer_below
    level = values.Classification(newer.classification)
    return values.NewerBelow(level, utc(newer.update_time), integrity(newer.integrity))


def agent(message: agent_pb2.Agent, storage: Iterable[agent_pb2.AgentStorage] = ()) -> values.Agent:
    return values.Agent(
        agent_id=message.agent_id,
        display_name=message.display_name,
        language=message.language,
        ceiling=values.Classification(message.ceiling) if message.ceiling else None,
        memory_settings=settings(message.memory_settings),
        create_time=utc(message.create_time),
        update_time=utc(message.update_time),
        limits=limits(message.limits),
        storage=tuple(
            values.AgentStorage(
                values.Classification(one.classification),
                one.items,
                one.bytes,
                one.nearly_full,
                integrity(one.integrity),
            )
            for one in storage
        ),
        known_from=values.Classification(message.known_from) if message.known_from else None,
        held=message.held,
    )


def limits(message: agent_pb2.AgentLimits) -> values.AgentLimits:
    return values.AgentLimits(
        calls_per_second=message.calls_per_second if message.HasField("calls_per_second") else None,
        max_items=message.max_items if message.HasField("max_items") else None,
        max_bytes=message.max_bytes if message.HasField("max_bytes") else None,
        max_revisions=message.max_revisions if message.HasField("max_revisions") else None,
        memory_ttl=message.memory_ttl.ToTimedelta(),
        passage_ttl=message.passage_ttl.ToTimedelta(),
    )


def settings(message: agent_pb2.MemorySettings) -> values.MemorySettings:
    return values.MemorySettings(
        memory_enabled=message.memory_enabled if message.HasField("memory_enabled") else None,
        user_profile_enabled=message.user_profile_enabled if message.HasField("user_profile_enabled") else None,
        memory_char_limit=message.memory_char_limit if message.HasField("memory_char_limit") else None,
        user_char_limit=message.user_char_limit if message.HasField("user_char_limit") else None,
    )


def session(message: session_pb2.Session) -> values.Session:
    return values.Session(
        session_id=message.session_id,
        agent_id=message.agent_id,
        conversation_id=message.conversation_id,
        taint=values.Classification(message.taint),
        create_time=utc(message.create_time),
        expire_time=utc(message.expire_time),
        close_time=utc(message.close_time) if message.HasField("close_time") else None,
        ceiling=values.Classification(message.ceiling) if message.ceiling else None,
        integrity=integrity(message.integrity),
        read_only=message.read_only,
    )


def usage(message: note_pb2.Usage) -> values.Usage:
    return values.Usage(
        tier=values.Tier(message.tier),
        used_chars=message.used_chars,
        limit_chars=message.limit_chars,
        percent=message.percent,
    )


def revealed(message: HasRevealed) -> values.Classification | None:
    return values.Classification(message.revealed) if message.revealed else None


def audit_checkpoint(message: audit_pb2.AuditCheckpoint) -> values.AuditCheckpoint:
    return values.AuditCheckpoint(
        classification=values.Classification(message.classification),
        seal_number=message.seal_number,
        event_count=message.event_count,
        head_hash=message.head_hash,
        time=utc(message.time) if message.HasField("time") else None,
        integrity=integrity(message.integrity),
    )


def audit_event(message: audit_pb2.AuditEvent) -> values.AuditEvent:
    return values.AuditEvent(
        event_id=message.event_id,
        time=utc(message.time),
        classification=values.Classification(message.classification),
        agent_id=message.agent_id or None,
        session_id=message.session_id or None,
        host_key_id=message.host_key_id or None,
        method=message.method,
        outcome=message.outcome,
        kind=KINDS.get(message.kind),
        item_id=message.item_id or None,
        revision=message.revision or None,
        result_count=message.result_count,
        reason=message.reason,
        integrity=integrity(message.integrity),
    )
