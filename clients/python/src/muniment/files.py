"""Memories as files: what the adapters for memory tools that work on files are built on.

A file is a keyed memory of the session's agent: the file `trips/graz.md` is the memory `muniment:files/trips/graz.md`,
with the same content. A directory exists as long as a file is below it. All adapters show the same files, and other
memories are neither seen nor changed: those that a model saved by another tool, and those whose key is not a normalized
path, such as `muniment:files/a/../b`.

The levels apply as everywhere: files above the session's taint do not exist; a write is made at the taint, and so
shadows a lower version; a file that exists only below the taint can be overwritten, but neither deleted nor renamed.
Nothing hides a file that the session may read.

Every change is made to the version that was read for it, or not at all.

`ls`, `glob` and `grep` read all files below a directory, because the server lists memories with their content.

FileError                   the base class: its text tells a model what is wrong, and what to do
├── InvalidPath             leaves the root, or has a name that a key must not contain
├── NoSuchFile              no file at the path, and none below it
├── FileExists              something is at the path already
├── FileChanged             somebody else changed the file meanwhile: read it again
├── LowerFile               only lower versions are visible, so it can be neither deleted nor renamed
├── NoSuchText              the text to replace does not occur
├── AmbiguousText           the text to replace occurs more than once: see `lines`
├── NoSuchLine              the file has fewer lines: see `last`
└── InvalidContent          over 128 KiB, or with a character that cannot be stored
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from muniment._blocking import require_blocking
from muniment._file_contents import only_line_of, require_storable, with_lines
from muniment._file_errors import (
    AmbiguousText,
    FileChanged,
    FileError,
    FileExists,
    InvalidContent,
    InvalidPath,
    LowerFile,
    NoSuchFile,
    NoSuchLine,
    NoSuchText,
)
from muniment._file_paths import MAX_KEY_CHARS, is_path, key_prefix, matches, normalized, require_short
from muniment.errors import EtagStale, InvalidArgument, MemoryExists, MemoryNotFound, WriteLevelMismatch
from muniment.session import SessionClient
from muniment.values import Classification, Integrity, Memory, NewerBelow, NewMemory

__all__ = [
    "ABSENT",
    "AmbiguousText",
    "Entry",
    "File",
    "FileChanged",
    "FileError",
    "FileExists",
    "FileView",
    "InvalidContent",
    "InvalidPath",
    "LowerFile",
    "Match",
    "NoSuchFile",
    "NoSuchLine",
    "NoSuchText",
    "entries",
    "matches",
    "normalized",
]

MAX_PAGE_SIZE = 250
MAX_TAGS = 32
ABSENT = "absent"
"""The etag with which a save only creates."""
_EMPTY = "empty-file"
"""The tag of an empty file. A memory has at least one byte: that of this file is a line break."""


@dataclass(frozen=True, slots=True)
class File:
    """One version of a file."""

    path: str = field(repr=False)
    content: str = field(repr=False)
    classification: Classification
    etag: str
    create_time: datetime
    update_time: datetime
    tags: tuple[str, ...] = field(repr=False)
    expire_time: datetime | None
    newer_below: NewerBelow | None = None
    """A newer version at a lower level."""
    integrity: Integrity = Integrity.UNTRUSTED

    @property
    def size(self) -> int:
        """The number of bytes in UTF-8."""
        return len(self.content.encode())

    def lines(self, first: int = 1, last: int = -1) -> list[str]:
        """The lines from *first*, counted from 1, to *last*, of which -1 is the end. Only line feeds end a line."""
        lines = self.content.split("\n")
        return lines[max(first, 1) - 1 : len(lines) if last == -1 else max(last, 0)]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, or a directory with all that is below it."""

    path: str = field(repr=False)
    is_directory: bool
    size: int


@dataclass(frozen=True, slots=True)
class Match:
    """One line in which a text occurs, counted from 1."""

    path: str = field(repr=False)
    line: int
    text: str = field(repr=False)


