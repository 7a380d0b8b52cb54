"""The embedded Postgres, which the process that uses it starts, watches and stops."""

from __future__ import annotations

import contextlib
import logging
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from muniment_server.embedded_postgres import child, configuration
from muniment_server.embedded_postgres.account import Account, account_for
from muniment_server.embedded_postgres.binaries import Binaries, binaries_for, find_bindir
from muniment_server.embedded_postgres.cluster import (
    AFTER_LOSS,
    DATABASE,
    SUPERUSER,
    create_database,
    ensure_cluster,
    write_access,
)
from muniment_server.embedded_postgres.directory import (
    Lock,
    make_directory,
    make_private,
    open_log,
    socket_directory,
)
from muniment_server.embedded_postgres.errors import DidNotStart, EmbeddedPostgresError
from muniment_server.embedded_postgres.orphans import take_over
from muniment_server.embedded_postgres.postmaster import Postmaster, conninfo_of, postmaster_of

_log = logging.getLogger(__name__)
_FAST_SECONDS = 20.0
_IMMEDIATE_SECONDS = 10.0
_STOPPING_SECONDS = 10.0
"""A server that has been shutting down for longer waits for its clients, and lets in no new one."""
_POLL_SECONDS = 0.005
_TAIL_BYTES = 1500


class EmbeddedPostgres:
    """A Postgres in a child process, with a Unix socket only, and peer authentication.

    The operating-system user is the trust boundary: any process of that user may log in as any of *roles*.
    """

    def __init__(
        self,
        directory: Path,
        *,
        roles: Sequence[str],
        settings: Mapping[str, str] = {},
        durable: bool = True,
        bindir: Path | None = None,
        before_start: Callable[[], None] = lambda: None,
    ) -> None:
        """A server on *directory*. Nothing happens before start().

        Unless it is *durable*, a crash of the machine loses commits: for tests. *before_start* is called once the
        directory is locked, before anything else is made there; an error of it ends the start. Raises ValueError for a
        setting that the caller may not choose.
        """
        configuration.require_free(settings)
        self._directory = directory.absolute()
        self._roles = tuple(roles)
        self._settings = dict(settings)
        self._durable = durable
        self._bindir = bindir
        self._before_start = before_start
        self._lock = Lock(self._directory / "lock")
        self._account: Account | None = None
        self._sockets: Path | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._earlier: Postmaster | None = None
        self._log_start = 0
        self._stopping_since: float | None = None

    def start(self) -> None:
        """Start Postgres, and wait until it accepts connections, however long crash recovery takes.

        Only the main thread may call this. The first start creates the cluster and the database. Stops processes that
        an earlier server left running. Raises EmbeddedPostgresError; then nothing is running.
        """
        child.require_main_thread()
        if self.running:
            raise EmbeddedPostgresError("the embedded Postgres is already running")
        account = account_for(self._data)
        make_directory(self._directory, account)
        self._lock.acquire()
        with contextlib.ExitStack() as undo:
            undo.callback(self.stop)
            self._before_start()
            self._launch(account)
            self._wait_until_ready()
            self._create_database()
            undo.pop_all()

    def stop(self) -> None:
        """Stop Postgres, with a checkpoint if there is time for one, and release the directory. May be called twice."""
        if self._child is not None:
            _stop(self._child)
            self._child = None
        self._remove_socket_directory()
        self._lock.release()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """Whether the child process is running."""
        return self._child is not None and self._child.poll() is None

    def is_serving(self) -> bool:
        """Whether the child process is running, and has not been shutting down for ten seconds. Ask repeatedly."""
        current = postmaster_of(self._data)
        if current is None or current.status != "stopping":
            self._stopping_since = None
            return self.running
        self._stopping_since = self._stopping_since or time.monotonic()
        return self.running and time.monotonic() - self._stopping_since < _STOPPING_SECONDS

    @property
    def pid(self) -> int | None:
        """The process id of the child. None if it is not running."""
        return self._child.pid if self._child is not None and self.running else None

    def conninfo(self, *, user: str, dbname: str = DATABASE) -> str:
        """The conninfo of *user* for *dbname*. Raises EmbeddedPostgresError before the first start."""
        if self._account is None or self._sockets is None:
            raise EmbeddedPostgresError("the embedded Postgres has not been started: call start() first")
        return conninfo_of(self._sockets, account=self._account.name, user=user, dbname=dbname)

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    def _launch(self, account: Account) -> None:
        binaries = binaries_for(account, find_bindir(self._bindir), copies=self._directory / "pgbin")
        ensure_cluster(self._data, binaries, account, durable=self._durable)
        write_access(self._directory, major=binaries.major, roles=self._roles)
        sockets = socket_directory(self._directory, account)
        make_private(sockets, account)
        take_over(self._data, sockets)
        self._earlier = postmaster_of(self._data)
        self._account, self._sockets = account, sockets
        self._spawn(binaries, account, sockets)

    def _spawn(self, binaries: Binaries, account: Account, sockets: Path) -> None:
        flags = configuration.arguments(
            self._settings, directory=self._directory, sockets=sockets, durable=self._durable
        )
        with open_log(self._log_path) as log:
            self._log_start = log.tell()
            self._child = child.spawn([binaries.bindir / "postgres", *flags], account, log=log)

    def _wait_until_ready(self) -> None:
        """Wait for Postgres to report in its pid file that it is ready. Attempts to connect would fill its log.

        In a restarted container, the pid file of a killed server may name the same pid as the new one.
        """
        while self.running:
            current = postmaster_of(self._data)
            if current and current != self._earlier and current.pid == self.pid and current.status == "ready":
                return
            time.sleep(_POLL_SECONDS)
        raise self._failure(f"Postgres ended before it was ready; {self._log_path} says: {self._log_tail()}")

    def _create_database(self) -> None:
        try:
            create_database(self.conninfo(user=SUPERUSER, dbname="postgres"))
        except psycopg.Error as error:
            raise self._failure(
                f"Postgres runs, but rejects this process, or cannot create the database: {error}"
            ) from error

    def _failure(self, text: str) -> DidNotStart:
        return DidNotStart(text, f"if a file in {self._data} is missing or damaged, {AFTER_LOSS}")

    @property
    def _log_path(self) -> Path:
        return self._directory / "postgres.log"

    def _log_tail(self) -> str:
        """The end of the log since this start."""
        written = self._log_path.read_bytes()[self._log_start :]
        return written[-_TAIL_BYTES:].decode(errors="replace").strip()

    def _remove_socket_directory(self) -> None:
        """Remove the socket directory if it is a temporary one."""
        if self._sockets is not None and self._sockets.parent != self._directory:
            with contextlib.suppress(OSError):  # it is gone, or contains the socket of a killed server
                self._sockets.rmdir()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Try a fast shutdown, then an immediate one, then kill. The next start recovers from the last two.

    A fast shutdown may never finish if Postgres is recovering from the crash of a session (seen in 15 and 18).
    """
    for step, seconds in ((signal.SIGINT, _FAST_SECONDS), (signal.SIGQUIT, _IMMEDIATE_SECONDS)):
        process.send_signal(step)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            _log.warning("Postgres %d did not stop within %.0f s of %s", process.pid, seconds, step.name)
        else:
            return
    process.kill()
    process.wait()
