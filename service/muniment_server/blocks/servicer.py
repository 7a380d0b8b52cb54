"""BlockService."""

from __future__ import annotations

from muniment.v1 import block_service_pb2 as pb
from muniment.v1 import block_service_pb2_grpc
from muniment_server.domain import text
from muniment_server.domain.blocks import Append, BlockEdit, Insert, Replace
from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.domain.records import Block
from muniment_server.monitor import convert, paging
from muniment_server.monitor.call import CallContext
from muniment_server.monitor.store import Store


class BlockServicer(block_service_pb2_grpc.BlockServiceServicer):
    """Core blocks, as one session sees them; and how one host shares them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def ListBlocks(self, request: pb.ListBlocksRequest, context: CallContext) -> pb.ListBlocksResponse:
        pager = context.pager()
        label, owner = pager.last(request.page_token) or ["", ""]
        with self._store.as_session(context.session, context.call) as view:
            blocks, more = view.blocks.list(after=(label, owner), limit=paging.page_size(request.page_size))
        return pb.ListBlocksResponse(
            blocks=map(convert.block_to_proto, blocks),
            classification=convert.join(block.classification for block in blocks),
            next_page_token=pager.token(*_position(blocks[-1])) if more else "",
        )

    def GetBlock(self, request: pb.GetBlockRequest, context: CallContext) -> pb.GetBlockResponse:
        label = text.label(request.label)
        with self._store.as_session(context.session, context.call) as view:
            block = view.blocks.get(label, owner_agent_id=request.owner_agent_id or None)
        return pb.GetBlockResponse(block=convert.block_to_proto(block))

    def UpdateBlock(self, request: pb.UpdateBlockRequest, context: CallContext) -> pb.UpdateBlockResponse:
        label = text.label(request.label)
        content = text.content(request.content)
        etag = paging.version_of(request.etag)
        with self._store.as_session(context.session, context.call) as view:
            block = view.blocks.update(label, content, etag=etag)
        return pb.UpdateBlockResponse(block=convert.block_to_proto(block))

    def EditBlock(self, request: pb.EditBlockRequest, context: CallContext) -> pb.EditBlockResponse:
        label = text.label(request.label)
        edit = _edit(request)
        etag = paging.version_of(request.etag)
        with self._store.as_session(context.session, context.call) as view:
            block = view.blocks.edit(label, edit, etag=etag)
        return pb.EditBlockResponse(block=convert.block_to_proto(block))

    def DeleteBlock(self, request: pb.DeleteBlockRequest, context: CallContext) -> pb.DeleteBlockResponse:
        label = text.label(request.label)
        etag = paging.version_of(request.etag)
        with self._store.as_session(context.session, context.call) as view:
            revealed = view.blocks.delete(label, etag=etag)
        return pb.DeleteBlockResponse(revealed=convert.level_to_proto(revealed))

    def CreateSharedBlock(
        self, request: pb.CreateSharedBlockRequest, context: CallContext
    ) -> pb.CreateSharedBlockResponse:
        label = text.label(request.label)
        content = text.content(request.content)
        with self._store.as_host(context.host, context.call) as view:
            view.sharing.create(request.owner_agent_id, label, content)
        return pb.CreateSharedBlockResponse()

    def DeleteSharedBlock(
        self, request: pb.DeleteSharedBlockRequest, context: CallContext
    ) -> pb.DeleteSharedBlockResponse:
        label = text.label(request.label)
        with self._store.as_host(context.host, context.call) as view:
            view.sharing.delete(request.owner_agent_id, label)
        return pb.DeleteSharedBlockResponse()

    def AttachBlock(self, request: pb.AttachBlockRequest, context: CallContext) -> pb.AttachBlockResponse:
        label = text.label(request.label)
        if request.agent_id == request.owner_agent_id:
            raise InvalidArgument(FieldViolation("agent_id", "must be another agent than the owner"))
        with self._store.as_host(context.host, context.call) as view:
            view.sharing.attach(request.owner_agent_id, label, request.agent_id)
        return pb.AttachBlockResponse()

    def DetachBlock(self, request: pb.DetachBlockRequest, context: CallContext) -> pb.DetachBlockResponse:
        label = text.label(request.label)
        with self._store.as_host(context.host, context.call) as view:
            view.sharing.detach(request.owner_agent_id, label, request.agent_id)
        return pb.DetachBlockResponse()

    def ListBlockConsumers(
        self, request: pb.ListBlockConsumersRequest, context: CallContext
    ) -> pb.ListBlockConsumersResponse:
        label = text.label(request.label)
        pager = context.pager(request.owner_agent_id, label)
        (after,) = pager.last(request.page_token) or [""]
        with self._store.as_host(context.host, context.call) as view:
            agent_ids, more = view.sharing.consumers(
                request.owner_agent_id, label, after=after, limit=paging.page_size(request.page_size)
            )
        return pb.ListBlockConsumersResponse(
            agent_ids=agent_ids, next_page_token=pager.token(agent_ids[-1]) if more else ""
        )


def _edit(request: pb.EditBlockRequest) -> BlockEdit:
    """The edit. The contract's rules have made sure that it is one of the three."""
    match request.WhichOneof("edit"):
        case "append":
            return Append(text.content(request.append.content, field="append.content"))
        case "insert":
            return Insert(request.insert.line, text.content(request.insert.content, field="insert.content"))
    return Replace(request.replace.old, text.content(request.replace.new, field="replace.new"))


def _position(block: Block) -> tuple[str, str]:
    """Where a block stands in a list: the own one of a label comes first."""
    return block.label, block.owner_agent_id if block.shared else ""
