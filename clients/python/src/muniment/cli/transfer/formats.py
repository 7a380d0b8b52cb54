"""Detects the format of a file, and reads it."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import click

from muniment import Classification
from muniment.cli.transfer import docker_agent, langgraph, letta, lines, markdown, mcp, mem0, openmemory
from muniment.cli.transfer.fields import loaded
from muniment.cli.transfer.items import Reading, Unreadable

FORMATS = (lines.FORMAT, "letta", "mcp", "mem0", "langgraph", "docker-agent", "openmemory", "markdown")
_IN_LINES = (lines.FORMAT, "langgraph")
_MAY_BE_LINES = (None, "mcp", "mem0")
_FIRST_LINES = {
    lines.FORMAT: lines.is_header,
    "mcp": mcp.is_line,
    "langgraph": langgraph.is_line,
    "mem0": mem0.is_line,
}
"""The formats in JSON Lines, by their first line."""
_STANDARD_INPUT = Path("-")
_MAX_BYTES = 4 * 1024**3
"""The size limit of a file in JSON Lines: what an agent may store at one level by default."""
_MAX_DOCUMENT_BYTES = 256 * 1024**2
"""The size limit of a file that is one JSON document."""


@dataclass(frozen=True, slots=True)
class Source:
    """What to import, and the options that describe it. The path `-` is standard input."""

    path: Path
    agent_id: str
    format: str | None = None
    level: Classification | None = None
    from_agent: str | None = None
    edited: bool = False


def read(source: Source) -> Reading:
    """Read *source*. Raises Unreadable, click.UsageError and OSError."""
    if source.path.is_dir():
        return markdown.read(source.path, _level(source, _agreed(source, "markdown")))
    if _begins(source.path, openmemory.MAGIC):
        return openmemory.read(source.path, _level(source, _agreed(source, "openmemory")), agent_id=source.agent_id)
    if _begins(source.path, docker_agent.MAGIC):
        level = _level(source, _agreed(source, "docker-agent"))
        return docker_agent.read(source.path, level, agent_id=source.agent_id)
    content = _content(source)
    match source.format or _guessed(content):
        case lines.FORMAT:
            _refuse_level(source)
            return lines.read(content, edited=source.edited)
        case "mcp":
            return mcp.read(content, _level(source, "mcp"))
        case "langgraph":
            return langgraph.read(content, _level(source, "langgraph"))
        case "mem0":
            level = _level(source, "mem0")
            return mem0.read(content, level, agent_id=source.agent_id, from_agent=source.from_agent)
        case "letta":
            level = _level(source, "letta")
            return letta.read(content, level, agent_id=source.agent_id, from_agent=source.from_agent)
        case other:
            raise Unreadable("", f"this is not of the format {other}", "omit --format: the format is detected")


def _content(source: Source) -> bytes:
    """All of a file, or of standard input, up to a bound: `/dev/zero` and a pipe may have no end."""
    with nullcontext(sys.stdin.buffer) if source.path == _STANDARD_INPUT else source.path.open("rb") as opened:
        first = opened.readline(lines.MAX_LINE_BYTES + 1)
        is_lines = source.format in _IN_LINES or (source.format in _MAY_BE_LINES and _begins_lines(first))
        if is_lines:
            lines.require_bounded("line 1", first)
        most = _MAX_BYTES if is_lines else _MAX_DOCUMENT_BYTES
        content = first + opened.read(most + 1 - len(first))
    if len(content) > most:
        raise Unreadable("", f"the file is larger than {most // 1024**2:,} MiB", "split it")
    return content


def _begins_lines(first: bytes) -> bool:
    return any(is_ours(first) for is_ours in _FIRST_LINES.values())


def _begins(path: Path, magic: bytes) -> bool:
    if path == _STANDARD_INPUT or (path.exists() and not path.is_file()):  # a pipe can be read only once
        return False
    with path.open("rb") as opened:
        return opened.read(len(magic)) == magic


def _agreed(source: Source, found: str) -> str:
    if source.format not in (None, found):
        raise Unreadable("", f"this is not of the format {source.format}, but {found}", "omit --format")
    return found


def _guessed(content: bytes) -> str:
    """The format of a text. Raises Unreadable if it is unknown."""
    first = lines.first_line(content)
    for name, is_ours in _FIRST_LINES.items():
        if is_ours(first):
            return name
    is_json = content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[", b'"')
    document = loaded("the file", content) if is_json else None
    if mem0.is_document(document):
        return "mem0"
    if mcp.is_document(document):
        return "mcp"
    if letta.is_document(loaded("the file", document) if isinstance(document, str) else document):
        return "letta"
    raise Unreadable("", "the format is unknown", f"name it: --format {', '.join(FORMATS)}")


def _level(source: Source, found: str) -> Classification:
    if source.level is None:
        raise click.UsageError(
            f"a file of {found} has no levels, and there is no default: give --level, the level of its most "
            "sensitive content"
        )
    return source.level


def _refuse_level(source: Source) -> None:
    if source.level is not None:
        raise click.UsageError("an export has a level for each item: omit --level")
