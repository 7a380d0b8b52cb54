"""Renders the prompt that a session sees, as text that can be parsed in only one way.

Structure consists of lines: `### label` above a block, rulers around the heading of a tier, `§` between two notes. The
text of an item is rendered unchanged, except for what looks like structure or is invisible to a reader:

1. Invisible characters, and line ends other than LF and CRLF, are written as `\\u{HEX}`. Backslashes directly before
   such a character or before a literal `u{` are doubled. So an odd number of backslashes before `u{` means an escape.
2. A line that looks like structure gets a backslash before its first visible character, in addition to any others.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muniment_server.domain.budgets import SEPARATOR, Tier, Usage

PROMPT_BYTES = 2 * 1024 * 1024
"""The size limit of a prompt, in UTF-8. What has no room is left out as a whole: no text is cut."""
RULER = "═" * 48
HEADINGS = {Tier.MEMORY: "MEMORY (agent notes)", Tier.USER: "USER PROFILE (who the user is)"}
LEFT_OUT = "LEFT OUT (no room here; ListBlocks and ListNotes return them)"

_BLANK_LINE = "\n\n"

# Unicode's Default_Ignorable_Code_Points and the braille blank, in three sets.
#
# Characters that languages need are kept, and ignored when a line is compared with structure: soft hyphen;
# grapheme joiner (Hebrew, Slovak); LRM, RLM, ALM; Khmer vowels; zero width space (Khmer, Thai, Burmese), joiner and
# non-joiner; the selectors of Mongolian and emoji; the controls of Duployan.
_NOTHING = r"\u00AD\u034F\u061C\u17B4\u17B5\u180B-\u180D\u180F\u200B-\u200F\uFE00-\uFE0F\U0001BCA0-\U0001BCA3"
# Blanks are kept, too: Hangul fillers (old Korean), the Mongolian vowel separator, the braille blank. Some fonts give
# them a width and some do not: a line is compared both ways.
_BLANK = r"\u115F\u1160\u180E\u2800\u3164\uFFA0"
# All others are escaped: controls, line ends, embeddings, overrides, isolates, deprecated and invisible operators, byte
# order mark, annotations (they hide the annotated text), musical controls, tags (they spell ASCII), noncharacters.
_HIDDEN = (
    r"\x00-\x08\x0B\x0C\x0E-\x1F\x7F-\x9F\u2028-\u202E\u2060-\u206F\uFEFF\uFFF0-\uFFFB\uFDD0-\uFDEF\uFFFE\uFFFF"
    r"\U0001D173-\U0001D17A\U000E0000-\U000E00FF\U000E01F0-\U000E0FFF"
) + "".join(rf"\U{plane:04X}FFFE\U{plane:04X}FFFF" for plane in range(1, 17))
# Variation selectors of Japanese names are kept after an ideograph (unified or compatibility). Anywhere else, a
# sequence of them could encode hidden bytes.
_IDEOGRAPHIC_SELECTOR = r"\U000E0100-\U000E01EF"
_IDEOGRAPH = r"\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\U00020000-\U0002FFFD\U00030000-\U0003FFFD"
# White space that does not end a line; CR only before LF, by rule 1.
_SPACE = r"\t\r \u00A0\u1680\u2000-\u200A\u202F\u205F\u3000"

_MAY_NEED_ESCAPE = re.compile(rf"[\\\r{_HIDDEN}{_IDEOGRAPHIC_SELECTOR}]")
_TO_ESCAPE = re.compile(
    rf"(?<!\\)(\\*+)(?:u\{{|((?:[{_HIDDEN}]|\r(?!\n)|(?<![{_IDEOGRAPH}])[{_IDEOGRAPHIC_SELECTOR}])++))"
)

_FIRST = "\\#═=─━§MU"
"""The characters that structure begins with, including backslashes."""
_MAY_BE_STRUCTURE = re.compile(
    rf"\n([{_SPACE}{_NOTHING}{_BLANK}]*+)((?:[\\#=\x80-\U0010FFFF]|M[E\x80-\U0010FFFF]|U[S\x80-\U0010FFFF]).*)"
)
_STRUCTURE = re.compile(r"\\*+(?:#{1,6}+(?:\s|\Z)|[═=─━]{3,}+\s*+\Z|§\s*+\Z|(?:MEMORY|USER PROFILE) \()")
_NOTHINGS = re.compile(rf"[{_NOTHING}]+")
_BLANKS = re.compile(rf"[{_BLANK}]")


@dataclass(frozen=True, slots=True)
class RenderedBlock:
    """A block as a session sees it. Its owner is not part of the text."""

    label: str
    content: str
    owner_agent_id: str | None = None
    """None for a block of the session's own agent."""


