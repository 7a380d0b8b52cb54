"""Core blocks in the contract."""

from __future__ import annotations

from muniment.v1 import block_pb2, block_service_pb2
from muniment_server.blocks.repository import Block
from muniment_server.domain import text
from muniment_server.domain.blocks import Append, BlockEdit, Insert, Replace
from muniment_server.items.paging import etag
from muniment_server.items.wire import label_to_proto, newer_to_proto, time_to_proto


def block_to_proto(block: Block) -> block_pb2.Block:
    """A core block."""
    return block_pb2.Block(
        owner_agent_id=block.owner_agent_id,
        label=block.label,
        content=block.content,
        shared=block.shared,
        **label_to_proto(block.security_label),
        etag=etag(block.version),
        create_time=time_to_proto(block.create_time),
        update_time=time_to_proto(block.update_time),
        newer_below=newer_to_proto(block.newer_below),
    )


def edit_from_proto(request: block_service_pb2.EditBlockRequest) -> BlockEdit:
    """The edit. Validation has made sure that it is one of the three."""
    match request.WhichOneof("edit"):
        case "append":
            return Append(text.content(request.append.content, field="append.content"))
        case "insert":
            return Insert(request.insert.line, text.content(request.insert.content, field="insert.content"))
    return Replace(request.replace.old, text.content(request.replace.new, field="replace.new"))


def position_of(block: Block) -> tuple[str, str]:
    """What a page token names: the block after which the list continues. The own block of a label comes first."""
    return block.label, block.owner_agent_id if block.shared else ""
