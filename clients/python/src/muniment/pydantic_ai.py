"""A store for the memory of Pydantic AI's harness. Requires the extra `muniment[pydantic-ai]`.

`MunimentMemoryStore` is a `pydantic_ai_harness.memory.MemoryStore`, and can be searched. The file `notes/MEMORY.md` is
the memory `muniment:files/notes/MEMORY.md`: see `muniment.files`. The version of a file is its etag. It behaves like
the harness's own stores, except for this:

- Levels apply. Files above the session's taint do not exist, and a write is made at the taint. A file that exists only
  below the taint cannot be deleted: the model learns why, by `ModelRetry`.
- What a write did is recorded with it in one transaction, for a day, so that it is not done twice. A deletion is
  recorded after it was made. The version that a repeated write reports is the current one.
- A search finds words in any form, and compares embeddings if the server has an embedder. Other adapters' files whose
  names the harness does not allow are left out, because its tool refuses a whole answer that has one.
- Files are at most 128 KiB, less the 200 bytes of the record. Nothing else is recorded with a write (`write_metadata`).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from pydantic_ai import ModelRetry
from pydantic_ai_harness.memory import (
    MemoryConflictError,
    MemoryFile,
    MemoryMutation,
    MemoryOperation,
    MemoryOperationConflictError,
    MemorySearchMatch,
    MemorySearchResult,
)

from muniment._file_paths import key_prefix
from muniment._json import object_of
from muniment.errors import EtagStale, InvalidArgument, MemoryNotFound
from muniment.files import (
    ABSENT,
    File,
    FileChanged,
    FileError,
    FileView,
    InvalidContent,
    InvalidPath,
    NoSuchFile,
    normalized,
)
from muniment.session import SessionClient
from muniment.values import NewMemory

MAX_RESULTS = 100
MAX_QUERY_CHARS = 1024
_ALLOWED_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
"""The names of files that the harness accepts in the result of a search."""
KEPT = timedelta(days=1)
"""How long the record of an operation is kept."""


class MunimentMemoryStore:
    """The files of one session: those of its agent, up to the session's taint.

    It does not close the session. Calls run in threads, so it may be used from any event loop.
    """

    def __init__(self, session: SessionClient, *, root: str | None = None) -> None:
        self._session = session
        self._files = FileView(session, root=root)
        self._prefix = key_prefix("files", root)
        self._operations = key_prefix("file-operations", root)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    async def read(self, path: str, *, max_chars: int) -> MemoryFile | None:
        """The file, or None if it does not exist."""
        _require_plain(path)
        file = await asyncio.to_thread(self._read, path)
        if file is None:
            return None
        content = file.content[:max_chars]
        return MemoryFile(content, file.etag, operation_id=None, truncated=len(content) < len(file.content))

    async def get_operation(self, operation: MemoryOperation) -> MemoryMutation | None:
        """What an operation did before. None: it was not made, or too long ago."""
        return await asyncio.to_thread(self._replayed, operation)

    async def write(
        self, path: str, content: str, *, expected_version: str | None, operation: MemoryOperation | None = None
    ) -> MemoryMutation:
        """Create or replace a file. MemoryConflictError: it has another version."""
        _require_plain(path)
        with _for_the_model():
            return await asyncio.to_thread(self._write, path, content, expected_version, operation)

    async def delete(
        self, path: str, *, expected_version: str | None, operation: MemoryOperation | None = None
    ) -> MemoryMutation:
        """Delete a file. MemoryConflictError: it has another version."""
        _require_plain(path)
        with _for_the_model():
            return await asyncio.to_thread(self._delete, path, expected_version, operation)

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        """The paths that begin with a prefix."""
        if prefix:
            _require_plain(prefix.removesuffix("/"))
        directory = prefix.rpartition("/")[0]
        files = await asyncio.to_thread(self._files.walk, directory)
        return [file.path for file in files if file.path.startswith(prefix)][:limit]

    async def search(
        self, prefix: str, query: str, *, limit: int, max_files: int, max_chars: int, max_file_chars: int
    ) -> MemorySearchResult:
        """The files directly below a prefix that match a query, best first. The server bounds what it reads."""
        if prefix:
            _require_plain(prefix.removesuffix("/"))
        if not query.strip() or min(limit, max_files, max_chars, max_file_chars) <= 0:
            return MemorySearchResult(matches=[], scanned=0, truncated=False)
        found = await asyncio.to_thread(
            self._session.search_memories,
            query.strip()[:MAX_QUERY_CHARS],
            key_prefix=f"{self._prefix}{prefix}",
            max_results=MAX_RESULTS,
        )
        below = [each for each in found if _ALLOWED_NAME.fullmatch(each.memory.key, len(self._prefix) + len(prefix))]
        matches: list[MemorySearchMatch] = []
        for result in below[:limit]:
            path = result.memory.key.removeprefix(self._prefix)
            room = max_chars - len(path.removeprefix(prefix))
            if room <= 0:
                break
            matches.append(MemorySearchMatch(path, result.snippet[:room], result.relevance))
            max_chars = room - len(matches[-1].snippet)
        return MemorySearchResult(matches, scanned=len(below), truncated=len(matches) < len(below))

    def _read(self, path: str) -> File | None:
        try:
            return self._files.read(path)
        except NoSuchFile:
            return None

    def _write(
        self, path: str, content: str, expected: str | None, operation: MemoryOperation | None
    ) -> MemoryMutation:
        if operation and (made := self._replayed(operation)):
            return made
        before = self._read(path) if expected else None
        tags, expire_time = (before.tags, before.expire_time) if before else ((), None)
        saved = [self._files.memory(path, content, tags=tags, expire_time=expire_time, etag=expected or ABSENT)]
        if operation:
            saved.append(self._record(operation, path, existed=expected is not None, etag=ABSENT))
        try:
            file = self._session.save_memories(saved)[0]
        except EtagStale:
            if operation and (made := self._replayed(operation)):
                return made
            raise MemoryConflictError(f"memory path {path!r} has another version") from None
        except InvalidArgument as error:
            if not any(each.field == "memories" for each in error.violations):
                raise
            raise InvalidContent(f"{path} would be too large: split it.") from None
        return MemoryMutation(file.etag, replayed=False, existed=expected is not None)

    def _delete(self, path: str, expected: str | None, operation: MemoryOperation | None) -> MemoryMutation:
        if operation and (made := self._replayed(operation)):
            return made
        file = self._read(path)
        if (file.etag if file else None) != expected:
            raise MemoryConflictError(f"memory path {path!r} has another version")
        if file:
            self._files.delete(path, etag=file.etag)
        if operation:
            record = self._record(operation, path, existed=file is not None, deleted=True)
            self._session.save_memories([record])
        return MemoryMutation(None, replayed=False, existed=file is not None)

    def _record(
        self, operation: MemoryOperation, path: str, *, existed: bool, deleted: bool = False, etag: str | None = None
    ) -> NewMemory:
        fields = {"fingerprint": operation.fingerprint, "path": path, "existed": existed, "deleted": deleted}
        expire_time = datetime.now(UTC) + KEPT
        return NewMemory(self._key_of(operation), json.dumps(fields), expire_time=expire_time, etag=etag)

    def _replayed(self, operation: MemoryOperation) -> MemoryMutation | None:
        try:
            record = object_of(self._session.get_memory(self._key_of(operation)).content) or {}
        except MemoryNotFound:
            return None
        if record.get("fingerprint") != operation.fingerprint:
            raise MemoryOperationConflictError(f"operation id {operation.id!r} was reused with different arguments")
        file = None if record["deleted"] else self._read(record["path"])
        version = None if record["deleted"] else file.etag if file else "deleted"
        return MemoryMutation(version, replayed=True, existed=record["existed"])

    def _key_of(self, operation: MemoryOperation) -> str:
        return f"{self._operations}{operation.id}"


def _require_plain(path: str) -> None:
    """Check that a path is the only way to write it. Raises ValueError, as the harness's own stores do."""
    try:
        if normalized(path, is_file=True) == path:
            return
    except InvalidPath:
        pass
    raise ValueError(f"invalid memory path: {path!r}")


@contextmanager
def _for_the_model() -> Iterator[None]:
    """Turns errors of files into those that the harness shows to a model."""
    try:
        yield
    except FileChanged as error:
        raise MemoryConflictError(str(error)) from None
    except FileError as error:
        raise ModelRetry(str(error)) from None