@dataclass(frozen=True, slots=True)
class RenderedTier:
    """The notes of one tier as a session sees them, oldest first."""

    usage: Usage
    notes: Sequence[str]


def render(
    blocks: Iterable[RenderedBlock],
    tiers: Iterable[RenderedTier],
    *,
    omit_usage: bool = False,
    left_out: Sequence[str] = (),
) -> str:
    """The prompt: *blocks* in the given order, then MEMORY, then USER PROFILE, then a line for each of *left_out*.

    A tier without notes is omitted.
    """
    sections = [_block(block) for block in blocks]
    for tier in sorted(tiers, key=lambda tier: tier.usage.tier):
        if tier.notes:
            sections.append(_tier(tier, omit_usage=omit_usage))
    if left_out:
        sections.append("\n".join([*_ruled(LEFT_OUT), *left_out]))
    return _BLANK_LINE.join(sections)


def escape(text: str) -> str:
    """Escape the *text* of an item: no line of it looks like structure, and no two texts look the same."""
    return _MAY_BE_STRUCTURE.sub(_escape_structure, "\n" + _escape_invisible(text))[1:]


def _block(block: RenderedBlock) -> str:
    # The rule for labels excludes line ends. If a label ever has one, it must not end the heading.
    heading = "### " + "\\u{A}".join(_escape_invisible(part) for part in block.label.split("\n"))
    return f"{heading}\n{escape(block.content)}" if block.content else heading


def _tier(tier: RenderedTier, *, omit_usage: bool) -> str:
    heading = HEADINGS[tier.usage.tier]
    if not omit_usage:
        heading = f"{heading} {_budget(tier.usage)}"
    return "\n".join([*_ruled(heading), SEPARATOR.join(map(escape, tier.notes))])


def _ruled(heading: str) -> list[str]:
    return [RULER, heading, RULER]


def _budget(usage: Usage) -> str:
    return f"[{usage.percent}% — {usage.used_chars:,}/{usage.limit_chars:,} chars]"


def _escape_invisible(text: str) -> str:
    """Rule 1."""
    return _TO_ESCAPE.sub(_hex_escape, text) if _MAY_NEED_ESCAPE.search(text) else text


def _hex_escape(match: re.Match[str]) -> str:
    backslashes, hidden = match.groups()
    return backslashes * 2 + ("".join(f"\\u{{{ord(character):X}}}" for character in hidden) if hidden else "u{")


def _escape_structure(match: re.Match[str]) -> str:
    """Rule 2."""
    margin, rest = match.groups()
    return f"\n{margin}\\{rest}" if _is_structure(rest) else match[0]


def _is_structure(rest: str) -> bool:
    """Whether a line looks like structure. *rest* is the line from its first visible character on."""
    if _plain_form(rest[0])[0] not in _FIRST:
        return False
    return any(_STRUCTURE.match(_plain_form(_BLANKS.sub(width, rest))) for width in ("", " "))


def _plain_form(text: str) -> str:
    """*text* without zero-width characters, in NFKC, normalized character by character.

    Combining marks are never structure, and unicodedata takes more than a second to put 32,000 of them in order.
    """
    if text.isascii():
        return text
    return "".join(unicodedata.normalize("NFKC", character) for character in _NOTHINGS.sub("", text))
