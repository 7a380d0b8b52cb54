"""The rendered prompt, as it must be. Of ordinary text only: what is made of hostile text has its own tests."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

from google.protobuf.message import Message

from muniment.v1 import note_pb2, prompt_pb2, version_pb2
from muniment.v1 import prompt_service_pb2 as pb
from tests.proof.noninterference.model.blocks import Blocks
from tests.proof.noninterference.model.ground import newer_below
from tests.proof.noninterference.model.notes import SEPARATOR, Notes, rendered, usage_of
from tests.proof.noninterference.values import Session, join, joined, label_from, labeled

_RULER = "═" * 48
_TITLES = {1: "MEMORY (agent notes)", 2: "USER PROFILE (who the user is)"}
"""The one hostile character that programs write."""
Part = tuple[prompt_pb2.PromptSection, str]


class Prompts(Blocks, Notes):
    """PromptService."""

    def _RenderPrompt(self, session: Session, taint: int, request: pb.RenderPromptRequest) -> Message:
        wanted = set(map(int, request.sections)) or {1, 2, 3}
        tiers = {tier: self.notes_of(session.agent.notes, taint, tier) for tier in (1, 2)}
        usage = [usage_of(session.agent, tier, notes) for tier, notes in tiers.items()]
        blocks = list(self._block_parts(session, taint)) if 1 in wanted else []
        notes = [
            part
            for tier in (1, 2)
            if tier + 1 in wanted
            for part in self._tier_parts(session, taint, usage[tier - 1], with_usage=not request.omit_usage)
        ]
        text = "\n\n".join(text for _, text in (*blocks, *notes))
        sections = [section for section, _ in (*blocks, *notes)]
        self._rendered = text
        same = bool(request.if_none_match) and self._learned.texts.get(request.if_none_match) == text
        return pb.RenderPromptResponse(
            text="" if same else text,
            sections=[] if same else sections,
            usage=usage,
            classification=join(sections),
            not_modified=same,
        )

    def _block_parts(self, session: Session, taint: int) -> Iterator[Part]:
        for block in self.blocks_of(session, taint):
            numbers: Any = {"kind": 1, **labeled(block.level)}
            section = prompt_pb2.PromptSection(
                label=block.label, owner_agent_id=block.owner, newer_below=block.newer_below, **numbers
            )
            yield section, "\n".join(filter(None, (f"### {block.label}", rendered(block.version.content))))

    def _tier_parts(self, session: Session, taint: int, usage: note_pb2.Usage, *, with_usage: bool) -> Iterator[Part]:
        notes = self.notes_of(session.agent.notes, taint, usage.tier)
        settings = session.agent.shown.memory_settings
        if not notes or not (settings.memory_enabled if usage.tier == 1 else settings.user_profile_enabled):
            return
        numbers: Any = {"kind": usage.tier + 1, **labeled(reduce(joined, (label for _, label, _ in notes)))}
        usage_text = f" [{usage.percent}% — {usage.used_chars:,}/{usage.limit_chars:,} chars]" if with_usage else ""
        entries = SEPARATOR.join(version.content for _, _, version in notes)
        newer = [newer_below(self.seen(session.agent.notes, name, taint)) for name, _, _ in notes]
        newest = max(filter(None, newer), key=_newness, default=None)
        section = prompt_pb2.PromptSection(note_ids=[name for name, _, _ in notes], newer_below=newest, **numbers)
        yield section, f"{_RULER}\n{_TITLES[usage.tier]}{usage_text}\n{_RULER}\n{entries}"


def _newness(newer: version_pb2.NewerBelow) -> tuple[int, int]:
    return newer.update_time.ToNanoseconds(), label_from(newer.classification, newer.integrity)
