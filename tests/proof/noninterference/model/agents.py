"""Agents and the audit, as they must be."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from muniment.v1 import agent_pb2, agent_service_pb2, audit_pb2, audit_service_pb2
from muniment_server.domain.classification import Classification
from tests.proof.noninterference.model.blocks import FIRST_BLOCKS
from tests.proof.noninterference.model.ground import Ground
from tests.proof.noninterference.rules import key_of, label_of, tags_of
from tests.proof.noninterference.values import (
    LATER,
    PUBLIC,
    Agent,
    ByName,
    Refused,
    Untold,
    Version,
    label_from,
    page_size,
    stamp,
)

LIMITS: dict[str, Any] = {
    "calls_per_second": 2000,
    "max_items": 1_000_000,
    "max_bytes": 4 << 30,
    "max_revisions": 100_000,
}
"""Those of an agent for which none are stated."""


class Agents(Ground):
    """AgentService and AuditService."""

    def _CreateAgent(self, tenant: str, ceiling: int, request: agent_service_pb2.CreateAgentRequest) -> Message:
        self._first_blocks = self._blocks_at_first(request)
        if request.ceiling > ceiling:
            raise Refused("CEILING_EXCEEDED")
        if (tenant, request.agent_id) in self.agents:
            raise Refused("AGENT_EXISTS")
        own = request.ceiling or ceiling
        settings = agent_pb2.MemorySettings(
            memory_enabled=True, user_profile_enabled=True, memory_char_limit=2200, user_char_limit=1375
        )
        settings.MergeFrom(request.memory_settings)
        limits = agent_pb2.AgentLimits(**LIMITS)
        limits.MergeFrom(request.limits)
        return agent_service_pb2.CreateAgentResponse(
            agent=agent_pb2.Agent(
                agent_id=request.agent_id or LATER,
                display_name=request.display_name,
                language=request.language,
                ceiling=own,  # type: ignore[arg-type]  # a number of the enum
                known_from=min(own, request.known_from or own),  # type: ignore[arg-type]
                memory_settings=settings,
                create_time=stamp(self.now),
                update_time=stamp(self.now),
                limits=limits,
            )
        )

    def _blocks_at_first(self, request: agent_service_pb2.CreateAgentRequest) -> ByName:
        given = [(label_of(block.label), block.content) for block in request.initial_blocks]
        if len(dict(given)) < len(given):
            raise Refused("FIELD_INVALID")
        return {label: {PUBLIC: self._new(content)} for label, content in given or FIRST_BLOCKS.items()}

    def _GetAgent(self, tenant: str, ceiling: int, request: agent_service_pb2.GetAgentRequest) -> Message:
        return agent_service_pb2.GetAgentResponse(agent=_for(ceiling, self._agent(tenant, ceiling, request.agent_id)))

    def _ListAgents(self, tenant: str, ceiling: int, request: agent_service_pb2.ListAgentsRequest) -> Message:
        after = self._last("ListAgents", request.page_token, (), 0) or ""
        wanted = sorted(
            agent_id
            for (of, agent_id), agent in self.agents.items()
            if of == tenant and agent.shown.known_from <= ceiling and agent_id > after
        )
        page = wanted[: page_size(request.page_size)]
        more = self._more(page != wanted, (), 0, page and page[-1])
        shown = [_for(ceiling, self.agents[tenant, agent_id]) for agent_id in page]
        return agent_service_pb2.ListAgentsResponse(agents=shown, next_page_token=more)

    def _UpdateAgent(self, tenant: str, ceiling: int, request: agent_service_pb2.UpdateAgentRequest) -> Message:
        [agent] = self._reached(tenant, ceiling, request.agent_id)
        shown = agent.shown
        for name in ("display_name", "language"):
            if request.HasField(name):
                setattr(shown, name, getattr(request, name))
        if request.HasField("known_from"):
            shown.known_from = min(request.known_from, shown.ceiling)
        shown.memory_settings.MergeFrom(request.memory_settings)
        shown.limits.MergeFrom(request.limits)
        shown.update_time.FromDatetime(self.now)
        return agent_service_pb2.UpdateAgentResponse(agent=shown)

    def _DeleteAgent(self, tenant: str, ceiling: int, request: agent_service_pb2.DeleteAgentRequest) -> Message:
        [gone] = self._reached(tenant, ceiling, request.agent_id)
        del self.agents[tenant, request.agent_id]
        self.sessions = {name: one for name, one in self.sessions.items() if one.agent is not gone}
        for consumers in (consumers for owner in self.agents.values() for consumers in owner.shared.values()):
            if gone in consumers:
                consumers.remove(gone)
        return agent_service_pb2.DeleteAgentResponse()

    def _EraseItems(self, tenant: str, ceiling: int, request: agent_service_pb2.EraseItemsRequest) -> Message:
        if bool(request.name) == bool(request.tag):
            raise Refused("FIELD_INVALID")
        tags = tags_of([request.tag] if request.tag else [])
        name = {3: label_of}.get(request.kind, key_of)(request.name) if request.name else None
        [agent] = self._reached(tenant, ceiling, request.agent_id)
        items = {1: agent.memories, 3: agent.blocks, 4: agent.passages}[request.kind]
        for at, versions in items.items():
            for level, version in list(versions.items()):
                if _is_meant(at, version, name, tags):
                    del versions[level]
        for (at, _), gone in agent.deleted[request.kind].items():
            gone[:] = [one for one in gone if not _is_meant(at, one, name, tags)]
        return agent_service_pb2.EraseItemsResponse()

    def _UndeleteItem(self, tenant: str, ceiling: int, request: agent_service_pb2.UndeleteItemRequest) -> Message:
        name = {1: key_of, 3: label_of}.get(request.kind, str)(request.name)
        level, label = int(request.classification), label_from(request.classification, request.integrity)
        if level > ceiling:
            raise Refused("CEILING_EXCEEDED")
        [agent] = self._reached(tenant, ceiling, request.agent_id)
        if level > agent.shown.ceiling:
            raise Refused("AGENT_CEILING_EXCEEDED")
        items = {1: agent.memories, 3: agent.blocks, 4: agent.passages}[request.kind]
        own = items.get(name, {}).get(label)
        if own is not None and self._lives(own):
            raise Refused("ITEM_EXISTS")
        gone = agent.deleted[request.kind].get((name, label), [])
        if own is not None or not gone or not self._lives(gone[-1]):
            raise Refused({1: "MEMORY_NOT_FOUND", 3: "BLOCK_NOT_FOUND", 4: "PASSAGE_NOT_FOUND"}[request.kind])
        back = items.setdefault(name, {})[label] = gone.pop()
        if request.kind == 4:
            back.updated = self.now
        else:
            back.revise(self.now)
        return agent_service_pb2.UndeleteItemResponse()

    def _ListAuditEvents(self, _: str, ceiling: int, request: audit_service_pb2.ListAuditEventsRequest) -> Untold:
        filters = (request.agent_id, request.session_id)
        self._last("ListAuditEvents", request.page_token, filters, 0)
        self._page = (filters, ("audit", 0, None))
        return Untold(ceiling)

    def _GetAuditCheckpoint(
        self, _: str, ceiling: int, request: audit_service_pb2.GetAuditCheckpointRequest
    ) -> Message:
        if ceiling < Classification.RESTRICTED:
            raise Refused("CEILING_EXCEEDED")
        unsealed = audit_pb2.AuditCheckpoint(classification=request.classification, integrity=request.integrity)
        return audit_service_pb2.GetAuditCheckpointResponse(checkpoint=unsealed)


def _for(ceiling: int, agent: Agent) -> agent_pb2.Agent:
    """What a host key of this ceiling sees of an agent that it knows."""
    shown = agent_pb2.Agent.FromString(agent.shown.SerializeToString())
    if shown.ceiling > ceiling:
        shown.ClearField("ceiling")
    return shown


def _is_meant(at: str, version: Version, name: str | None, tags: list[str]) -> bool:
    """Whether an item named *at* has, or in any revision had, a name or one of *tags*."""
    had = {tag for revision in (version, *version.earlier) for tag in revision.tags}
    return name in {at, *version.earlier_names} or not had.isdisjoint(tags)
