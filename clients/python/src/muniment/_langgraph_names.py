"""The keys and tags of the memories in which `muniment.langgraph` stores items: for the store, and for an import."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable
from urllib.parse import unquote

from muniment._reserved import RESERVED

Namespace = tuple[str, ...]

TAG = f"{RESERVED}langgraph"
MAX_TAG_CHARS = 64
MAX_KEY_CHARS = 256
DEEPEST_TAG = 31
"""With `TAG` itself, that many tags are the most that a memory may have. Deeper namespaces are filtered here."""

_REFUSED = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
"""Categories of characters that a key must not contain."""


def key_of(namespace: Namespace, key: str) -> str:
    """The key of the memory for an item: unique for namespace and key, and under a prefix of its own."""
    return f"{TAG}/{path_of(namespace)}/{escaped(key)}"


def prefix_of(namespace: Namespace) -> str:
    """The prefix of the keys of all items in a namespace. Others may share it: `users2` has that of `users`."""
    return f"{TAG}/{path_of(namespace)}"[:MAX_KEY_CHARS]


def path_of(namespace: Namespace) -> str:
    """The namespace as a part of a key."""
    return ".".join(map(escaped, namespace))


def namespace_of(path: str) -> Namespace:
    """The namespace of that part of a key."""
    return tuple(map(unescaped, path.split("."))) if path else ()


def tags_of(namespace: Namespace) -> list[str]:
    """The tags of an item: for its namespace and all parents of that."""
    return [tag_of(namespace[:depth]) for depth in range(min(len(namespace), DEEPEST_TAG) + 1)]


def tag_of(namespace: Namespace) -> str:
    """The tag of all items in a namespace. Two long namespaces may share a tag: callers check the namespace itself."""
    if not namespace:
        return TAG
    path = path_of(namespace[:DEEPEST_TAG])
    tag = f"{TAG}:{path}"
    return tag if len(tag) <= MAX_TAG_CHARS else f"{TAG}#{hashlib.sha256(path.encode()).hexdigest()[:32]}"


def escaped(text: str) -> str:
    """*text* with separators and characters that a key must not contain written as `%XX`.

    Keys are stored in NFC. If that would change the text, all characters outside ASCII are escaped.
    """
    written = _written(text, may_stay)
    if unicodedata.is_normalized("NFC", written):
        return written
    return _written(text, lambda each: each.isascii() and may_stay(each))


def _written(text: str, stays: Callable[[str], bool]) -> str:
    ends = (0, len(text) - 1)  # a key must not begin or end with a space
    return "".join(
        each if stays(each) and not (each.isspace() and place in ends) else _percent(each)
        for place, each in enumerate(text)
    )


def may_stay(character: str) -> bool:
    """Whether a key may contain it unescaped. Unicode 3.2 gives the same answer in every version of Python."""
    return (
        character not in "%./"
        and unicodedata.category(character) not in _REFUSED
        and unicodedata.ucd_3_2_0.category(character) != "Cn"
    )


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def unescaped(text: str) -> str:
    """The text that was escaped."""
    return unquote(text, errors="surrogatepass")
