"""Reads postmaster.pid, in which the server of a data directory describes itself."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from psycopg.conninfo import make_conninfo

from muniment_server.embedded_postgres.account import name_of
from muniment_server.embedded_postgres.directory import SOCKET
from muniment_server.embedded_postgres.errors import UnusableDirectory

_SOCKET_LINE = 4
_STATUS_LINE = 7


@dataclass(frozen=True, slots=True)
class Postmaster:
    """A server as its pid file describes it. The file remains if the server is killed."""

    pid: int
    written_ns: int
    """When the file was last written: a pid may be used again within the same second."""
    sockets: Path | None
    """The directory of its socket. None while the server starts."""
    status: str
    """`starting`, `ready`, which accepts connections, or `stopping`."""


def pidfile_of(data: Path) -> Path:
    """The path of the pid file in *data*."""
    return data / "postmaster.pid"


def postmaster_of(data: Path) -> Postmaster | None:
    """The server that the pid file of *data* describes. None if there is no file, or it is truncated."""
    try:
        with pidfile_of(data).open(encoding="utf-8", errors="surrogateescape") as file:
            written_ns, text = os.fstat(file.fileno()).st_mtime_ns, file.read()
    except FileNotFoundError:
        return None
    lines = dict(enumerate(text.splitlines()))
    try:
        pid = abs(int(lines.get(0, "")))  # negative for a single-user server
    except ValueError:
        return None
    sockets = Path(lines[_SOCKET_LINE]) if lines.get(_SOCKET_LINE) else None
    return Postmaster(
        pid=pid,
        written_ns=written_ns,
        sockets=sockets,
        status=lines.get(_STATUS_LINE, "").strip(),
    )


def conninfo_of(sockets: Path, *, account: str, user: str, dbname: str) -> str:
    """A libpq conninfo for the socket. It accepts only a server that runs as *account*."""
    return make_conninfo(host=str(sockets), port=5432, user=user, dbname=dbname, requirepeer=account)


def conninfo_of_running(directory: Path, *, user: str, dbname: str = "muniment") -> str | None:
    """The conninfo of the server that is running on *directory*. None if none is running.

    For commands that the same operating-system user runs beside a server. Raises UnusableDirectory for a user without
    access.
    """
    data = directory.absolute() / "data"
    try:
        running = postmaster_of(data)
        if running is None or running.sockets is None or not _listens(running.sockets / SOCKET):
            return None
        account = name_of(data.stat().st_uid)
    except PermissionError as error:
        raise UnusableDirectory(f"{error.filename or data} is closed to this user: run as the server's user") from error
    return conninfo_of(running.sockets, account=account, user=user, dbname=dbname)


def _listens(path: Path) -> bool:
    """Whether a process listens on the socket *path*. None does if a killed server left the file."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
    return True
