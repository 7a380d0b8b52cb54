"""Agents in the contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from google.protobuf.duration_pb2 import Duration

from muniment.v1 import agent_pb2, agent_service_pb2
from muniment_server.agents.erasing import Target
from muniment_server.agents.repository import FIRST_BLOCKS, Agent, Storage
from muniment_server.domain import text
from muniment_server.domain.budgets import MemorySettings
from muniment_server.domain.classification import Classification
from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.domain.ids import ItemId
from muniment_server.domain.items import ItemKind, Version
from muniment_server.domain.limits import NEARLY_FULL, AgentLimits
from muniment_server.items.wire import label_to_proto, level_to_proto, name_from_proto, time_to_proto

_MAX_NAMED = 100
_S = TypeVar("_S", MemorySettings, AgentLimits)


def first_blocks(given: Sequence[agent_service_pb2.InitialBlock]) -> Mapping[str, str]:
    """The blocks that an agent starts with, by label. Raises InvalidArgument for a label that is given twice."""
    blocks: dict[str, str] = {}
    for index, block in enumerate(given):
        label = text.label(block.label, field=f"initial_blocks[{index}].label", is_new=True)
        if label in blocks:
            raise InvalidArgument(FieldViolation(f"initial_blocks[{index}].label", "must not be repeated"))
        blocks[label] = text.content(block.content, field=f"initial_blocks[{index}].content")
    return blocks or FIRST_BLOCKS


def with_defaults(given: _S, defaults: _S) -> _S:
    """*given*, complete."""
    return replace(defaults, **{name: value for name, value in asdict(given).items() if value is not None})


def settings_from_proto(message: agent_pb2.MemorySettings) -> MemorySettings:
    """Settings, None where they are absent."""
    return MemorySettings(
        memory_enabled=message.memory_enabled if message.HasField("memory_enabled") else None,
        user_profile_enabled=message.user_profile_enabled if message.HasField("user_profile_enabled") else None,
        memory_char_limit=message.memory_char_limit if message.HasField("memory_char_limit") else None,
        user_char_limit=message.user_char_limit if message.HasField("user_char_limit") else None,
    )


def limits_from_proto(message: agent_pb2.AgentLimits) -> AgentLimits:
    """Limits, None where they are absent."""
    return AgentLimits(
        calls_per_second=message.calls_per_second if message.HasField("calls_per_second") else None,
        max_items=message.max_items if message.HasField("max_items") else None,
        max_bytes=message.max_bytes if message.HasField("max_bytes") else None,
        max_revisions=message.max_revisions if message.HasField("max_revisions") else None,
        memory_ttl=message.memory_ttl.ToTimedelta() if message.HasField("memory_ttl") else None,
        passage_ttl=message.passage_ttl.ToTimedelta() if message.HasField("passage_ttl") else None,
    )


def storage_to_proto(storage: Storage, agent: Agent) -> agent_pb2.AgentStorage:
    """What *agent* stores with one label."""
    return agent_pb2.AgentStorage(
        **label_to_proto(storage.label),
        items=storage.items,
        bytes=storage.bytes,
        nearly_full=_is_nearly(storage.items, agent.max_items) or _is_nearly(storage.bytes, agent.max_bytes),
    )


def _is_nearly(stored: int, most: int) -> bool:
    """Whether what is stored is most of what may be. Nothing never is, even if nothing may be stored."""
    return stored >= max(NEARLY_FULL * most, 1)


def agent_to_proto(agent: Agent, key_ceiling: Classification) -> agent_pb2.Agent:
    """An agent, for a host key with the ceiling *key_ceiling*: a higher one of the agent is not shown."""
    return agent_pb2.Agent(
        agent_id=agent.agent_id,
        display_name=agent.display_name,
        language=agent.language,
        ceiling=level_to_proto(agent.ceiling if agent.ceiling.can_flow_to(key_ceiling) else None),
        known_from=level_to_proto(agent.known_from),
        memory_settings=agent_pb2.MemorySettings(
            memory_enabled=agent.memory_enabled,
            user_profile_enabled=agent.user_profile_enabled,
            memory_char_limit=agent.memory_char_limit,
            user_char_limit=agent.user_char_limit,
        ),
        create_time=time_to_proto(agent.create_time),
        update_time=time_to_proto(agent.update_time),
        limits=agent_pb2.AgentLimits(
            calls_per_second=agent.calls_per_second,
            max_items=agent.max_items,
            max_bytes=agent.max_bytes,
            max_revisions=agent.max_revisions,
            memory_ttl=_duration_to_proto(agent.memory_ttl),
            passage_ttl=_duration_to_proto(agent.passage_ttl),
        ),
        held=agent.held,
    )


def _duration_to_proto(ttl: timedelta) -> Duration | None:
    """A time to live. Absent for what does not expire."""
    if not ttl:
        return None
    sent = Duration()
    sent.FromTimedelta(ttl)
    return sent


def erased_to_proto(left_out: Sequence[str]) -> agent_service_pb2.EraseItemsResponse:
    """What an erasure has left out: agents by id, of which some are named."""
    return agent_service_pb2.EraseItemsResponse(skipped_agent_ids=left_out[:_MAX_NAMED], skipped_count=len(left_out))


def target_from_proto(request: agent_service_pb2.EraseItemsRequest, kind: ItemKind) -> Target:
    """What to erase. Raises InvalidArgument unless it is exactly one of a name, a tag and a revision.

    Only what has a tag can be that of every agent.
    """
    if bool(request.agent_id) == request.every_agent:
        raise InvalidArgument(FieldViolation("agent_id", "set either agent_id or every_agent"))
    if request.every_agent and not request.tag:
        raise InvalidArgument(FieldViolation("every_agent", "must be set together with tag"))
    if [bool(field) for field in (request.name, request.tag, request.item_id)].count(True) != 1:
        raise InvalidArgument(FieldViolation("name", "set exactly one of name, tag and item_id"))
    if bool(request.item_id) != bool(request.revision):
        raise InvalidArgument(FieldViolation("revision", "must be set together with item_id"))
    if request.item_id:
        return Target(version=Version(ItemId(UUID(request.item_id)), request.revision))
    if request.tag:
        return Target(tag=text.tag(request.tag, field="tag"))
    return Target(name=name_from_proto(request.name, kind))
