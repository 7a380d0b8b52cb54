"""Rendered prompts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from muniment.values.levels import Classification
from muniment.values.notes import Usage


class PromptSectionKind(IntEnum):
    """A part of a rendered prompt."""

    BLOCK = 1
    MEMORY = 2
    USER_PROFILE = 3


@dataclass(frozen=True, slots=True)
class PromptSection:
    """What one part of a prompt was made of: a block, or the notes of a tier. What does not apply is None.

    *classification* is the highest level in the part. *kind* is None for a kind that this client does not
    know, too.
    """

    kind: PromptSectionKind | None
    label: str | None = field(repr=False)
    owner_agent_id: str | None
    note_ids: tuple[str, ...]
    classification: Classification


@dataclass(frozen=True, slots=True)
class Prompt:
    """What an agent needs in its context, as text, and what that is made of, in its order.

    *classification* is the highest level in the text, PUBLIC when there is none. *etag* names the text.
    *not_modified*: the text is the one that was asked about, and not sent again.
    """

    text: str = field(repr=False)
    sections: tuple[PromptSection, ...]
    usage: tuple[Usage, ...]
    classification: Classification
    etag: str = field(repr=False)
    not_modified: bool
