"""PromptService."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.v1 import prompt_service_pb2 as pb
from muniment.v1 import prompt_service_pb2_grpc
from muniment.v1.prompt_pb2 import (
    PROMPT_SECTION_KIND_BLOCK,
    PROMPT_SECTION_KIND_MEMORY,
    PROMPT_SECTION_KIND_USER_PROFILE,
    PromptSection,
)
from muniment_server.domain.errors import PromptTooLarge
from muniment_server.domain.prompt import PROMPT_BYTES, RenderedBlock, RenderedTier, render
from muniment_server.domain.records import Block, Note, Tier
from muniment_server.monitor import convert, paging
from muniment_server.monitor.call import CallContext
from muniment_server.monitor.store import Store

_TIERS = {Tier.MEMORY: PROMPT_SECTION_KIND_MEMORY, Tier.USER: PROMPT_SECTION_KIND_USER_PROFILE}


class PromptServicer(prompt_service_pb2_grpc.PromptServiceServicer):
    """What an agent needs in its context, as one session sees it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def RenderPrompt(self, request: pb.RenderPromptRequest, context: CallContext) -> pb.RenderPromptResponse:
        wanted = set(request.sections)
        asked = [tier for tier, kind in _TIERS.items() if not wanted or kind in wanted]
        with self._store.as_session(context.session, context.call) as view:
            blocks, shelf = view.prompts.read(blocks=not wanted or PROMPT_SECTION_KIND_BLOCK in wanted, tiers=asked)
        tiers = {tier: shelf.notes(tier) for tier in asked if shelf.enabled(tier)}
        text = render(
            [RenderedBlock(block.label, block.content) for block in blocks],
            [RenderedTier(shelf.usage(tier), [note.content for note in notes]) for tier, notes in tiers.items()],
            omit_usage=request.omit_usage,
        )
        etag = paging.etag_of_text(text)
        response = pb.RenderPromptResponse(
            usage=[convert.usage_to_proto(shelf.usage(tier)) for tier in Tier],
            classification=convert.join(
                [
                    *(block.classification for block in blocks),
                    *(note.classification for notes in tiers.values() for note in notes),
                ]
            ),
            etag=etag,
            not_modified=etag == request.if_none_match,
        )
        if not response.not_modified:
            response.text = text
            response.sections.extend(_sections(blocks, tiers))
        if len(text.encode()) > PROMPT_BYTES or response.ByteSize() > paging.PAGE_BYTES:
            raise PromptTooLarge
        return response


def _sections(blocks: Sequence[Block], tiers: dict[Tier, list[Note]]) -> list[PromptSection]:
    """What the text is made of, in its order."""
    of_blocks = [
        PromptSection(
            kind=PROMPT_SECTION_KIND_BLOCK,
            label=block.label,
            owner_agent_id=block.owner_agent_id,
            classification=convert.level_to_proto(block.classification),
        )
        for block in blocks
    ]
    of_tiers = [
        PromptSection(
            kind=_TIERS[tier],
            note_ids=[note.note_id for note in notes],
            classification=convert.join(note.classification for note in notes),
        )
        for tier, notes in tiers.items()
        if notes
    ]
    return of_blocks + of_tiers
