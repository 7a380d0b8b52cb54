"""Rendered prompts."""

from __future__ import annotations

from dataclasses import dataclass, field

from muniment.values.levels import Classification, Integrity, NamedEnum
from muniment.values.notes import Usage
from muniment.values.versions import NewerBelow


class PromptSectionKind(NamedEnum):
    """A part of a rendered prompt."""

    BLOCK = 1
    MEMORY = 2
    USER_PROFILE = 3


@dataclass(frozen=True, slots=True)
class PromptSection:
    """One part of a prompt: a block, or the notes of a tier. Fields that do not apply are None.

    *classification* is the highest level in the part. *kind* is also None for a kind that this client
    does not know.
    """

    kind: PromptSectionKind | None
    label: str | None = field(repr=False)
    owner_agent_id: str | None
    note_ids: tuple[str, ...]
    classification: Classification
    newer_below: NewerBelow | None = None
    integrity: Integrity = Integrity.UNTRUSTED


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt as text, and its parts in order.

    *classification* is the highest level in the text, PUBLIC when there is none. *etag* identifies the text.
    *not_modified*: the text is that of the given etag, and is not sent again. *left_out*: the first 100 blocks and
    notes that the text has no room for. The text names them.
    """

    text: str = field(repr=False)
    sections: tuple[PromptSection, ...]
    usage: tuple[Usage, ...]
    classification: Classification
    etag: str = field(repr=False)
    not_modified: bool
    left_out: tuple[PromptSection, ...] = ()
    integrity: Integrity = Integrity.UNTRUSTED
    """That of the session: what is shown depends on all that it sees."""
