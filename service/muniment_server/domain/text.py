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

_JOINERS = "\u200c\u200d"
"""ZWNJ and ZWJ: format characters that Persian, Hindi, Tamil and emoji need."""
_REFUSED = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
"""Controls, formats, line ends; unassigned code points, because their NFC may change with Unicode."""


def key(text: str) -> str:
    """*text* as a key is kept. Raises InvalidArgument for the field `key`."""
    name = unicodedata.normalize("NFC", text)
    if name != name.strip():
        raise _invalid("key", "must not begin or end with a space")
    return _checked(name, field="key", limit=KEY_LIMIT)


def tag(text: str, *, field: str) -> str:
    """*text* as a tag is kept: trimmed."""
    return _checked(unicodedata.normalize("NFC", text).strip(), field=field, limit=TAG_LIMIT)


def tags(texts: Iterable[str]) -> list[str]:
    """*texts* as tags are kept: without repetitions, in the order given."""
    return list(dict.fromkeys(tag(text, field=f"tags[{index}]") for index, text in enumerate(texts)))


def content(text: str) -> str:
    """*text* as it is. U+0000 is refused: Postgres cannot keep it."""
    if "\0" in text:
        raise _invalid("content", "must not contain U+0000")
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
