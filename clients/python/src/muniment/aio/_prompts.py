# Generated from ../_prompts.py: make aio.
"""Calls for prompts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from muniment import _convert
from muniment.aio._calls import Calls
from muniment.v1 import prompt_service_pb2 as pb
from muniment.v1.prompt_service_pb2_grpc import PromptServiceStub
from muniment.values import Prompt, PromptSectionKind

if TYPE_CHECKING:
    pass
from typing import TYPE_CHECKING

from muniment._prompts import _kind_to_proto, _prompt

if TYPE_CHECKING:
    from muniment.v1.prompt_service_pb2_grpc import PromptServiceAsyncStub


class Prompts:
    """What an agent needs in its context, as text."""

    _calls: Calls

    @cached_property
    def _prompts(self) -> PromptServiceAsyncStub:
        return PromptServiceStub(self._calls.channel)

    async def render_prompt(
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
        return _prompt(await self._calls(self._prompts.RenderPrompt, request, timeout))
