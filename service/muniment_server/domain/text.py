"""Which names, tags, contents and queries are accepted, and in which form they are stored.

Names and tags are compared byte by byte, so they are stored in NFC. Contents are stored unchanged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Literal, TypeAlias

from muniment_server.domain.errors import FieldViolation, InvalidArgument

Form: TypeAlias = Literal["NFC", "NFKC", "NFKD"]

KEY_LIMIT = 256
"""The size limit of a key, in code points."""
TAG_LIMIT = 64
"""The size limit of a tag, in code points."""
LABEL_LIMIT = 64
"""The size limit of a block's label, in code points."""

_JOINERS = "\u200c\u200d"
"""ZWNJ and ZWJ: format characters that Persian, Hindi, Tamil and emoji need."""
_REJECTED = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
"""Format and control characters, line ends, and unassigned code points, whose NFC a later Unicode may define."""
_BLANK_WORDS = {
    *"\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0",
    *map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))),
}
"""Invisible letters and marks. In labels, they would let two blocks have names that look the same."""


def normalized(form: Form, text: str) -> str:
    """*text* in a normalization form of Unicode. All texts of callers are normalized here.

    It takes linear time, since combining marks are put in order first: unicodedata takes the square of their number.
    """
    if text.isascii():
        return text
    ordered = _marks_in_a_row().sub(lambda marks: "".join(sorted(marks[0], key=unicodedata.combining)), text)
    return unicodedata.normalize(form, ordered)


@cache
def _marks_in_a_row() -> re.Pattern[str]:
    """Matches characters whose order normalization may change. All of them are below U+1F000."""
    return re.compile(f"[{''.join(filter(unicodedata.combining, map(chr, range(0x300, 0x1F000))))}]{{9,}}")


def key(text: str, *, field: str = "key") -> str:
    """*text* as it is stored for a key or the name of a thread."""
    name = normalized("NFC", text)
    if name != name.strip():
        raise _invalid(field, "must not begin or end with a space")
    return _checked(name, field=field, limit=KEY_LIMIT)


def key_prefix(text: str, *, field: str = "key_prefix") -> str:
    """*text* as the beginning of stored keys. Unlike a key, it may be empty and end in a space."""
    prefix = normalized("NFC", text)
    if prefix != prefix.lstrip():
        raise _invalid(field, "must not begin with a space")
    return _checked(prefix, field=field, limit=KEY_LIMIT) if prefix else ""


def after_prefix(prefix: str) -> str:
    """The first text, byte by byte, after all keys that begin with *prefix*. No key contains U+10FFFF."""
    if not prefix:
        return "\U0010ffff"
    following = ord(prefix[-1]) + 1
    return prefix[:-1] + chr(0xE000 if following == 0xD800 else following)


def label(text: str, *, field: str = "label") -> str:
    """*text* as it is stored for the label of a block: letters, marks and digits of any script, `_`, `.` and `-`.

    Headings of the prompt contain labels. So nothing else is allowed, and no mark or punctuation at the start.
    """
    name = _checked(normalized("NFC", text), field=field, limit=LABEL_LIMIT)
    if not all(character in "_.-" or _is_word(character, marks=True) for character in name):
        raise _invalid(field, "must be letters, marks, digits, `_`, `.` and `-`")
    if not (name[0] == "_" or _is_word(name[0], marks=False)):
        raise _invalid(field, "must begin with a letter, a digit or `_`")
    return name


def _is_word(character: str, *, marks: bool) -> bool:
    if character in _BLANK_WORDS:
        return False
    category = unicodedata.category(character)
    return category[0] == "L" or category == "Nd" or (marks and category[0] == "M")


def tag(text: str, *, field: str) -> str:
    """*text* as it is stored for a tag: trimmed."""
    return _checked(normalized("NFC", text).strip(), field=field, limit=TAG_LIMIT)


def tags(texts: Iterable[str], *, field: str = "tags") -> list[str]:
    """*texts* as they are stored for tags: without repetitions, in the given order."""
    return list(dict.fromkeys(tag(text, field=f"{field}[{index}]") for index, text in enumerate(texts)))


def content(text: str, *, field: str = "content") -> str:
    """*text*, unchanged. U+0000 is rejected: Postgres cannot store it."""
    if "\0" in text:
        raise _invalid(field, "must not contain U+0000")
    return text


def query(text: str) -> str:
    """*text* as a query, trimmed. U+0000 separates words like a space."""
    words = text.replace("\0", " ").strip()
    if not words:
        raise _invalid("query", "must not be blank")
    return words


def plain(text: str, *, field: str) -> str:
    """*text*, such as a display name, unchanged: anything but control characters."""
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in text):
        raise _invalid(field, "must not contain control characters")
    return text


def _checked(name: str, *, field: str, limit: int) -> str:
    if not name:
        raise _invalid(field, "must not be empty")
    if len(name) > limit:
        raise _invalid(field, f"must be at most {limit} code points")
    if not _is_plain_ascii(name) and any(
        unicodedata.category(character) in _REJECTED and character not in _JOINERS for character in name
    ):
        raise _invalid(field, "must not contain control, format or unassigned characters")
    return name


def _is_plain_ascii(text: str) -> bool:
    """Whether *text* has only letters, digits, punctuation and spaces of ASCII, as nearly every name does."""
    return text.isascii() and text.isprintable()


def _invalid(field: str, rule: str) -> InvalidArgument:
    return InvalidArgument(FieldViolation(field, rule))
