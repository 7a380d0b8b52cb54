"""Renders a prompt, and leaves out what it has no room for.

If the prompt would be too large, the largest blocks and notes are left out until the rest fits. So a few long texts
cannot displace a short one. What is left out depends only on what the session sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from muniment_server.domain.budgets import SEPARATOR
from muniment_server.domain.items import PAGE_BYTES, Version
from muniment_server.domain.notes import Note
from muniment_server.domain.prompt import PROMPT_BYTES, RenderedBlock, RenderedTier, escape, render
from muniment_server.items.rows import ListedBlock
from muniment_server.prompts.repository import Contents, PromptParts

_MAX_NAMED = 100
"""How many of the items that are left out are named: the first ones."""
_MAX_NAMED_BYTES = 32 * 1024
"""The size limit of their names in the text, with the headings."""
_SECTION_BYTES = 64
"""The size limit of a section of the response, without its names."""
_MAX_SECTIONS_BYTES = PAGE_BYTES - PROMPT_BYTES - 128 * 1024
"""The room for sections in a response. The usage and what is left out take less than 128 KiB."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The text, what is in it, and the first of what is left out."""

    text: str
    shown: Contents
    left_out: Contents


@dataclass(frozen=True, slots=True)
class _Size:
    """How many bytes a block or note takes of the text, and of the sections of the response."""

    version: Version
    text: int
    section: int


def rendered(parts: PromptParts, *, omit_usage: bool) -> Prompt:
    """The prompt of *parts*, of at most PROMPT_BYTES."""
    everything = parts.contents
    text = _text(parts, everything, [], omit_usage=omit_usage)
    if parts.complete and len(text.encode()) <= PROMPT_BYTES and _sections_fit(everything):
        return Prompt(text, everything, Contents([], {}))
    kept = frozenset(_fitting(everything))
    left_out = [version for version in everything.versions() if version not in kept]
    named = everything.only(frozenset(left_out[:_MAX_NAMED]))
    lines = [*_names(named), *(["and others"] if parts.more or len(left_out) > _MAX_NAMED else [])]
    shown = everything.only(kept)
    return Prompt(_text(parts, shown, lines, omit_usage=omit_usage), shown, named)


def _text(parts: PromptParts, shown: Contents, left_out: list[str], *, omit_usage: bool) -> str:
    return render(
        [RenderedBlock(block.name, block.content) for block in shown.blocks],
        [
            RenderedTier(parts.notes.usage(tier), [note.content for note in notes])
            for tier, notes in shown.tiers.items()
        ],
        omit_usage=omit_usage,
        left_out=left_out,
    )


def _names(contents: Contents) -> Iterator[str]:
    yield from (f"block {block.name}" for block in contents.blocks)
    yield from (f"note {note.note_id}" for notes in contents.tiers.values() for note in notes)


def _fitting(contents: Contents) -> Iterator[Version]:
    """The smallest blocks and notes, as many as fit. Of several of one size, the first ones."""
    text = sections = 0
    for size in sorted(_sizes(contents), key=lambda size: size.text):
        text += size.text
        sections += size.section
        if text > PROMPT_BYTES - _MAX_NAMED_BYTES or sections > _MAX_SECTIONS_BYTES:
            return
        yield size.version


def _sizes(contents: Contents) -> Iterator[_Size]:
    for block in contents.blocks:
        # Beyond PROMPT_BYTES, a block has been read without its content, and cannot fit.
        text = len(f"{render([RenderedBlock(block.name, block.content)], [])}\n\n".encode())
        yield _Size(block.version, text if block.bytes <= PROMPT_BYTES else PROMPT_BYTES, _block_section(block))
    for notes in contents.tiers.values():
        for note in notes:
            yield _Size(note.version, len(f"{escape(note.content)}{SEPARATOR}".encode()), _note_section(note))


def _sections_fit(contents: Contents) -> bool:
    notes = chain.from_iterable(contents.tiers.values())
    return sum(map(_block_section, contents.blocks)) + sum(map(_note_section, notes)) <= _MAX_SECTIONS_BYTES


def _block_section(block: ListedBlock) -> int:
    return _SECTION_BYTES + len(f"{block.name}{block.owner_agent_id or block.agent_id}".encode())


def _note_section(note: Note) -> int:
    return _SECTION_BYTES + len(note.note_id.encode())
