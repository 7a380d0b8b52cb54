"""AgentService."""

from __future__ import annotations

from muniment.v1 import agent_service_pb2 as pb
from muniment.v1 import agent_service_pb2_grpc
from muniment_server.agents import erasing, repository, undeleting, wire
from muniment_server.domain import text
from muniment_server.domain.budgets import DEFAULT_MEMORY_SETTINGS
from muniment_server.domain.classification import Classification, Integrity, Label
from muniment_server.domain.items import ItemKind
from muniment_server.domain.limits import DEFAULT_LIMITS
from muniment_server.items import paging
from muniment_server.items.wire import name_from_proto
from muniment_server.monitor.call import CallContext


class AgentServicer(agent_service_pb2_grpc.AgentServiceServicer):
    """Agents, as one host manages them."""

    def CreateAgent(self, request: pb.CreateAgentRequest, context: CallContext) -> pb.CreateAgentResponse:
        display_name = text.plain(request.display_name, field="display_name")
        settings = wire.with_defaults(wire.settings_from_proto(request.memory_settings), DEFAULT_MEMORY_SETTINGS)
        limits = wire.with_defaults(wire.limits_from_proto(request.limits), DEFAULT_LIMITS)
        first_blocks = wire.first_blocks(request.initial_blocks)
        with context.host_scope() as scope:
            agent = repository.create(
                scope,
                request.agent_id,
                display_name=display_name,
                language=request.language,
                ceiling=Classification(request.ceiling) if request.HasField("ceiling") else None,
                known_from=Classification(request.known_from) if request.HasField("known_from") else None,
                settings=settings,
                limits=limits,
                first_blocks=first_blocks,
            )
            return pb.CreateAgentResponse(agent=wire.agent_to_proto(agent, scope.ceiling))

    def GetAgent(self, request: pb.GetAgentRequest, context: CallContext) -> pb.GetAgentResponse:
        with context.host_scope() as scope:
            agent = repository.get(scope, request.agent_id)
            storage = repository.storage(scope, agent)
            return pb.GetAgentResponse(
                agent=wire.agent_to_proto(agent, scope.ceiling),
                storage=[wire.storage_to_proto(one, agent) for one in storage],
            )

    def ListAgents(self, request: pb.ListAgentsRequest, context: CallContext) -> pb.ListAgentsResponse:
        pager = context.pager()
        (after,) = pager.last(request.page_token) or [""]
        with context.host_scope() as scope:
            agents, more = repository.list_agents(scope, after=after, limit=paging.page_size(request.page_size))
            return pb.ListAgentsResponse(
                agents=[wire.agent_to_proto(agent, scope.ceiling) for agent in agents],
                next_page_token=pager.token(agents[-1].agent_id) if more else "",
            )

    def UpdateAgent(self, request: pb.UpdateAgentRequest, context: CallContext) -> pb.UpdateAgentResponse:
        display_name = None
        if request.HasField("display_name"):
            display_name = text.plain(request.display_name, field="display_name")
        with context.host_scope() as scope:
            agent = repository.update(
                scope,
                request.agent_id,
                display_name=display_name,
                language=request.language if request.HasField("language") else None,
                known_from=Classification(request.known_from) if request.HasField("known_from") else None,
                settings=wire.settings_from_proto(request.memory_settings),
                limits=wire.limits_from_proto(request.limits),
            )
            return pb.UpdateAgentResponse(agent=wire.agent_to_proto(agent, scope.ceiling))

    def DeleteAgent(self, request: pb.DeleteAgentRequest, context: CallContext) -> pb.DeleteAgentResponse:
        with context.host_scope() as scope:
            repository.delete(scope, request.agent_id)
        return pb.DeleteAgentResponse()

    def EraseItems(self, request: pb.EraseItemsRequest, context: CallContext) -> pb.EraseItemsResponse:
        kind = ItemKind(request.kind)
        target = wire.target_from_proto(request, kind)
        agent_id = None if request.every_agent else request.agent_id
        with context.host_scope() as scope:
            begun = erasing.begin(scope, agent_id, kind)
            left_out = [] if agent_id else erasing.left_out(scope)
        try:
            tag = None if agent_id else target.tag
            for erasure, labels in erasing.places(context.eraser_scope, begun, kind, tag):
                erasing.erase(context.eraser_scope, erasure, labels, kind, target)
        finally:
            with context.closing_scope() as scope:
                erasing.end(scope, agent_id, begun)
        return wire.erased_to_proto(left_out)

    def UndeleteItem(self, request: pb.UndeleteItemRequest, context: CallContext) -> pb.UndeleteItemResponse:
        kind = ItemKind(request.kind)
        name = name_from_proto(request.name, kind)
        undeleting.undelete(
            context,
            request.agent_id,
            kind,
            name,
            Label.of(Classification(request.classification), Integrity(request.integrity)),
        )
        return pb.UndeleteItemResponse()
