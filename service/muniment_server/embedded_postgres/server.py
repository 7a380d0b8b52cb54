"""The embedded Postgres: started, watched and stopped by the process that uses it."""

from __future__ import annotations

import contextlib
import logging
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from muniment_server.embedded_postgres import child, configuration
from muniment_server.embedded_postgres.account import Account, account_for
from muniment_server.embedded_postgres.binaries import Binaries, binaries_for, find_bindir
from muniment_server.embedded_postgres.cluster import (
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
_POLL_SECONDS = 0.005
_TAIL_BYTES = 1500


class EmbeddedPostgres:
    """A Postgres of our own: a child process, unix socket only, peer authentication.

    The operating-system user is the trust boundary: whoever runs as it is admitted as any of *roles*.
    """

    def __init__(
        self,
        directory: Path,
        *,
        roles: Sequence[str],
        settings: Mapping[str, str] = {},
        durable: bool = True,
        bindir: Path | None = None,
    ) -> None:
        """A server on *directory*, which is made where it is missing; nothing happens before start().

        Not *durable* forgets commits at a crash of the machine: for tests. Raises ValueError for a
        setting that is not the caller's to choose.
        """
        configuration.require_free(settings)
        self._directory = directory.absolute()
        self._roles = tuple(roles)
        self._settings = dict(settings)
        self._durable = durable
        self._bindir = bindir
        self._lock = Lock(self._directory / "lock")
        self._account: Account | None = None
        self._sockets: Path | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._earlier: Postmaster | None = None
        self._log_start = 0

    def start(self) -> None:
        """Start, and return when connections are accepted, however long crash recovery takes.

        To be called from the main thread. Makes cluster and database at first; stops what an earlier
        server left running. Raises EmbeddedPostgresError, and then nothing runs.
        """
        child.require_main_thread()
        if self.running:
            raise EmbeddedPostgresError("the embedded Postgres runs already")
        account = account_for(self._data)
        make_directory(self._directory, account)
        self._lock.acquire()
        with contextlib.ExitStack() as undo:
            undo.callback(self.stop)
            self._launch(account)
            self._wait_until_ready()
            self._create_database()
            undo.pop_all()

    def stop(self) -> None:
        """Stop, with a checkpoint if there is time for one, and give the directory up. Twice is fine."""
        if self._child is not None:
            _end(self._child)
            self._child = None
        self._remove_short_sockets()
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
        """Whether the child is alive."""
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int | None:
        """The process id of the child. None when it does not run."""
        return self._child.pid if self._child is not None and self.running else None

    def conninfo(self, *, user: str, dbname: str = DATABASE) -> str:
        """How *user* reaches *dbname*, for libpq. Raises EmbeddedPostgresError before the first start."""
        if self._account is None or self._sockets is None:
            raise EmbeddedPostgresError("the embedded Postgres was not started yet: call start() first")
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
        """Postgres writes its state to its pid file; asking by connecting would fill the log meanwhile.

        In a restarted container the file that a killed server left may name the very pid of the new one.
        """
        while self.running:
            said = postmaster_of(self._data)
            if said is not None and said != self._earlier and said.pid == self.pid and said.ready:
                return
            time.sleep(_POLL_SECONDS)
        raise DidNotStart(f"Postgres ended before it was ready; {self._log_path} says: {self._log_tail()}")

    def _create_database(self) -> None:
        try:
            create_database(self.conninfo(user=SUPERUSER, dbname="postgres"))
        except psycopg.Error as error:
            raise DidNotStart(f"Postgres runs, but does not let us in or make a database: {error}") from error

    @property
    def _log_path(self) -> Path:
        return self._directory / "postgres.log"

    def _log_tail(self) -> str:
        """The last of what this start wrote."""
        written = self._log_path.read_bytes()[self._log_start :]
        return written[-_TAIL_BYTES:].decode(errors="replace").strip()

    def _remove_short_sockets(self) -> None:
        """Leave no empty directory among the temporary files."""
        if self._sockets is not None and self._sockets.parent != self._directory:
            with contextlib.suppress(OSError):  # gone, or a killed server left its socket in it
                self._sockets.rmdir()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Fast shutdown, then immediate, then kill; the next start recovers from the last two.

    A fast shutdown asked while Postgres recovers from the crash of a session may never end (15 and 18).
    """
    for step, seconds in ((signal.SIGINT, _FAST_SECONDS), (signal.SIGQUIT, _IMMEDIATE_SECONDS)):
        process.send_signal(step)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            _log.warning("Postgres %d does not stop within %.0f s of %s", process.pid, seconds, step.name)
        else:
            return
    process.kill()
    process.wait()
