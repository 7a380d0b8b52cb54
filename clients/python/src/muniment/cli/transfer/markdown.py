"""A directory of Markdown notes: each file becomes a memory.

The key is the path in the directory without `.md`. The content is the text byte for byte, including front matter. Tags
come from the front matter: `tags: [a, b]`, `tags: a, b` or a list of lines `- a`. Skipped are files and directories
whose name begins with a dot, links to such files or out of the directory, linked directories, empty files, and
everything that is not a regular file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from muniment import Classification
from muniment.cli.transfer.items import MemoryItem, Reading, Unreadable, foreign

_SUFFIX = ".md"
_MAX_BYTES = 1024**2
"""The size limit of a file: more than the server accepts as a memory."""
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_TAGS = re.compile(r"^tags:(.*)\n((?:[ \t]*-[ \t].*\n)*)", re.MULTILINE)
"""No two adjacent quantifiers match the same text, so matching takes linear time."""


def read(folder: Path, level: Classification) -> Reading:
    """A memory for each file, by path. Raises Unreadable and OSError."""
    root = folder.resolve()
    found = sorted(_files(folder))
    inside = [name for name in found if _is_ours(folder / name, root)]
    memories = [_memory(folder, name, level) for name in inside]
    kept = [memory for memory in memories if memory.content]
    return Reading(foreign(kept), _remarks(len(found) - len(inside), len(memories) - len(kept)))


def _files(folder: Path) -> Iterator[str]:
    """The paths of the Markdown files in *folder*, with `/`."""
    for place, folders, files in os.walk(folder, onerror=_fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.lower().endswith(_SUFFIX) and not name.startswith("."):
                yield (Path(place) / name).relative_to(folder).as_posix()


def _is_ours(file: Path, root: Path) -> bool:
    """Whether it is a regular file whose real path is in *root* and not hidden."""
    if not file.is_file():  # also false for a link to itself
        return False
    real = file.resolve()
    return real.is_relative_to(root) and not any(part.startswith(".") for part in real.relative_to(root).parts)


def _fail(error: OSError) -> None:
    raise error


def _memory(folder: Path, name: str, level: Classification) -> MemoryItem:
    where = ascii(name)
    with (folder / name).open("rb") as opened:
        read = opened.read(_MAX_BYTES + 1)
    if len(read) > _MAX_BYTES:
        raise Unreadable(where, f"is larger than {_MAX_BYTES // 1024**2} MiB")
    try:
        content = read.decode()
    except UnicodeDecodeError:
        raise Unreadable(where, "is not in UTF-8", "convert it: iconv -t UTF-8") from None
    return MemoryItem(where, level, key=name[: -len(_SUFFIX)], content=content, tags=tuple(_tags(content)))


def _tags(content: str) -> Iterator[str]:
    """The tags of simple front matter. Other front matter gives none."""
    front_matter = _FRONT_MATTER.match(content)
    found = _TAGS.search(front_matter[1]) if front_matter else None
    if found is None:
        return
    inline = found[1].strip().removeprefix("[").removesuffix("]").split(",")
    listed = [line.strip().removeprefix("-") for line in found[2].splitlines()]
    for tag in (*inline, *listed):
        bare = tag.strip().strip("\"'").removeprefix("#").strip()
        if bare:
            yield bare


def _remarks(elsewhere: int, empty: int) -> tuple[str, ...]:
    said = []
    if elsewhere:
        said.append(f"omitted links out of the directory or to hidden files, and special files: {elsewhere}")
    if empty:
        said.append(f"omitted empty files: {empty}")
    return tuple(said)