class FileView:
    """The files of one session: those of its agent, up to the session's taint.

    Views with another *root*, a name without a slash, have other files: those under `muniment:files:ROOT/`. Paths are
    relative to the root; a slash at the beginning does no harm. Texts of errors show them behind *shown*, such as
    `/memories/`. Safe to use from several threads. Raises FileError, and the errors of `muniment.errors`, for
    example if the session is closed or a quota is exceeded.
    """

    def __init__(self, session: SessionClient, *, root: str | None = None, shown: str = "") -> None:
        require_blocking(session)
        self._session = session
        self._prefix = key_prefix("files", root)
        self._shown = shown

    def read(self, path: str) -> File:
        """The file. NoSuchFile: none is visible, though there may be a directory."""
        normalized(path, is_file=True)
        with self._explained(path):
            return self._file(self._session.get_memory(self._key(path)))

    def walk(self, directory: str = "") -> list[File]:
        """All files below a directory, by path. None if there is no such directory."""
        prefix = f"{self._key(directory)}/" if normalized(directory) else self._prefix
        with self._explained(directory):
            below = self._session.list_memories(key_prefix=prefix, page_size=MAX_PAGE_SIZE)
            files = map(self._file, below.all(restart_on_taint_change=True))
            # Calls normalize their path, so with any other path they would reach another memory.
            return [file for file in files if is_path(file.path)]

    def ls(self, directory: str = "", *, depth: int = 1) -> list[Entry]:
        """What is in a directory, by path, down to a *depth*. NoSuchFile: there is no such directory."""
        files, above = self.walk(directory), normalized(directory)
        if above and not files:
            raise self._no_such(directory)
        return entries(files, above, depth)

    def write(
        self,
        path: str,
        content: str,
        *,
        tags: Iterable[str] = (),
        expire_time: datetime | None = None,
        etag: str | None = None,
    ) -> File:
        """Create or replace a file, its tags and its expiry. With *etag*, only that version; otherwise FileChanged."""
        new = self.memory(path, content, tags=tags, expire_time=expire_time, etag=etag)
        with self._explained(path):
            return self._file(
                self._session.save_memory(new.key, new.content, tags=new.tags, expire_time=expire_time, etag=etag)
            )

    def memory(
        self,
        path: str,
        content: str,
        *,
        tags: Iterable[str] = (),
        expire_time: datetime | None = None,
        etag: str | None = None,
    ) -> NewMemory:
        """What `write` saves: for a caller that saves more in the same transaction."""
        normalized(path, is_file=True)
        require_storable(self._named(path), content)
        tags = list(tags)
        if not content and len({*tags, _EMPTY}) > MAX_TAGS:
            raise InvalidContent(
                f"{self._named(path)} cannot be empty, because it has {MAX_TAGS} tags: keep a line break."
            )
        if content:
            return NewMemory(self._key(path), content, tags, expire_time, etag)
        return NewMemory(self._key(path), "\n", [*tags, _EMPTY], expire_time, etag)

    def create(self, path: str, content: str) -> File:
        """Create a file. FileExists: a file is visible at the path."""
        try:
            return self.write(path, content, etag=ABSENT)
        except FileChanged:
            raise FileExists(f"{self._named(path)} already exists.") from None

    def replace(self, path: str, old: str, new: str) -> tuple[File, int]:
        """Replace a text that occurs once. Returns the file, and the line in which the change begins.

        An edit keeps the tags of the file and its expiry.
        """
        line = 0

        def change(content: str) -> str:
            nonlocal line
            line = only_line_of(self._named(path), content, old)
            return content.replace(old, new)

        return self._edit(path, change), line

    def insert(self, path: str, line: int, text: str) -> File:
        """Insert lines below a *line*; 0 is the beginning. Afterwards the file ends with a line break."""
        return self._edit(path, lambda content: with_lines(self._named(path), content, line, text))

    def delete(self, path: str, *, etag: str | None = None) -> list[str]:
        """Delete a file, or all files below a directory. Returns the paths at which a lower version is visible again.

        LowerFile: it is a lower file, or has one below it. Then nothing was deleted. With *etag*, only that version of
        a file is deleted; otherwise FileChanged.
        """
        files = self._at(path)
        if not files:
            raise self._no_such(path)
        if etag is not None and [file.etag for file in files] != [etag]:
            raise self._changed(path)
        return self._delete(files)

    def clear(self) -> list[str]:
        """Delete all files. Returns the paths, and raises LowerFile, as `delete` does."""
        return self._delete(self.walk())

    def rename(self, path: str, new_path: str) -> list[str]:
        """Rename a file, or all files below a directory. Returns the old paths at which a lower version is visible now.

        FileExists: something is at the new path. LowerFile: it is a lower file, or has one below it. Then nothing was
        renamed. Each file is renamed by itself: if another conversation changes one meanwhile, the error says how many
        were renamed before it, and they stay renamed.
        """
        old, new = normalized(path, is_file=True), normalized(new_path, is_file=True)
        if old == new or self.exists(new_path):
            raise FileExists(f"{self._named(new)} already exists.")
        if new.startswith(f"{old}/"):
            raise InvalidPath(f"{self._named(old)} cannot be moved into itself.")
        files, revealed = self._at(path), []
        if not files:
            raise self._no_such(path)
        self._require_own(files, "renamed")
        longest = max((new + file.path.removeprefix(old) for file in files), key=len)
        if len(self._key(longest)) > MAX_KEY_CHARS:
            raise InvalidPath(f"{self._named(longest)} is no possible path: it is too long. Nothing was renamed.")
        for number, file in enumerate(files):
            target = new + file.path.removeprefix(old)
            with _after(number, len(files), "renamed"), self._explained(file.path, "renamed", new_path=target):
                if self._session.rename_memory(self._key(file.path), self._key(target), etag=file.etag).revealed:
                    revealed.append(file.path)
        return revealed

    def exists(self, path: str) -> bool:
        """Whether a file or a directory is at the path."""
        return not normalized(path) or bool(self._at(path))

    def glob(self, pattern: str) -> list[str]:
        """The paths of all files that match, where `*` and `?` stand for anything but a slash, `**` for anything.

        InvalidPath: the pattern has more than 256 characters.
        """
        return [file.path for file in self._matching(pattern)]

    def grep(self, text: str, pattern: str = "**") -> list[Match]:
        """The lines in which *text* occurs, in the files that match a pattern.

        It is no regular expression, because one that a model writes may take forever. InvalidPath: the pattern has more
        than 256 characters.
        """
        return [
            Match(file.path, number, line)
            for file in self._matching(pattern)
            for number, line in enumerate(file.lines(), 1)
            if text in line
        ]

    def _matching(self, pattern: str) -> list[File]:
        """The files that match a pattern, of those below the directory that it names before its first wildcard."""
        require_short(pattern)
        directory = re.split(r"[*?]", pattern, maxsplit=1)[0].rpartition("/")[0]
        return [file for file in self.walk(directory) if matches(pattern, file.path)]

    def _edit(self, path: str, change: Callable[[str], str]) -> File:
        file = self.read(path)
        return self.write(path, change(file.content), tags=file.tags, expire_time=file.expire_time, etag=file.etag)

    def _at(self, path: str) -> list[File]:
        """The file at the path, or all files below it."""
        normalized(path, is_file=True)
        try:
            return [self.read(path)]
        except NoSuchFile:
            return self.walk(path)

    def _delete(self, files: Sequence[File]) -> list[str]:
        self._require_own(files, "deleted")
        revealed = []
        for number, file in enumerate(files):
            with _after(number, len(files), "deleted"), self._explained(file.path, "deleted"):
                if self._session.delete_memory(self._key(file.path), etag=file.etag):
                    revealed.append(file.path)
        return revealed

    def _require_own(self, files: Iterable[File], done: str) -> None:
        """Find out before anything is done whether a file has another label. The server decides for each."""
        own = self._session.get_session()
        lower = [file.path for file in files if (file.classification, file.integrity) != (own.taint, own.integrity)]
        if lower:
            raise self._lower(lower, done)

    def _key(self, path: str) -> str:
        return f"{self._prefix}{normalized(path)}"

    def _file(self, memory: Memory) -> File:
        is_empty = _EMPTY in memory.tags and memory.content == "\n"
        return File(
            path=memory.key.removeprefix(self._prefix),
            content="" if is_empty else memory.content,
            classification=memory.classification,
            etag=memory.etag,
            create_time=memory.create_time,
            update_time=memory.update_time,
            tags=tuple(tag for tag in memory.tags if not (is_empty and tag == _EMPTY)),
            expire_time=memory.expire_time,
            newer_below=memory.newer_below,
            integrity=memory.integrity,
        )

    def _named(self, path: str) -> str:
        return f"{self._shown}{normalized(path)}"

    def _no_such(self, path: str) -> NoSuchFile:
        return NoSuchFile(f"{self._named(path)} does not exist.")

    def _changed(self, path: str) -> FileChanged:
        return FileChanged(f"{self._named(path)} was changed by somebody else meanwhile: read it again.")

    def _lower(self, paths: Sequence[str], done: str) -> LowerFile:
        named = ", ".join(map(self._named, paths[:5])) + (" and others" if len(paths) > 5 else "")
        return LowerFile(
            f"{named} cannot be {done} from this conversation, because it was written at a lower classification. It "
            "stays readable. To change what this conversation sees, edit it: conversations at the lower classification "
            "keep their version."
        )

    @contextmanager
    def _explained(self, path: str, done: str = "changed", *, new_path: str = "") -> Iterator[None]:
        """Turns the server's refusals into errors that a model understands."""
        try:
            yield
        except MemoryNotFound:
            raise self._no_such(path) from None
        except MemoryExists:
            raise FileExists(f"{self._named(new_path or path)} already exists.") from None
        except WriteLevelMismatch:
            raise self._lower([path], done) from None
        except EtagStale:
            raise self._changed(path) from None
        except InvalidArgument as error:
            if not any(each.field in ("key", "key_prefix", "new_key") for each in error.violations):
                raise
            raise InvalidPath(
                f"{self._named(new_path or path)} is no possible path: it is too long, ends in a space, or has a "
                "character that is neither a letter, a digit, a sign nor a space."
            ) from None


@contextmanager
def _after(number: int, total: int, done: str) -> Iterator[None]:
    """Adds to an error how many files were changed before it, if any."""
    try:
        yield
    except FileError as error:
        if not number:
            raise
        raise type(error)(f"{error} {number} of {total} files were {done} before that, and stay so.") from None


def entries(files: Iterable[File], above: str, depth: int) -> list[Entry]:
    """What is in the directory *above*, by path, down to a depth, of which 1 is what is directly in it."""
    sizes: dict[tuple[str, bool], int] = {}
    start = len(above) + 1 if above else 0
    for file in files:
        names = file.path[start:].split("/")
        for level in range(1, min(len(names), depth) + 1):
            place = (file.path[:start] + "/".join(names[:level]), level < len(names))
            sizes[place] = sizes.get(place, 0) + file.size
    return [Entry(path, is_directory, size) for (path, is_directory), size in sorted(sizes.items(), key=_place)]


def _place(item: tuple[tuple[str, bool], int]) -> list[str]:
    """Where an entry comes in a list: a directory right before what is in it."""
    return item[0][0].split("/")
