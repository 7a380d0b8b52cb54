"""PromptService."""

from __future__ import annotations

from muniment.v1 import prompt_service_pb2 as pb
from muniment.v1 import prompt_service_pb2_grpc
from muniment_server.domain.budgets import Tier
from muniment_server.items.paging import etag_of_text
from muniment_server.items.wire import usage_to_proto
from muniment_server.monitor.call import CallContext
from muniment_server.prompts import repository, wire
from muniment_server.prompts.rendering import rendered
from muniment_server.prompts.repository import PromptParts


class PromptServicer(prompt_service_pb2_grpc.PromptServiceServicer):
    """What an agent needs in its context, as one session sees it."""

    def RenderPrompt(self, request: pb.RenderPromptRequest, context: CallContext) -> pb.RenderPromptResponse:
        blocks, tiers = wire.wants_blocks(request.sections), wire.tiers_wanted(request.sections)
        with context.session_scope() as scope:
            parts = repository.read(scope, blocks=blocks, tiers=tiers)
        return response_of(parts, omit_usage=request.omit_usage, if_none_match=request.if_none_match)


def response_of(parts: PromptParts, *, omit_usage: bool, if_none_match: str = "") -> pb.RenderPromptResponse:
    """The response with the prompt of *parts*. It has no text if *if_none_match* is the etag of that text."""
    prompt = rendered(parts, omit_usage=omit_usage)
    etag = etag_of_text(prompt.text)
    response = pb.RenderPromptResponse(
        usage=[usage_to_proto(parts.notes.usage(tier)) for tier in Tier],
        classification=wire.classification(parts.contents),
        etag=etag,
        not_modified=etag == if_none_match,
    )
    if not response.not_modified:
        response.text = prompt.text
        response.sections.extend(wire.sections_to_proto(prompt.shown))
        response.left_out.extend(wire.sections_to_proto(prompt.left_out))
    return response
