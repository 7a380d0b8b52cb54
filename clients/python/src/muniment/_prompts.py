"""Calls for prompts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, cast

from muniment import _convert
from muniment._calls import Calls
from muniment.v1 import prompt_service_pb2 as pb
from muniment.v1.prompt_service_pb2_grpc import PromptServiceStub
from muniment.values import Classification, Prompt, PromptSection, PromptSectionKind

if TYPE_CHECKING:
    from muniment.v1 import prompt_pb2

KINDS = {int(kind): kind for kind in PromptSectionKind}


class Prompts:
    """What an agent needs in its context, as text."""

    _calls: Calls

    @cached_property
    def _prompts(self) -> PromptServiceStub:
        return PromptServiceStub(self._calls.channel)

    def render_prompt(
        self,
        *,
        sections: Iterable[PromptSectionKind] = (),
        omit_usage: bool = False,
        if_none_match: str | None = None,
        timeout: float | None = None,
    ) -> Prompt:
        """The visible blocks and notes, always in the order blocks, notes, user profile. No *sections* means all.

        With *omit_usage*, the text changes only if a block or note in it changes, not with the usage of a tier.
        *if_none_match* is the `etag` of an earlier prompt. If the text is still the same, the result is `not_modified`,
        and the text is not sent again. The text has at most 2 MiB; `left_out` is what it has no room for.
        """
        request = _convert.message(
            pb.RenderPromptRequest,
            sections=map(_kind_to_proto, sections),
            omit_usage=omit_usage,
            if_none_match=if_none_match or "",
        )
        return _prompt(self._calls(self._prompts.RenderPrompt, request, timeout))


def _kind_to_proto(kind: PromptSectionKind) -> prompt_pb2.PromptSectionKind.ValueType:
    """The number of a kind. Anything else is a ValueError before it is sent."""
    return cast("prompt_pb2.PromptSectionKind.ValueType", int(PromptSectionKind(kind)))


def _prompt(message: pb.RenderPromptResponse) -> Prompt:
    return Prompt(
        text=message.text,
        sections=tuple(map(_section, message.sections)),
        usage=tuple(map(_convert.usage, message.usage)),
        classification=Classification(message.classification),
        etag=message.etag,
        not_modified=message.not_modified,
        left_out=tuple(map(_section, message.left_out)),
        integrity=_convert.integrity(message.integrity),
    )


def _section(message: prompt_pb2.PromptSection) -> PromptSection:
    return PromptSection(
        kind=KINDS.get(message.kind),
        label=message.label or None,
        owner_agent_id=message.owner_agent_id or None,
        note_ids=tuple(message.note_ids),
        classification=Classification(message.classification),
        newer_below=_convert.newer_below(message),
        integrity=_convert.integrity(message.integrity),
    )
