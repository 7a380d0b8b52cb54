"""Calls for core blocks: of sessions, and of hosts, which share them."""

from __future__ import annotations

from functools import cached_property

from muniment import _convert
from muniment._calls import Calls
from muniment._listing import Listing
from muniment.v1 import block_pb2
from muniment.v1 import block_service_pb2 as pb
from muniment.v1.block_service_pb2_grpc import BlockServiceStub
from muniment.values import Block, BlockPage, Classification


class Blocks:
    """Core blocks, as one session sees them: its agent's own, and those of others that the host attached.

    A session writes only blocks of its own agent.
    """

    _calls: Calls

    @cached_property
    def _blocks(self) -> BlockServiceStub:
        return BlockServiceStub(self._calls.channel)

    def list_blocks(self, *, page_size: int = 0, timeout: float | None = None) -> Listing[Block]:
        """The visible blocks by label; for the same label, the agent's own block first. Pages are fetched as needed.

        *timeout* is for each page. TaintChanged: the taint was raised between two pages; see `Listing.all`.
        """
        return Listing(
            lambda token: self.list_blocks_page(page_size=page_size, page_token=token, timeout=timeout),
            lambda page: page.blocks,
        )

    def list_blocks_page(self, *, page_size: int = 0, page_token: str = "", timeout: float | None = None) -> BlockPage:
        """One page, and the highest level in it. A *page_size* of 0 means 50; the most is 250."""
        request = _convert.message(pb.ListBlocksRequest, page_size=page_size, page_token=page_token)
        return _page(self._calls(self._blocks.ListBlocks, request, timeout))

    def get_block(self, label: str, *, owner_agent_id: str | None = None, timeout: float | None = None) -> Block:
        """One block. Without *owner_agent_id*: the agent's own, otherwise the first shared one by owner.

        BlockNotFound: none is visible.
        """
        request = _convert.message(pb.GetBlockRequest, label=label, owner_agent_id=owner_agent_id or "")
        return _block(self._calls(self._blocks.GetBlock, request, timeout).block)

    def update_block(self, label: str, content: str, *, etag: str | None = None, timeout: float | None = None) -> Block:
        """Create or replace the session's own-level version of a block of its agent.

        *label* is 1 to 64 letters, marks, digits, `_`, `.` and `-`; *content* is up to 64 KiB and may be empty.
        With *etag*, only that version is replaced; otherwise EtagStale.
        """
        request = _convert.message(pb.UpdateBlockRequest, label=label, content=content, etag=etag or "")
        return _block(self._calls(self._blocks.UpdateBlock, request, timeout).block)

    def check_block(self, label: str, content: str, *, timeout: float | None = None) -> None:
        """Ask the server to check the fields of `update_block`, and write nothing. InvalidArgument: it refuses them."""
        request = _convert.message(pb.UpdateBlockRequest, label=label, content=content, validate_only=True)
        self._calls(self._blocks.UpdateBlock, request, timeout)

    def append_to_block(
        self, label: str, content: str, *, etag: str | None = None, timeout: float | None = None
    ) -> Block:
        """Add lines at the end, after a line break. BlockTooLarge: over 64 KiB.

        Like every edit, this starts from the version that the session sees, and writes the own-level version.
        """
        request = _convert.message(
            pb.EditBlockRequest, label=label, append=_convert.message(pb.AppendEdit, content=content), etag=etag or ""
        )
        return _block(self._calls(self._blocks.EditBlock, request, timeout).block)

    def insert_into_block(
        self, label: str, line: int, content: str, *, etag: str | None = None, timeout: float | None = None
    ) -> Block:
        """Insert lines after the first *line* lines. LineOutOfRange: the block has fewer."""
        request = _convert.message(
            pb.EditBlockRequest,
            label=label,
            insert=_convert.message(pb.InsertEdit, line=line, content=content),
            etag=etag or "",
        )
        return _block(self._calls(self._blocks.EditBlock, request, timeout).block)

    def replace_in_block(
        self, label: str, old: str, new: str, *, etag: str | None = None, timeout: float | None = None
    ) -> Block:
        """Replace the only occurrence of *old*. TextNotFound: there is none. TextNotUnique: there are several."""
        request = _convert.message(
            pb.EditBlockRequest,
            label=label,
            replace=_convert.message(pb.ReplaceEdit, old=old, new=new),
            etag=etag or "",
        )
        return _block(self._calls(self._blocks.EditBlock, request, timeout).block)

    def delete_block(
        self, label: str, *, etag: str | None = None, timeout: float | None = None
    ) -> Classification | None:
        """Delete the session's own-level version; return the level of the lower version that is now visible, if any.

        WriteLevelMismatch: only a lower version is visible. BlockNotFound: none is.
        """
        request = _convert.message(pb.DeleteBlockRequest, label=label, etag=etag or "")
        return _convert.revealed(self._calls(self._blocks.DeleteBlock, request, timeout))


