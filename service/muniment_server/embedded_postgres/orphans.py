"""Cleans up after an earlier server: processes that are still running, and lock files of processes that are not.

Only on Linux, with /proc. On other systems, Postgres itself refuses a data directory that is in use.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from muniment_server.embedded_postgres.directory import SOCKET
from muniment_server.embedded_postgres.errors import DirectoryInUse
from muniment_server.embedded_postgres.postmaster import Postmaster, pidfile_of, postmaster_of

_log = logging.getLogger(__name__)
_PROC = Path("/proc")
_FAST_SECONDS = 20.0
_IMMEDIATE_SECONDS = 10.0
_POLL_SECONDS = 0.02


def take_over(data: Path, sockets: Path) -> None:
    """Remove everything of an earlier server on *data* that hinders a new one. The caller holds the lock."""
    if not (_PROC / "self").exists():
        return
    if pidfile_of(data).exists():
        _clear(data)
    for name in (SOCKET, f"{SOCKET}.lock"):
        (sockets / name).unlink(missing_ok=True)


def _clear(data: Path) -> None:
    """Stop the processes on *data*, then remove a pid file that would keep Postgres from starting.

    A pid file that names no process stays: in it, Postgres finds the shared memory of sessions that are invisible here.
    """
    earlier = postmaster_of(data)
    if earlier is not None and _serves(earlier.pid, data):
        _stop_postmaster(earlier, data)
    _stop_backends(data)
    if earlier is None or _exists(earlier.pid):
        pidfile_of(data).unlink(missing_ok=True)  # truncated, or another program now has that pid


def _stop_postmaster(postmaster: Postmaster, data: Path) -> None:
    _log.warning("stopping Postgres %d on %s, which an earlier server left running", postmaster.pid, data)
    steps = (
        (signal.SIGINT, _FAST_SECONDS),
        (signal.SIGQUIT, _IMMEDIATE_SECONDS),
        (signal.SIGKILL, _IMMEDIATE_SECONDS),
    )
    for step, seconds in steps:
        _signal([postmaster.pid], step)
        if _wait_while(lambda: _serves(postmaster.pid, data), seconds):
            return
    raise DirectoryInUse(f"Postgres {postmaster.pid} on {data} does not stop: kill it, then start again")


def _stop_backends(data: Path) -> None:
    """Stop the sessions of a postmaster that was killed: a busy session does not notice that."""
    for step in (signal.SIGQUIT, signal.SIGKILL):
        _signal(_processes_on(data), step)
        if _wait_while(lambda: _processes_on(data), _IMMEDIATE_SECONDS):
            return
    raise DirectoryInUse(f"Postgres processes {_processes_on(data)} on {data} do not stop: kill them, then start again")


def _serves(pid: int, data: Path) -> bool:
    """Whether process *pid* is the server of *data*. Raises DirectoryInUse if that is unknown."""
    if not _is_postgres(pid):
        return False
    command = _read(pid, "cmdline").split(b"\0")
    if os.fsencode(data) in command:
        return True
    try:
        return _works_in(pid, data)
    except PermissionError:
        raise DirectoryInUse(
            f"process {pid}, named in {pidfile_of(data)}, is a Postgres that may be serving {data}: stop it, "
            "or remove the file if it is not"
        ) from None


def _processes_on(data: Path) -> list[int]:
    """The Postgres processes on *data* that are visible: the working directory of each is *data*."""
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())
    return [pid for pid in pids if _is_postgres(pid) and _visibly_works_in(pid, data)]


def _visibly_works_in(pid: int, data: Path) -> bool:
    try:
        return _works_in(pid, data)
    except PermissionError:  # the process belongs to another user, or root has no CAP_SYS_PTRACE
        return False


def _works_in(pid: int, data: Path) -> bool:
    try:
        return (_PROC / str(pid) / "cwd").samefile(data)
    except (FileNotFoundError, ProcessLookupError):
        return False


def _is_postgres(pid: int) -> bool:
    """Whether *pid* is a running Postgres, not a zombie."""
    _, _, rest = _read(pid, "stat").partition(b" (postgres) ")
    return bool(rest) and not rest.startswith((b"Z", b"X"))


def _exists(pid: int) -> bool:
    return (_PROC / str(pid)).exists()


def _read(pid: int, name: str) -> bytes:
    """A file of process *pid* in /proc. Empty if the process has ended."""
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _wait_while(busy: Callable[[], object], seconds: float) -> bool:
    """Wait until *busy* returns a false value. Returns False if it does not within *seconds*."""
    end = time.monotonic() + seconds
    while busy():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_SECONDS)
    return True
