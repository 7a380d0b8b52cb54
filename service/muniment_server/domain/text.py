"""Names, tags, contents and queries: what is accepted, and in which form it is kept.

Names and tags are compared byte by byte, so they are kept in NFC; contents are kept byte for byte.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from muniment_server.domain.errors import FieldViolation, InvalidArgument

KEY_LIMIT = 256
"""Code points of a key."""
TAG_LIMIT = 64
"""Code points of a tag."""
LABEL_LIMIT = 64
"""Code points of a block's label."""

_JOINERS = "\u200c\u200d"
"""ZWNJ and ZWJ: format characters that Persian, Hindi, Tamil and emoji need."""
_REFUSED = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
"""Controls, formats, line ends; unassigned code points, because their NFC may change with Unicode."""
_BLANK_WORDS = {
    *"\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0",
    *map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))),
}
"""Letters and marks that show nothing: in labels, two of a look could be two blocks."""


def key(text: str, *, field: str = "key") -> str:
    """*text* as a key is kept, or the name of a thread."""
    name = unicodedata.normalize("NFC", text)
    if name != name.strip():
        raise _invalid(field, "must not begin or end with a space")
    return _checked(name, field=field, limit=KEY_LIMIT)


def label(text: str, *, field: str = "label") -> str:
    """*text* as the label of a block is kept: letters, marks and digits of any script, `_`, `.` and `-`.

    It stands in a heading of the prompt, so nothing else is let in, and no mark or punctuation begins it.
    """
    name = _checked(unicodedata.normalize("NFC", text), field=field, limit=LABEL_LIMIT)
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
    """*text* as a tag is kept: trimmed."""
    return _checked(unicodedata.normalize("NFC", text).strip(), field=field, limit=TAG_LIMIT)


def tags(texts: Iterable[str], *, field: str = "tags") -> list[str]:
    """*texts* as tags are kept: without repetitions, in the order given."""
    return list(dict.fromkeys(tag(text, field=f"{field}[{index}]") for index, text in enumerate(texts)))


def content(text: str, *, field: str = "content") -> str:
    """*text* as it is. U+0000 is refused: Postgres cannot keep it."""
    if "\0" in text:
        raise _invalid(field, "must not contain U+0000")
    return text


def query(text: str) -> str:
    """*text* as plain language. U+0000 separates words like a space."""
    words = text.replace("\0", " ").strip()
    if not words:
        raise _invalid("query", "must not be blank")
    return words


def plain(text: str, *, field: str) -> str:
    """*text* for people, such as a display name: anything but control characters."""
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in text):
        raise _invalid(field, "must not contain control characters")
    return text


def _checked(name: str, *, field: str, limit: int) -> str:
    if not name:
        raise _invalid(field, "must not be empty")
    if len(name) > limit:
        raise _invalid(field, f"must be at most {limit} code points")
    if any(unicodedata.category(character) in _REFUSED and character not in _JOINERS for character in name):
        raise _invalid(field, "must not contain control, format or unassigned characters")
    return name


def _invalid(field: str, rule: str) -> InvalidArgument:
    return InvalidArgument(FieldViolation(field, rule))