class SharedBlocks:
    """Sharing of blocks, by hosts. Declarations and attachments have no level.

    A consumer sees the highest version of a shared block at or below its own taint, if there is one.
    """

    _calls: Calls

    @cached_property
    def _blocks(self) -> BlockServiceStub:
        return BlockServiceStub(self._calls.channel)

    def create_shared_block(
        self, owner_agent_id: str, label: str, content: str = "", *, timeout: float | None = None
    ) -> None:
        """Declare a block as shared. If it has no PUBLIC version, create one with *content*.

        BlockExists: it is already declared, or *content* is given although there is a PUBLIC version.
        """
        request = _convert.message(
            pb.CreateSharedBlockRequest, owner_agent_id=owner_agent_id, label=label, content=content
        )
        self._calls(self._blocks.CreateSharedBlock, request, timeout)

    def delete_shared_block(self, owner_agent_id: str, label: str, *, timeout: float | None = None) -> None:
        """Stop sharing a block, and detach it from all agents. The owner keeps it."""
        request = _convert.message(pb.DeleteSharedBlockRequest, owner_agent_id=owner_agent_id, label=label)
        self._calls(self._blocks.DeleteSharedBlock, request, timeout)

    def attach_block(self, owner_agent_id: str, label: str, agent_id: str, *, timeout: float | None = None) -> None:
        """Let another agent of the tenant read a shared block. Does nothing if it is already attached.

        SharedBlockNotFound: it is not declared.
        """
        request = _convert.message(pb.AttachBlockRequest, owner_agent_id=owner_agent_id, label=label, agent_id=agent_id)
        self._calls(self._blocks.AttachBlock, request, timeout)

    def detach_block(self, owner_agent_id: str, label: str, agent_id: str, *, timeout: float | None = None) -> None:
        """Stop letting an agent read a shared block. BlockNotAttached: it is not attached."""
        request = _convert.message(pb.DetachBlockRequest, owner_agent_id=owner_agent_id, label=label, agent_id=agent_id)
        self._calls(self._blocks.DetachBlock, request, timeout)

    def list_block_consumers(
        self, owner_agent_id: str, label: str, *, page_size: int = 0, timeout: float | None = None
    ) -> Listing[str]:
        """The ids of the agents that a shared block is attached to; pages are fetched as needed."""

        def fetch(token: str) -> pb.ListBlockConsumersResponse:
            request = _convert.message(
                pb.ListBlockConsumersRequest,
                owner_agent_id=owner_agent_id,
                label=label,
                page_size=page_size,
                page_token=token,
            )
            return self._calls(self._blocks.ListBlockConsumers, request, timeout)

        return Listing(fetch, lambda page: page.agent_ids)


def _block(message: block_pb2.Block) -> Block:
    return Block(
        owner_agent_id=message.owner_agent_id,
        label=message.label,
        content=message.content,
        shared=message.shared,
        classification=Classification(message.classification),
        etag=message.etag,
        create_time=_convert.utc(message.create_time),
        update_time=_convert.utc(message.update_time),
        newer_below=_convert.newer_below(message),
        integrity=_convert.integrity(message.integrity),
    )


def _page(message: pb.ListBlocksResponse) -> BlockPage:
    return BlockPage(
        blocks=tuple(map(_block, message.blocks)),
        next_page_token=message.next_page_token,
        classification=Classification(message.classification),
        integrity=_convert.integrity(message.integrity),
    )
