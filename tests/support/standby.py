"""A primary and a standby that follows it: clusters of the system's Postgres, on ports of this machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import conninfo as libpq
from psycopg.rows import namedtuple_row

from muniment_server.postgres.pool import operator_conninfo
from muniment_server.runtime.passfile import with_passfile
from tests.support.commands import SYSTEM_POSTGRES
from tests.support.ports import free_port

_NAME = "muniment"
_RIGHTS: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}


class Cluster:
    """One Postgres, which can be killed and started again."""

    def __init__(self, home: Path) -> None:
        self._data = home / "data"
        self._log = home / "log"
        self.port = free_port()
        self._process: subprocess.Popen[Any] | None = None

    def create(self) -> None:
        """Make an empty cluster that trusts this machine."""
        _run("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8", self._data)

    def follow(self, primary: Cluster) -> None:
        """Become a copy of *primary* that follows it."""
        _run("pg_basebackup", "--write-recovery-conf", "--checkpoint=fast", "-D", self._data, "-d", primary.admin)

    def start(self) -> None:
        """Start, and return when it accepts connections."""
        settings = ["listen_addresses=127.0.0.1", f"port={self.port}", "unix_socket_directories="]
        flags = [word for setting in settings for word in ("-c", setting)]
        with self._log.open("ab") as log:
            command = [str(SYSTEM_POSTGRES[-1] / "postgres"), "-D", str(self._data), *flags]
            self._process = subprocess.Popen(command, stderr=log, cwd="/", **_RIGHTS)
        _until(self._answers)

    def kill(self) -> None:
        """Kill the postmaster with SIGKILL, and wait until its port is free."""
        self.stop(signal.SIGKILL)

    def stop(self, number: int = signal.SIGQUIT) -> None:
        """End it."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(20)
            self._process = None

    def promote(self) -> None:
        """Make a primary of a standby."""
        self.execute("SELECT pg_promote()")

    def end_connections(self) -> None:
        """End all connections to its database."""
        self.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{_NAME}'")

    def configure(self, setting: str, value: str) -> None:
        """Change a setting that needs no restart."""
        self.execute(f"ALTER SYSTEM SET {setting} = '{value}'")
        self.execute("SELECT pg_reload_conf()")

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement as the superuser, and return its rows."""
        with psycopg.connect(self.admin, autocommit=True) as admin:
            cursor = admin.execute(statement.encode())  # `SELECT FROM` has rows, and no columns
            return cursor.fetchall() if cursor.description is not None else []

    @property
    def admin(self) -> str:
        """How to connect as the superuser."""
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.admin).close()
        except psycopg.OperationalError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Pair:
    """A database on two hosts."""

    primary: Cluster
    standby: Cluster

    @property
    def url(self) -> str:
        """The URL of the database, with both hosts."""
        return f"postgresql://127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}/{_NAME}"

    def conninfo(self, role: str) -> str:
        """How the server connects as *role*."""
        return libpq.make_conninfo(with_passfile(self.url, None), user=role)

    @property
    def admin(self) -> str:
        """How the superuser connects, to the host that accepts writes."""
        return libpq.make_conninfo(self.url, user="postgres", target_session_attrs="read-write")

    def as_owner(self) -> psycopg.Connection[Any]:
        """A connection that may look at and change everything."""
        return psycopg.connect(operator_conninfo(self.admin), autocommit=True, row_factory=namedtuple_row)

    def caught_up(self) -> None:
        """Return when the standby has all that the primary has."""
        query = "SELECT replay_lsn >= pg_current_wal_lsn() FROM pg_stat_replication"
        _until(lambda: self.primary.execute(query) == [(True,)])

    def make_synchronous(self) -> None:
        """From now on, a commit on the primary waits until the standby has written it to disk."""
        self.primary.configure("synchronous_standby_names", "*")
        _until(lambda: self.primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)])
        _until(self._commit_waits)

    def _commit_waits(self) -> bool:
        """Whether a commit waits for the standby, which applies nothing meanwhile.

        `sync_state` does not say so: commits wait only once the checkpointer, too, has read the new setting.
        """
        self.standby.execute("SELECT pg_wal_replay_pause()")
        try:
            with closing(psycopg.connect(self.primary.admin, autocommit=True)) as admin:
                admin.execute("SET synchronous_commit = remote_apply")
                admin.pgconn.send_query(b"SELECT pg_logical_emit_message(true, '', '')")
                waits = f"SELECT FROM pg_stat_activity WHERE pid = {admin.info.backend_pid} AND wait_event = 'SyncRep'"
                while admin.pgconn.is_busy():
                    if self.primary.execute(waits):
                        return True
                    admin.pgconn.consume_input()
        finally:
            self.standby.execute("SELECT pg_wal_replay_resume()")
        return False

    @contextmanager
    def partitioned(self) -> Iterator[None]:
        """The standby receives nothing in the block. It is connected again after it, if the primary still runs."""
        ((source,),) = self.standby.execute("SHOW primary_conninfo")
        self.standby.configure("primary_conninfo", "")
        _until(lambda: self.standby.execute("SELECT FROM pg_stat_wal_receiver") == [])
        yield
        self.standby.configure("primary_conninfo", source.replace("'", "''"))


@dataclass(frozen=True, slots=True)
class Alone:
    """The same database on one host."""

    cluster: Cluster

    def conninfo(self, role: str) -> str:
        """How the server connects as *role*."""
        return libpq.make_conninfo(self.url, user=role, target_session_attrs="read-write")

    @property
    def url(self) -> str:
        """The URL of the database."""
        return f"postgresql://127.0.0.1:{self.cluster.port}/{_NAME}"

    @property
    def admin(self) -> str:
        """The URL with the superuser."""
        return self.url.replace("//", "//postgres@")

    def as_owner(self) -> psycopg.Connection[Any]:
        """A connection that may look at and change everything."""
        return psycopg.connect(operator_conninfo(self.admin), autocommit=True, row_factory=namedtuple_row)


@contextmanager
def running_pair() -> Iterator[Pair]:
    """A primary with an empty database, and a standby that follows it."""
    folder = Path(tempfile.mkdtemp(prefix="muniment-standby-"))
    folder.chmod(0o711)
    homes = [folder / name for name in ("primary", "standby")]
    for home in homes:
        home.mkdir()
        if _RIGHTS:
            shutil.chown(home, "postgres", "postgres")
    primary, standby = map(Cluster, homes)
    try:
        primary.create()
        primary.start()
        with psycopg.connect(primary.admin, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {_NAME}".encode())
        standby.follow(primary)
        standby.start()
        yield Pair(primary, standby)
    finally:
        standby.stop()
        primary.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _run(program: str, *arguments: str | Path) -> None:
    command = [SYSTEM_POSTGRES[-1] / program, *arguments]
    subprocess.run(command, check=True, capture_output=True, cwd="/", **_RIGHTS)


def _until(condition: Any) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
