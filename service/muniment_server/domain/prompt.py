"""An agent's prompt: what a session sees of it, as text that reads back in one way only.

The structure is lines: `### label` above a block, a ruler above and below the heading of a tier, `§` between two notes.
An item's text is rendered as it is, but for what could pass for structure or hide from a reader:

1. What cannot be seen, and what ends a line but LF and CRLF, is shown as `\\u{HEX}`. Backslashes directly before
   such a character or before a literal `u{` are doubled: before `u{`, an odd number of them shows a character.
2. A line that looks like structure gets a backslash before its first visible character; one that has some, one more.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muniment_server.domain.budgets import Tier, Usage
from muniment_server.domain.notes import SEPARATOR

PROMPT_BYTES = 2 * 1024 * 1024
"""The most that a prompt takes, in UTF-8. Rendering shortens nothing."""
RULER = "═" * 48
HEADINGS = {Tier.MEMORY: "MEMORY (agent notes)", Tier.USER: "USER PROFILE (who the user is)"}

_BLANK_LINE = "\n\n"

# Unicode's Default_Ignorable_Code_Points and the braille blank, in three sets.
#
# What languages need stays, and a line is judged as if it were not there: soft hyphen; grapheme joiner (Hebrew,
# Slovak); LRM, RLM, ALM; Khmer vowels; zero width space (Khmer, Thai, Burmese), joiner and non-joiner; the selectors
# of Mongolian and emoji; the controls of Duployan.
_NOTHING = r"\u00AD\u034F\u061C\u17B4\u17B5\u180B-\u180D\u180F\u200B-\u200F\uFE00-\uFE0F\U0001BCA0-\U0001BCA3"
# So do blanks: Hangul fillers (old Korean), the Mongolian vowel separator, the braille blank. Some fonts give them a
# width and some none: a line is judged both ways.
_BLANK = r"\u115F\u1160\u180E\u2800\u3164\uFFA0"
# The rest is shown: controls, line ends, embeddings, overrides, isolates, deprecated and invisible operators, byte
# order mark, annotations (they hide the annotated text), musical controls, tags (they spell ASCII), noncharacters.
_HIDDEN = (
    r"\x00-\x08\x0B\x0C\x0E-\x1F\x7F-\x9F\u2028-\u202E\u2060-\u206F\uFEFF\uFFF0-\uFFFB\uFDD0-\uFDEF\uFFFE\uFFFF"
    r"\U0001D173-\U0001D17A\U000E0000-\U000E00FF\U000E01F0-\U000E0FFF"
) + "".join(rf"\U{plane:04X}FFFE\U{plane:04X}FFFF" for plane in range(1, 17))
# Variation selectors of names in Japanese: they stay after an ideograph, by the ranges of the unified and the
# compatibility ideographs. Anywhere else a row of them spells bytes.
_IDEOGRAPHIC_SELECTOR = r"\U000E0100-\U000E01EF"
_IDEOGRAPH = r"\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\U00020000-\U0002FFFD\U00030000-\U0003FFFD"
# White space that does not end a line; CR only before LF, by rule 1.
_SPACE = r"\t\r \u00A0\u1680\u2000-\u200A\u202F\u205F\u3000"

_MAY_NEED_SHOWING = re.compile(rf"[\\\r{_HIDDEN}{_IDEOGRAPHIC_SELECTOR}]")
_TO_SHOW = re.compile(
    rf"(?<!\\)(\\*+)(?:u\{{|((?:[{_HIDDEN}]|\r(?!\n)|(?<![{_IDEOGRAPH}])[{_IDEOGRAPHIC_SELECTOR}])++))"
)

_FIRST = "\\#═=─━§MU"
"""What structure begins with, backslashes included."""
_MAY_BE_STRUCTURE = re.compile(
    rf"\n([{_SPACE}{_NOTHING}{_BLANK}]*+)((?:[\\#=\x80-\U0010FFFF]|M[E\x80-\U0010FFFF]|U[S\x80-\U0010FFFF]).*)"
)
_STRUCTURE = re.compile(r"\\*+(?:#{1,6}+(?:\s|\Z)|[═=─━]{3,}+\s*+\Z|§\s*+\Z|(?:MEMORY|USER PROFILE) \()")
_NOTHINGS = re.compile(rf"[{_NOTHING}]+")
_BLANKS = re.compile(rf"[{_BLANK}]")


@dataclass(frozen=True, slots=True)
class RenderedBlock:
    """A block as a session sees it. Whose it is does not show in the text."""

    label: str
    content: str
    owner_agent_id: str | None = None
    """None: the session's own agent."""


@dataclass(frozen=True, slots=True)
class RenderedTier:
    """The notes of one tier as a session sees them, oldest first."""

    usage: Usage
    notes: Sequence[str]


def render(blocks: Iterable[RenderedBlock], tiers: Iterable[RenderedTier], *, omit_usage: bool = False) -> str:
    """The prompt: *blocks* in the order given, then MEMORY, then USER PROFILE. A tier without notes is left out."""
    sections = [_block(block) for block in blocks]
    for tier in sorted(tiers, key=lambda tier: tier.usage.tier):
        if tier.notes:
            sections.append(_tier(tier, omit_usage=omit_usage))
    return _BLANK_LINE.join(sections)


def escape(text: str) -> str:
    """One item's *text* as it is rendered: so that none of its lines is structure, and no two texts look the same."""
    return _MAY_BE_STRUCTURE.sub(_guarded, "\n" + _shown(text))[1:]


def _block(block: RenderedBlock) -> str:
    # A label has no line ends by its own rule. If one ever has, it must not end the heading.
    heading = "### " + "\\u{A}".join(_shown(part) for part in block.label.split("\n"))
    return f"{heading}\n{escape(block.content)}" if block.content else heading


def _tier(tier: RenderedTier, *, omit_usage: bool) -> str:
    heading = HEADINGS[tier.usage.tier]
    if not omit_usage:
        heading = f"{heading} {_budget(tier.usage)}"
    return "\n".join([RULER, heading, RULER, SEPARATOR.join(map(escape, tier.notes))])


def _budget(usage: Usage) -> str:
    return f"[{usage.percent}% — {usage.used_chars:,}/{usage.limit_chars:,} chars]"


def _shown(text: str) -> str:
    """Rule 1."""
    return _TO_SHOW.sub(_as_hex, text) if _MAY_NEED_SHOWING.search(text) else text


def _as_hex(match: re.Match[str]) -> str:
    backslashes, hidden = match.groups()
    return backslashes * 2 + ("".join(f"\\u{{{ord(character):X}}}" for character in hidden) if hidden else "u{")


def _guarded(match: re.Match[str]) -> str:
    """Rule 2."""
    margin, rest = match.groups()
    return f"\n{margin}\\{rest}" if _is_structure(rest) else match[0]


def _is_structure(rest: str) -> bool:
    """Whether a line, from its first visible character on, looks like structure."""
    if _compatible(rest[0])[0] not in _FIRST:
        return False
    return any(_STRUCTURE.match(_compatible(_BLANKS.sub(width, rest))) for width in ("", " "))


def _compatible(text: str) -> str:
    """*text* without what takes no room, in the plainest form of each character.

    One by one: marks are never structure, and putting 32,000 of them in order takes unicodedata a second and more.
    """
    if text.isascii():
        return text
    return "".join(unicodedata.normalize("NFKC", character) for character in _NOTHINGS.sub("", text))
