"""Writes a file that only its owner can read, completely or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from muniment.cli.failures import Failure


def require_free(path: Path, *, force: bool) -> None:
    """Raise Failure if *path* exists and must not be replaced, or its folder does not exist."""
    if not path.parent.is_dir():
        raise Failure(f"{path} cannot be written: there is no folder {path.parent}", "create it, or name another file")
    if not path.exists() and not path.is_symlink():
        return
    if not force:
        raise Failure(f"{path} already exists", "name another file, or replace this one with --force")
    if not path.is_file():
        raise Failure(f"{path} is not a regular file", "name another; -o - writes to standard output")


def write_whole(path: Path, lines: Iterable[str], *, force: bool) -> None:
    """Write *lines* for the owner alone (mode 0600). *path* is unchanged until everything is on disk."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:  # which would name the draft
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as opened:
            opened.writelines(lines)
            opened.flush()
            os.fsync(opened.fileno())
        require_free(path, force=force)
        draft.replace(path)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
