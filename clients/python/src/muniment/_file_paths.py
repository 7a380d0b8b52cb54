"""The paths of files, and the patterns that they match."""

from __future__ import annotations

import re
import unicodedata

from muniment._file_errors import InvalidPath
from muniment._reserved import RESERVED

MAX_KEY_CHARS = 256

_PARTS = re.compile(r"\*\*/|\*\*|.", re.DOTALL)
"""The parts of a pattern."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def key_prefix(kind: str, root: str | None) -> str:
    """The beginning of the keys of a *kind* of memories: a kind or a root never reads as another one.

    ValueError: the root is empty, or has a slash, and so its memories would be among those of another root.
    """
    if root is None:
        return f"{RESERVED}{kind}/"
    if not root or "/" in root:
        raise ValueError("a root must have a name without a slash; without a root, it has the files of all adapters")
    return f"{RESERVED}{kind}:{root}/"


def normalized(path: str, *, is_file: bool = False) -> str:
    """The path from the root in NFC, as keys are stored, without empty names, `.` and `..`. Empty for the root.

    InvalidPath: it leaves the root, or is the root where a file is expected.
    """
    if _SURROGATE.search(path):
        raise InvalidPath("The path has half of a surrogate pair.")
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            if not names:
                raise InvalidPath(f"{path} leads out of the directory.")
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    if is_file and not names:
        raise InvalidPath(f"{path or 'An empty path'} is not the path of a file.")
    return unicodedata.normalize("NFC", "/".join(names))


def is_path(path: str) -> bool:
    """Whether *path* is the path of a file as `normalized` returns it."""
    try:
        return normalized(path, is_file=True) == path
    except InvalidPath:
        return False


def require_short(pattern: str) -> None:
    """Check that a pattern is no longer than a key: matching 1,000 files with a very long one would take minutes."""
    if len(pattern) > MAX_KEY_CHARS:
        raise InvalidPath(f"The pattern has {len(pattern):,} characters. It may have {MAX_KEY_CHARS}.")


def matches(pattern: str, path: str) -> bool:
    """Whether a path matches a pattern: see `FileView.glob`. `**/` also stands for nothing.

    It takes time in proportion to the product of their lengths, also if a model chose the pattern to take longer.
    """
    places, end = {0}, len(path)
    for part in _PARTS.findall(pattern.lstrip("/")):
        if part == "**":
            places = set(range(min(places), end + 1))
        elif part == "**/":
            places |= {place + 1 for place in range(min(places), end) if path[place] == "/"}
        elif part == "*":
            places = _to_ends_of_names(path, places)
        else:
            places = {place + 1 for place in places if place < end and _is_one(part, path[place])}
        if not places:
            return False
    return end in places


def _to_ends_of_names(path: str, places: set[int]) -> set[int]:
    """The places, and those after each up to the end of its name. Each place is visited once."""
    reached: set[int] = set()
    is_reached = False
    for place in range(min(places), len(path) + 1):
        # The place before this one ended a name if a slash is between them.
        is_reached = place in places or (is_reached and path[place - 1] != "/")
        if is_reached:
            reached.add(place)
    return reached


def _is_one(part: str, character: str) -> bool:
    return part == character or (part == "?" and character != "/")
