"""PromptService."""

from __future__ import annotations

from muniment.v1 import prompt_service_pb2 as pb
from muniment.v1 import prompt_service_pb2_grpc
from muniment_server.domain.budgets import Tier
from muniment_server.domain.errors import PromptTooLarge
from muniment_server.domain.items import PAGE_BYTES
from muniment_server.domain.prompt import PROMPT_BYTES, RenderedBlock, RenderedTier, render
from muniment_server.items.paging import etag_of_text
from muniment_server.items.wire import joined, usage_to_proto
from muniment_server.monitor.call import CallContext
from muniment_server.prompts import repository, wire


class PromptServicer(prompt_service_pb2_grpc.PromptServiceServicer):
    """What an agent needs in its context, as one session sees it."""

    def RenderPrompt(self, request: pb.RenderPromptRequest, context: CallContext) -> pb.RenderPromptResponse:
        wanted = wire.tiers_wanted(request.sections)
        with context.session_scope() as scope:
            parts = repository.read(scope, blocks=wire.wants_blocks(request.sections), tiers=wanted)
        tiers = {tier: parts.notes.notes(tier) for tier in wanted if parts.notes.enabled(tier)}
        text = render(
            [RenderedBlock(block.name, block.content) for block in parts.blocks],
            [RenderedTier(parts.notes.usage(tier), [note.content for note in notes]) for tier, notes in tiers.items()],
            omit_usage=request.omit_usage,
        )
        etag = etag_of_text(text)
        levels = [block.level for block in parts.blocks]
        response = pb.RenderPromptResponse(
            usage=[usage_to_proto(parts.notes.usage(tier)) for tier in Tier],
            classification=joined([*levels, *(note.classification for notes in tiers.values() for note in notes)]),
            etag=etag,
            not_modified=etag == request.if_none_match,
        )
        if not response.not_modified:
            response.text = text
            response.sections.extend(wire.sections_to_proto(parts.blocks, tiers))
        if len(text.encode()) > PROMPT_BYTES or response.ByteSize() > PAGE_BYTES:
            raise PromptTooLarge
        return response
