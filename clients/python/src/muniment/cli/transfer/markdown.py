"""A directory of Markdown notes: each file becomes a memory.

The key is the path in the directory without `.md`. The content is the text byte for byte, including front matter. Tags
come from `tags` in the front matter, which is YAML: a list, or a text with commas. Skipped are files and directories
whose name begins with a dot, links to such files or out of the directory, linked directories, empty files, and
everything that is not a regular file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from muniment import Classification
from muniment.cli.transfer.items import MemoryItem, Reading, Unreadable, foreign

_SUFFIX = ".md"
_MAX_BYTES = 1024**2
"""The size limit of a file: more than the server accepts as a memory."""
_MAX_FRONT_MATTER = 64 * 1024
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
"""No two adjacent quantifiers match the same text, so matching takes linear time."""


def read(folder: Path, level: Classification) -> Reading:
    """A memory for each file, by path. Raises Unreadable and OSError."""
    root = folder.resolve()
    files = sorted(_files(folder))
    found = [name for name in files if name.lower().endswith(_SUFFIX)]
    inside = [name for name in found if _is_ours(folder / name, root)]
    texts = {name: _text(folder / name, ascii(name)) for name in inside}
    tags = {name: _tags(text) for name, text in texts.items()}
    counts = {
        "files that do not end in .md": len(files) - len(found),
        "links out of the directory or to hidden files, and special files": len(found) - len(inside),
        "empty files": sum(not text for text in texts.values()),
        "tags in front matter that is not YAML": sum(found is None for found in tags.values()),
    }
    memories = (
        MemoryItem(ascii(name), level, key=name[: -len(_SUFFIX)], content=text, tags=tuple(tags[name] or ()))
        for name, text in texts.items()
        if text
    )
    return Reading(foreign(memories), tuple(f"omitted {what}: {count}" for what, count in counts.items() if count))


def _files(folder: Path) -> Iterator[str]:
    """The paths of the files in *folder* that are not hidden, with `/`."""
    for place, folders, files in os.walk(folder, onerror=_fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith("."):
                yield (Path(place) / name).relative_to(folder).as_posix()


def _is_ours(file: Path, root: Path) -> bool:
    """Whether it is a regular file whose real path is in *root* and not hidden."""
    if not file.is_file():  # also false for a link to itself
        return False
    real = file.resolve()
    return real.is_relative_to(root) and not any(part.startswith(".") for part in real.relative_to(root).parts)


def _fail(error: OSError) -> None:
    raise error


def _text(file: Path, where: str) -> str:
    with file.open("rb") as opened:
        read = opened.read(_MAX_BYTES + 1)
    if len(read) > _MAX_BYTES:
        raise Unreadable(where, f"is larger than {_MAX_BYTES // 1024**2} MiB")
    try:
        return read.decode()
    except UnicodeDecodeError:
        raise Unreadable(where, "is not in UTF-8", "convert it: iconv -t UTF-8") from None


def _tags(content: str) -> list[str] | None:
    """The tags of the front matter. None if it is not YAML."""
    front_matter = _FRONT_MATTER.match(content)
    if front_matter is None:
        return []
    if len(front_matter[1]) > _MAX_FRONT_MATTER:
        return None
    try:
        # Nodes, of which nothing is made: a tag is what is written, also if it looks like a number or a date.
        root = yaml.compose(front_matter[1], yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    bare = (tag.strip().removeprefix("#").strip() for tag in _written(root))
    return [tag for tag in bare if tag]


def _written(root: yaml.Node | None) -> Iterator[str]:
    """The tags as they are written: the texts of a list, or the parts of one text."""
    members = root.value if isinstance(root, yaml.MappingNode) else []
    for tags in (value for name, value in members if name.value == "tags"):
        if isinstance(tags, yaml.SequenceNode):
            yield from (each.value for each in tags.value if _is_text(each))
        elif _is_text(tags):
            yield from tags.value.split(",")


def _is_text(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag != "tag:yaml.org,2002:null"
