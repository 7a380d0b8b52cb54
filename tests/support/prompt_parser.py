"""Reads a rendered prompt back: the published format from its reader's side. Shares nothing with the renderer.

Slow and plain on purpose: whole lines in NFKC, a character at a time.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

RULER = "═" * 48
MEMORY = "MEMORY (agent notes)"
USER_PROFILE = "USER PROFILE (who the user is)"
LEFT_OUT = "LEFT OUT (no room here; ListBlocks and ListNotes return them)"

_RULES = set("═=─━")
_NOTHING = {
    chr(point)
    for first, last in [
        (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x17B4, 0x17B5), (0x180B, 0x180D), (0x180F, 0x180F),
        (0x200B, 0x200F), (0xFE00, 0xFE0F), (0x1BCA0, 0x1BCA3),
    ]
    for point in range(first, last + 1)
}  # fmt: skip
_BLANKS = set("\u115f\u1160\u180e\u2800\u3164\uffa0")


class NotAPrompt(Exception):
    """The text is none that a renderer writes."""


@dataclass(frozen=True, slots=True)
class ParsedTier:
    """The notes of one tier, and `42% — 924/2,200 chars` as (42, 924, 2200), None when left out."""

    usage: tuple[int, int, int] | None
    notes: list[str]


@dataclass(frozen=True, slots=True)
class ParsedPrompt:
    """What a prompt was rendered from. Owners of blocks are not in the text."""

    blocks: list[tuple[str, str]] = field(default_factory=list)
    tiers: dict[str, ParsedTier] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def parse(text: str) -> ParsedPrompt:
    """Read *text*. Raises NotAPrompt."""
    prompt = ParsedPrompt()
    for section in _sections(text.split("\n")) if text else []:
        if prompt.left_out:
            raise NotAPrompt("a section after what is left out")
        if section[:3] == [RULER, LEFT_OUT, RULER]:
            prompt.left_out.extend(section[3:])
        elif section[0] == RULER:
            heading, tier = _tier(section)
            if heading in prompt.tiers or (heading == MEMORY and USER_PROFILE in prompt.tiers):
                raise NotAPrompt(f"{heading} is out of order")
            prompt.tiers[heading] = tier
        elif section[0].startswith("### ") and not prompt.tiers:
            prompt.blocks.append((_unshown(section[0][4:]), unescape("\n".join(section[1:]))))
        else:
            raise NotAPrompt(f"{section[0]!r} begins no section here")
    return prompt


def unescape(text: str) -> str:
    """The item's text that was rendered as *text*."""
    return _unshown("\n".join(_unguarded(line) for line in text.split("\n")))


def is_structure(line: str) -> bool:
    """Whether *line* looks like structure, backslashes aside."""
    bare = "".join(character for character in line if character not in _NOTHING)
    return any(
        _has_form(unicodedata.normalize("NFKC", _with_blanks(bare, width)).lstrip().lstrip("\\")) for width in ("", " ")
    )


def is_guarded(line: str) -> bool:
    """Whether the first visible character of *line* is a backslash."""
    return line[_margin(line) :].startswith("\\")


def _sections(lines: list[str]) -> list[list[str]]:
    """*lines* in parts that begin with a heading, without the blank lines between the parts."""
    starts = [index for index, line in enumerate(lines) if _begins_section(lines, index, line)]
    if not starts or starts[0] != 0:
        raise NotAPrompt("text before the first section")
    sections = [lines[start:end] for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
    for section in sections[:-1]:
        if section.pop() != "":
            raise NotAPrompt("no blank line between sections")
    return sections


def _begins_section(lines: list[str], index: int, line: str) -> bool:
    # The first ruler of a tier has the heading after it; the second has it before.
    return line.startswith("### ") or (line == RULER and index + 2 < len(lines) and lines[index + 2] == RULER)


def _tier(lines: list[str]) -> tuple[str, ParsedTier]:
    name, bracket, usage = lines[1].partition(" [")
    if name not in {MEMORY, USER_PROFILE} or lines[2] != RULER:
        raise NotAPrompt(f"{lines[1]!r} is no tier")
    notes: list[list[str]] = [[]]
    for line in lines[3:]:
        if line == "§":
            notes.append([])
        else:
            notes[-1].append(line)
    return name, ParsedTier(_usage(usage) if bracket else None, [unescape("\n".join(note)) for note in notes])


def _usage(text: str) -> tuple[int, int, int]:
    match = re.fullmatch(r"(\d+)% — (\d{1,3}(?:,\d{3})*)/(\d{1,3}(?:,\d{3})*) chars\]", text)
    if match is None:
        raise NotAPrompt(f"{text!r} is no usage")
    percent, used, limit = (int(number.replace(",", "")) for number in match.groups())
    return percent, used, limit


def _unguarded(line: str) -> str:
    if not is_structure(line):
        return line
    margin = _margin(line)
    if line[margin] != "\\":
        raise NotAPrompt(f"{line!r} is structure inside an item")
    return line[:margin] + line[margin + 1 :]


def _margin(line: str) -> int:
    """How many characters are before the first visible one."""
    index = 0
    while index < len(line) and (line[index].isspace() or line[index] in _NOTHING or line[index] in _BLANKS):
        index += 1
    return index


def _with_blanks(line: str, width: str) -> str:
    return "".join(width if character in _BLANKS else character for character in line)


def _has_form(line: str) -> bool:
    return (
        _is_heading(line)
        or (len(line.rstrip()) >= 3 and set(line.rstrip()) <= _RULES)
        or line.rstrip() == "§"
        or line.startswith(("MEMORY (", "USER PROFILE ("))
    )


def _is_heading(line: str) -> bool:
    after = line.lstrip("#")
    return 1 <= len(line) - len(after) <= 6 and (not after or after[0].isspace())


def _unshown(text: str) -> str:
    return re.sub(r"(?<!\\)(\\++)u\{(?:([0-9A-F]{1,6})\})?", _as_character, text)


def _as_character(match: re.Match[str]) -> str:
    backslashes = len(match[1])
    if backslashes % 2 == 0:
        return "\\" * (backslashes // 2) + match[0][backslashes:]
    if match[2] is None:
        raise NotAPrompt(f"{match[0]!r} shows no character")
    return "\\" * (backslashes // 2) + chr(int(match[2], 16))
