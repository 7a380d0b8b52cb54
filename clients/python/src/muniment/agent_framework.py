"""A store of files for Microsoft's Agent Framework. Requires the extra `muniment[agent-framework]`.

`MunimentFileStore` is an `agent_framework.AgentFileStore`, for its `FileAccessProvider`. The file `trips/graz.md` is
the memory `muniment:files/trips/graz.md`: see `muniment.files`. It behaves like the framework's own stores, except for
this:

- Levels apply. Files above the session's taint do not exist, and a write is made at the taint. Deleting a file that
  exists only below the taint raises ValueError, whose text the provider gives to the model.
- A file that was read through this store is replaced only if no one else has changed it since; otherwise ValueError. A
  search does not count.
- Paths are case-sensitive. A directory exists as long as a file is below it, so `create_directory` does nothing.
- Texts are at most 128 KiB.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from agent_framework import AgentFileStore, FileSearchResult, FileStoreEntry

from muniment.files import File, FileError, FileExists, FileView, NoSuchFile, normalized
from muniment.session import SessionClient


class MunimentFileStore(AgentFileStore):
    """The files of one session: those of its agent, up to the session's taint.

    It does not close the session. Calls run in threads, so it may be used from any event loop.
    """

    def __init__(self, session: SessionClient, *, root: str | None = None) -> None:
        self._session = session
        self._root = root
        self._files = FileView(session, root=root)
        self._seen: dict[str, File] = {}
        """The versions that were read or written last, by path."""

    async def write(self, path: str, content: str, *, overwrite: bool = True) -> None:
        """Create or replace a file. FileExistsError: there is one, and *overwrite* is false."""
        with _translated(path):
            await asyncio.to_thread(self._write if overwrite else self._create, normalized(path), content)

    async def read(self, path: str) -> str | None:
        """The content of a file, or None if it does not exist."""
        with _translated(path):
            return await asyncio.to_thread(self._read, normalized(path))

    async def delete(self, path: str) -> bool:
        """Delete a file. False: it does not exist."""
        with _translated(path):
            return await asyncio.to_thread(self._delete, normalized(path))

    async def list_children(self, directory: str = "") -> list[FileStoreEntry]:
        """What is in a directory, directories first."""
        with _translated(directory):
            try:
                found = await asyncio.to_thread(self._files.ls, directory)
            except NoSuchFile:
                return []
        return [
            FileStoreEntry(
                entry.path.rpartition("/")[2], FileStoreEntry.DIRECTORY if is_directory else FileStoreEntry.FILE
            )
            for is_directory in (True, False)
            for entry in found
            if entry.is_directory == is_directory
        ]

    async def file_exists(self, path: str) -> bool:
        """Whether a file is at the path."""
        return await self._unseen().read(path) is not None

    async def search(
        self, directory: str, regex_pattern: str, glob_pattern: str | None = None, *, recursive: bool = False
    ) -> list[FileSearchResult]:
        """The lines that match a regular expression, in the files that match a pattern."""
        return await super(MunimentFileStore, self._unseen()).search(
            directory, regex_pattern, glob_pattern, recursive=recursive
        )

    async def find_matching_files(
        self, directory: str, regex_pattern: str, glob_pattern: str | None = None, *, recursive: bool = False
    ) -> list[str]:
        """The files that a search reads: all below the directory, listed at once. It matches them itself."""
        with _translated(directory):
            above = normalized(directory)
            below = await asyncio.to_thread(self._files.walk, directory)
        names = (file.path.removeprefix(f"{above}/") if above else file.path for file in below)
        return [name for name in names if recursive or "/" not in name]

    async def create_directory(self, path: str) -> None:
        """Does nothing: a directory exists as long as a file is below it."""
        with _translated(path):
            normalized(path)

    def _unseen(self) -> MunimentFileStore:
        """The same files. What is read through it does not count as read: no model has seen it whole."""
        return MunimentFileStore(self._session, root=self._root)

    def _write(self, path: str, content: str) -> None:
        if file := self._seen.get(path):
            written = self._files.write(path, content, tags=file.tags, expire_time=file.expire_time, etag=file.etag)
        else:
            written = self._files.write(path, content)
        self._seen[path] = written

    def _create(self, path: str, content: str) -> None:
        self._seen[path] = self._files.create(path, content)

    def _read(self, path: str) -> str | None:
        self._seen.pop(path, None)
        try:
            file = self._files.read(path)
        except NoSuchFile:
            return None
        self._seen[path] = file
        return file.content

    def _delete(self, path: str) -> bool:
        self._seen.pop(path, None)
        try:
            self._files.delete(path, etag=self._files.read(path).etag)
        except NoSuchFile:
            return False
        return True


@contextmanager
def _translated(path: str) -> Iterator[None]:
    """Turns errors of files into those that the framework shows to a model."""
    try:
        yield
    except FileExists:
        raise FileExistsError(f"File already exists: {path!r}") from None
    except FileError as error:
        raise ValueError(str(error)) from None
