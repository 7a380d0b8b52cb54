"""BlockService."""

from __future__ import annotations

from muniment.v1 import block_service_pb2 as pb
from muniment.v1 import block_service_pb2_grpc
from muniment_server.blocks import repository, sharing, wire
from muniment_server.domain import text
from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.items import paging
from muniment_server.items.checking import check_session
from muniment_server.items.wire import joined, revealed_to_proto
from muniment_server.monitor.call import CallContext


class BlockServicer(block_service_pb2_grpc.BlockServiceServicer):
    """Core blocks, as one session sees them; and sharing, as one host manages it."""

    def ListBlocks(self, request: pb.ListBlocksRequest, context: CallContext) -> pb.ListBlocksResponse:
        pager = context.pager()
        label, owner = pager.last(request.page_token) or ["", ""]
        with context.session_scope() as scope:
            blocks, more = repository.list_blocks(
                scope, after=(label, owner), limit=paging.page_size(request.page_size)
            )
        return pb.ListBlocksResponse(
            blocks=map(wire.block_to_proto, blocks),
            classification=joined(block.security_label for block in blocks),
            next_page_token=pager.token(*wire.position_of(blocks[-1])) if more else "",
        )

    def GetBlock(self, request: pb.GetBlockRequest, context: CallContext) -> pb.GetBlockResponse:
        label = text.label(request.label)
        with context.session_scope() as scope:
            block = repository.get(scope, label, owner_agent_id=request.owner_agent_id or None)
        return pb.GetBlockResponse(block=wire.block_to_proto(block))

    def UpdateBlock(self, request: pb.UpdateBlockRequest, context: CallContext) -> pb.UpdateBlockResponse:
        label = text.label(request.label, is_new=True)
        content = text.content(request.content)
        etag = paging.version_of(request.etag)
        if request.validate_only:
            check_session(context)
            return pb.UpdateBlockResponse()
        with context.session_scope() as scope:
            block = repository.update(scope, label, content, etag=etag)
        return pb.UpdateBlockResponse(block=wire.block_to_proto(block))

    def EditBlock(self, request: pb.EditBlockRequest, context: CallContext) -> pb.EditBlockResponse:
        label = text.label(request.label)
        edit = wire.edit_from_proto(request)
        etag = paging.version_of(request.etag)
        with context.session_scope() as scope:
            block = repository.edit(scope, label, edit, etag=etag)
        return pb.EditBlockResponse(block=wire.block_to_proto(block))

    def DeleteBlock(self, request: pb.DeleteBlockRequest, context: CallContext) -> pb.DeleteBlockResponse:
        label = text.label(request.label)
        etag = paging.version_of(request.etag)
        with context.session_scope() as scope:
            revealed = repository.delete(scope, label, etag=etag)
        return pb.DeleteBlockResponse(**revealed_to_proto(revealed))

    def CreateSharedBlock(
        self, request: pb.CreateSharedBlockRequest, context: CallContext
    ) -> pb.CreateSharedBlockResponse:
        label = text.label(request.label, is_new=True)
        content = text.content(request.content)
        with context.host_scope() as scope:
            sharing.create(scope, request.owner_agent_id, label, content)
        return pb.CreateSharedBlockResponse()

    def DeleteSharedBlock(
        self, request: pb.DeleteSharedBlockRequest, context: CallContext
    ) -> pb.DeleteSharedBlockResponse:
        label = text.label(request.label)
        with context.host_scope() as scope:
            sharing.delete(scope, request.owner_agent_id, label)
        return pb.DeleteSharedBlockResponse()

    def AttachBlock(self, request: pb.AttachBlockRequest, context: CallContext) -> pb.AttachBlockResponse:
        label = text.label(request.label)
        if request.agent_id == request.owner_agent_id:
            raise InvalidArgument(FieldViolation("agent_id", "must be another agent than the owner"))
        with context.host_scope() as scope:
            sharing.attach(scope, request.owner_agent_id, label, request.agent_id)
        return pb.AttachBlockResponse()

    def DetachBlock(self, request: pb.DetachBlockRequest, context: CallContext) -> pb.DetachBlockResponse:
        label = text.label(request.label)
        with context.host_scope() as scope:
            sharing.detach(scope, request.owner_agent_id, label, request.agent_id)
        return pb.DetachBlockResponse()

    def ListBlockConsumers(
        self, request: pb.ListBlockConsumersRequest, context: CallContext
    ) -> pb.ListBlockConsumersResponse:
        label = text.label(request.label)
        pager = context.pager(request.owner_agent_id, label)
        (after,) = pager.last(request.page_token) or [""]
        with context.host_scope() as scope:
            agent_ids, more = sharing.consumers(
                scope, request.owner_agent_id, label, after=after, limit=paging.page_size(request.page_size)
            )
        return pb.ListBlockConsumersResponse(
            agent_ids=agent_ids, next_page_token=pager.token(agent_ids[-1]) if more else ""
        )
