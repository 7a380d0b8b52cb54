"""Anthropic's memory tool (`memory_20250818`). Requires the extra `muniment[anthropic]`.

`MunimentMemoryTool` is an `anthropic.tools.memory.BetaAbstractMemoryTool`, and `MunimentAsyncMemoryTool` the same for
asyncio. The model's file `/memories/trips/graz.md` is the memory `muniment:files/trips/graz.md`: see `muniment.files`.
What the model reads is worded as Anthropic documents it, because models are trained on these texts, with these
additions:

- A file that was written below the taint can be edited, but neither deleted nor renamed: the model learns why.
- If a deletion or a rename uncovers a lower version, the answer says so.
- If somebody else changes a file while it is edited, nothing is changed, and the model is asked to view it again.
- A file has at most 128 KiB. The size of a directory is that of the files in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from muniment.files import (
    AmbiguousText,
    Entry,
    File,
    FileError,
    FileExists,
    FileView,
    InvalidPath,
    NoSuchFile,
    NoSuchLine,
    NoSuchText,
    entries,
    normalized,
)
from muniment.session import SessionClient

MEMORIES = "/memories"
DEPTH = 2
"""How deep a directory is shown."""
AROUND = 2
"""How many lines around an edit are shown."""

_HEADER = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:"


class MunimentMemoryTool(BetaAbstractMemoryTool):
    """The memory tool of one session: the files of its agent, up to the session's taint.

    It does not close the session.
    """

    def __init__(
        self,
        session: SessionClient,
        *,
        root: str | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = FileView(session, root=root, shown=f"{MEMORIES}/")

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """A file with line numbers, or what is in a directory."""
        with _worded(command.path):
            path = _path(command.path)
            try:
                file = self._files.read(path) if path else None
            except NoSuchFile:
                file = None
            return _numbered(command.path, file, command.view_range) if file else self._listing(command.path, path)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file."""
        _require_texts(file_text=command.file_text)
        with _worded(command.path):
            path = _path(command.path)
            if self._files.exists(path):
                raise FileExists
            self._files.create(path, command.file_text)
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once."""
        new = command.new_str or ""
        _require_texts(old_str=command.old_str, new_str=new)
        with self._worded_edit(command.path):
            try:
                file, line = self._files.replace(_path(command.path), command.old_str, new)
            except NoSuchText:
                raise ToolError(
                    f"No replacement was performed, old_str `{command.old_str}` did not appear verbatim in "
                    f"{command.path}."
                ) from None
            except AmbiguousText as error:
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{command.old_str}` in lines: "
                    f"{', '.join(map(str, error.lines))}. Please ensure it is unique"
                ) from None
        first = max(line - AROUND, 1)
        snippet = _with_numbers(file.lines(first, line + AROUND), first)
        return (
            f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
        )

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines below a line."""
        _require_texts(insert_text=command.insert_text)
        _require_integers("insert_line", command.insert_line)
        with self._worded_edit(command.path):
            try:
                self._files.insert(_path(command.path), command.insert_line, command.insert_text)
            except NoSuchLine as error:
                raise ToolError(
                    f"Invalid `insert_line` parameter: {command.insert_line}. It should be within the range of lines "
                    f"of the file: [0, {error.last}]"
                ) from None
        return f"The file {command.path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a directory with all that is in it."""
        with _worded(command.path, missing="The path {} does not exist"):
            path = _path(command.path)
            if not path:
                raise ToolError(f"Cannot delete the {MEMORIES} directory itself")
            return f"Successfully deleted {command.path}{_uncovered(self._files.delete(path))}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename or move a file or a directory."""
        with _worded(command.old_path, missing="The path {} does not exist"):
            old, new = _path(command.old_path), _path(command.new_path)
            if not old:
                raise ToolError(f"Cannot rename the {MEMORIES} directory itself")
            try:
                if not new:
                    raise FileExists
                revealed = self._files.rename(old, new)
            except FileExists:
                raise ToolError(f"The destination {command.new_path} already exists") from None
            return f"Successfully renamed {command.old_path} to {command.new_path}{_uncovered(revealed)}"

    def clear_all_memory(self) -> str:
        """Delete all files, for the host: no command of the model does. ToolError: some are below the taint."""
        with _worded(MEMORIES):
            return f"All memory cleared{_uncovered(self._files.clear())}"

    def _listing(self, shown: str, path: str) -> str:
        files = self._files.walk(path)
        if path and not files:
            raise NoSuchFile
        return _listed(shown, path, [file for file in files if not _is_hidden(file.path[len(path) :])])

    @contextmanager
    def _worded_edit(self, path: str) -> Iterator[None]:
        with _worded(path):
            try:
                yield
            except NoSuchFile:
                if not self._files.exists(_path(path)):
                    raise
                raise ToolError(f"The path {path} is not a file.") from None


class MunimentAsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for asyncio. Each command runs in a thread, so it may be used from any event loop."""

    def __init__(
        self,
        session: SessionClient,
        *,
        root: str | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = MunimentMemoryTool(session, root=root)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """A file with line numbers, or what is in a directory."""
        return await asyncio.to_thread(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file."""
        return await asyncio.to_thread(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once."""
        return await asyncio.to_thread(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines below a line."""
        return await asyncio.to_thread(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a directory with all that is in it."""
        return await asyncio.to_thread(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename or move a file or a directory."""
        return await asyncio.to_thread(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """Delete all files, for the host: no command of the model does. ToolError: some are below the taint."""
        return await asyncio.to_thread(self._tool.clear_all_memory)


@contextmanager
def _worded(path: str, *, missing: str = "The path {} does not exist. Please provide a valid path.") -> Iterator[None]:
    """Turns errors of files into those of the tool."""
    try:
        yield
    except NoSuchFile:
        raise ToolError(missing.format(path)) from None
    except FileExists:
        raise ToolError(f"File {path} already exists") from None
    except FileError as error:
        raise ToolError(str(error)) from None


def _require_texts(**parameters: object) -> None:
    """Check what a model left out, or gave as something else: the SDK does not."""
    for name, value in parameters.items():
        if not isinstance(value, str):
            raise ToolError(f"Invalid `{name}` parameter: it must be a string")


def _require_integers(name: str, *values: object) -> None:
    if not all(isinstance(value, int) for value in values):
        raise ToolError(
            f"Invalid `{name}` parameter: it must be {'an integer' if len(values) == 1 else 'two integers'}"
        )


def _path(given: str) -> str:
    """The path below the root. Empty for `/memories` itself."""
    _require_texts(path=given)
    if given != MEMORIES and not given.startswith(f"{MEMORIES}/"):
        raise ToolError(f"Path must start with {MEMORIES}, got: {given}")
    try:
        return normalized(given.removeprefix(MEMORIES))
    except InvalidPath:
        raise ToolError(f"Path {given} would escape {MEMORIES} directory") from None


def _numbered(path: str, file: File, view_range: Sequence[int] | None) -> str:
    first, last = view_range if view_range and len(view_range) == 2 else (1, -1)
    _require_integers("view_range", first, last)
    first = max(first, 1)
    return f"Here's the content of {path} with line numbers:\n{_with_numbers(file.lines(first, last), first)}"


def _with_numbers(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))


def _is_hidden(path: str) -> bool:
    return any(name.startswith(".") or name == "node_modules" for name in path.split("/"))


def _listed(shown: str, path: str, files: Sequence[File]) -> str:
    whole = Entry(path, is_directory=True, size=sum(file.size for file in files))
    lines = [f"{_size(whole.size)}\t{shown}"]
    for entry in entries(files, path, DEPTH):
        below = entry.path[len(path) :].lstrip("/")
        lines.append(f"{_size(entry.size)}\t{shown.rstrip('/')}/{below}{'/' if entry.is_directory else ''}")
    return "\n".join((_HEADER.format(shown), *lines))


def _size(count: int) -> str:
    """A number of bytes as `ls -h` writes it, such as 1.5K."""
    size, unit = float(count), 0
    while size >= 1024 and unit < 3:
        size, unit = size / 1024, unit + 1
    return f"{int(size) if size == int(size) else f'{size:.1f}'}{'BKMG'[unit]}"


def _uncovered(revealed: Sequence[str]) -> str:
    if not revealed:
        return ""
    named = ", ".join(f"{MEMORIES}/{path}" for path in revealed[:5]) + (" and others" if len(revealed) > 5 else "")
    return f". An earlier version of {named}, which was written at a lower classification, is visible again."
