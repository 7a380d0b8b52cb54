"""Which names, tags, contents and queries are accepted, and in which form they are stored.

Names and tags are compared byte by byte, so they are stored in NFC. Contents are stored unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable

from muniment_server.domain.errors import FieldViolation, InvalidArgument
from muniment_server.domain.unicode import category, normalized

KEY_LIMIT = 256
"""The size limit of a key, in code points."""
TAG_LIMIT = 64
"""The size limit of a tag, in code points."""
LABEL_LIMIT = 64
"""The size limit of a block's label, in code points."""
FORM_OF_IDS = "must be 1 to 256 characters, without spaces and control characters, and not begin with `~`"
"""The form of the ids of agents and conversations. `~` and a number is a deleted agent in the audit log."""

_JOINERS = "\u200c\u200d"
"""ZWNJ and ZWJ: format characters that Persian, Hindi, Tamil and emoji need."""
_REJECTED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Format and control characters, and line ends."""
_BLANK_WORDS = {
    *"\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0",
    *map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))),
}
"""Invisible letters and marks. In labels, they would let two blocks have names that look the same."""


def key(text: str, *, field: str = "key", is_new: bool = False) -> str:
    """*text* as it is stored for a key or the name of a thread. *is_new*: it is to be saved, not looked up."""
    name = normalized("NFC", text)
    if name != name.strip():
        raise _invalid(field, "must not begin or end with a space")
    return _checked(name, field=field, limit=KEY_LIMIT, is_new=is_new)


def key_prefix(text: str, *, field: str = "key_prefix") -> str:
    """*text* as the beginning of stored keys. Unlike a key, it may be empty and end in a space."""
    prefix = normalized("NFC", text)
    if prefix != prefix.lstrip():
        raise _invalid(field, "must not begin with a space")
    return _checked(prefix, field=field, limit=KEY_LIMIT) if prefix else ""


def after_prefix(prefix: str) -> str:
    """The first text, byte by byte, after all keys that begin with *prefix*. No key contains U+10FFFF."""
    if not prefix or prefix[-1] == "\U0010ffff":
        return prefix + "\U0010ffff"
    following = ord(prefix[-1]) + 1
    return prefix[:-1] + chr(0xE000 if following == 0xD800 else following)


def label(text: str, *, field: str = "label", is_new: bool = False) -> str:
    """*text* as it is stored for the label of a block: letters, marks and digits of any script, `_`, `.` and `-`.

    Headings of the prompt contain labels. So nothing else is allowed, and no mark or punctuation at the start.
    """
    name = _checked(normalized("NFC", text), field=field, limit=LABEL_LIMIT, is_new=is_new)
    if not all(character in "_.-" or _is_word(character, marks=True) for character in name):
        raise _invalid(field, "must be letters, marks, digits, `_`, `.` and `-`")
    if not (name[0] == "_" or _is_word(name[0], marks=False)):
        raise _invalid(field, "must begin with a letter, a digit or `_`")
    return name


def _is_word(character: str, *, marks: bool) -> bool:
    if character in _BLANK_WORDS:
        return False
    kind = category(character)
    return kind[0] == "L" or kind in ("Nd", "Cn") or (marks and kind[0] == "M")


def tag(text: str, *, field: str, is_new: bool = False) -> str:
    """*text* as it is stored for a tag: trimmed."""
    return _checked(normalized("NFC", text).strip(), field=field, limit=TAG_LIMIT, is_new=is_new)


def tags(texts: Iterable[str], *, field: str = "tags", is_new: bool = False) -> list[str]:
    """*texts* as they are stored for tags: without repetitions, in the given order."""
    found = (tag(text, field=f"{field}[{index}]", is_new=is_new) for index, text in enumerate(texts))
    return list(dict.fromkeys(found))


def check_id(text: str, *, field: str) -> None:
    """Raise InvalidArgument for an id that matches the pattern, but not FORM_OF_IDS.

    Ids are not normalized: other systems compare them, too.
    """
    if text.isascii():
        return
    if any(map(str.isspace, text)):
        raise _invalid(field, FORM_OF_IDS)
    if text != normalized("NFC", text):
        raise _invalid(field, "must be in Unicode's Normalization Form C")
    _check_characters(text, field=field, is_new=True)


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
    if any(category(character) in {"Cc", "Cs"} for character in text):
        raise _invalid(field, "must not contain control characters")
    return text


def _checked(name: str, *, field: str, limit: int, is_new: bool = False) -> str:
    if not name:
        raise _invalid(field, "must not be empty")
    if len(name) > limit:
        raise _invalid(field, f"must be at most {limit} code points")
    if not _is_plain_ascii(name):
        _check_characters(name, field=field, is_new=is_new)
    return name


def _check_characters(name: str, *, field: str, is_new: bool) -> None:
    """Unassigned characters are looked up: a server that knows a later Unicode may have saved the name."""
    kinds = {category(character) for character in name if character not in _JOINERS}
    if kinds & _REJECTED or (is_new and "Cn" in kinds):
        raise _invalid(field, "must not contain control, format or unassigned characters")


def _is_plain_ascii(text: str) -> bool:
    """Whether *text* has only letters, digits, punctuation and spaces of ASCII, as nearly every name does."""
    return text.isascii() and text.isprintable()


def _invalid(field: str, rule: str) -> InvalidArgument:
    return InvalidArgument(FieldViolation(field, rule))
