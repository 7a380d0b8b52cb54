"""Prompts in the contract."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muniment.v1.classification_pb2 import Classification
from muniment.v1.prompt_pb2 import (
    PROMPT_SECTION_KIND_BLOCK,
    PROMPT_SECTION_KIND_MEMORY,
    PROMPT_SECTION_KIND_USER_PROFILE,
    PromptSection,
    PromptSectionKind,
)
from muniment_server.domain.budgets import Tier
from muniment_server.domain.classification import join
from muniment_server.items.wire import joined, label_to_proto, newer_to_proto
from muniment_server.prompts.repository import Contents

_TIERS = {Tier.MEMORY: PROMPT_SECTION_KIND_MEMORY, Tier.USER: PROMPT_SECTION_KIND_USER_PROFILE}


def wants_blocks(sections: Sequence[PromptSectionKind.ValueType]) -> bool:
    """Whether the prompt has blocks. No sections at all means every section."""
    return not sections or PROMPT_SECTION_KIND_BLOCK in sections


def tiers_wanted(sections: Sequence[PromptSectionKind.ValueType]) -> list[Tier]:
    """The tiers that the prompt has."""
    return [tier for tier, kind in _TIERS.items() if not sections or kind in sections]


def classification(contents: Contents) -> Classification.ValueType:
    """The highest level of all blocks and notes."""
    notes = (note.label for notes in contents.tiers.values() for note in notes)
    return joined([*(block.label for block in contents.blocks), *notes])


def sections_to_proto(contents: Contents) -> Iterator[PromptSection]:
    """The sections of the text, in its order."""
    for block in contents.blocks:
        yield PromptSection(
            kind=PROMPT_SECTION_KIND_BLOCK,
            label=block.name,
            owner_agent_id=block.owner_agent_id or block.agent_id,
            **label_to_proto(block.label),
            newer_below=newer_to_proto(block.newer_below),
        )
    for tier, notes in contents.tiers.items():
        if notes:
            newer = [note.newer_below for note in notes if note.newer_below]
            yield PromptSection(
                kind=_TIERS[tier],
                note_ids=[note.note_id for note in notes],
                **label_to_proto(join(note.label for note in notes)),
                newer_below=newer_to_proto(
                    max(newer, key=lambda one: (one.update_time, one.label.value), default=None)
                ),
            )
