"""AgentService."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from muniment.v1 import agent_service_pb2 as pb
from muniment.v1 import agent_service_pb2_grpc
from muniment_server.domain import text
from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.domain.records import DEFAULT_MEMORY_SETTINGS, FIRST_BLOCKS, MemorySettings
from muniment_server.monitor import convert, paging
from muniment_server.monitor.call import CallContext
from muniment_server.monitor.store import Store


class AgentServicer(agent_service_pb2_grpc.AgentServiceServicer):
    """Agents, as one host manages them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def CreateAgent(self, request: pb.CreateAgentRequest, context: CallContext) -> pb.CreateAgentResponse:
        display_name = text.plain(request.display_name, field="display_name")
        settings = _with_defaults(convert.settings_from_proto(request.memory_settings))
        first_blocks = _first_blocks(request.initial_blocks)
        with self._store.as_host(context.host, context.call) as view:
            agent = view.agents.create(
                request.agent_id,
                display_name=display_name,
                language=request.language,
                settings=settings,
                first_blocks=first_blocks,
            )
        return pb.CreateAgentResponse(agent=convert.agent_to_proto(agent))

    def GetAgent(self, request: pb.GetAgentRequest, context: CallContext) -> pb.GetAgentResponse:
        with self._store.as_host(context.host, context.call) as view:
            agent = view.agents.get(request.agent_id)
        return pb.GetAgentResponse(agent=convert.agent_to_proto(agent))

    def ListAgents(self, request: pb.ListAgentsRequest, context: CallContext) -> pb.ListAgentsResponse:
        pager = context.pager()
        (after,) = pager.last(request.page_token) or [""]
        with self._store.as_host(context.host, context.call) as view:
            agents, more = view.agents.list(after=after, limit=paging.page_size(request.page_size))
        return pb.ListAgentsResponse(
            agents=map(convert.agent_to_proto, agents),
            next_page_token=pager.token(agents[-1].agent_id) if more else "",
        )

    def UpdateAgent(self, request: pb.UpdateAgentRequest, context: CallContext) -> pb.UpdateAgentResponse:
        display_name = None
        if request.HasField("display_name"):
            display_name = text.plain(request.display_name, field="display_name")
        with self._store.as_host(context.host, context.call) as view:
            agent = view.agents.update(
                request.agent_id,
                display_name=display_name,
                language=request.language if request.HasField("language") else None,
                settings=convert.settings_from_proto(request.memory_settings),
            )
        return pb.UpdateAgentResponse(agent=convert.agent_to_proto(agent))

    def DeleteAgent(self, request: pb.DeleteAgentRequest, context: CallContext) -> pb.DeleteAgentResponse:
        with self._store.as_host(context.host, context.call) as view:
            view.agents.delete(request.agent_id)
        return pb.DeleteAgentResponse()


def _first_blocks(given: Sequence[pb.InitialBlock]) -> Mapping[str, str]:
    """The blocks that an agent starts with, by label. Raises InvalidArgument for a label that is there twice."""
    blocks: dict[str, str] = {}
    for index, block in enumerate(given):
        label = text.label(block.label, field=f"initial_blocks[{index}].label")
        if label in blocks:
            raise InvalidArgument(FieldViolation(f"initial_blocks[{index}].label", "must not be there twice"))
        blocks[label] = text.content(block.content, field=f"initial_blocks[{index}].content")
    return blocks or FIRST_BLOCKS


def _with_defaults(settings: MemorySettings) -> MemorySettings:
    stated = {name: value for name, value in asdict(settings).items() if value is not None}
    return MemorySettings(**(asdict(DEFAULT_MEMORY_SETTINGS) | stated))
