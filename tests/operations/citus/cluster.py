"""A Citus cluster on this machine: a coordinator and two workers, each of Debian's binaries and with passwords."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.support.commands import children_of, wait_until
from tests.support.external_postgres import PASSWORD, admin_url
from tests.support.ports import free_port

BINARIES = Path("/usr/lib/postgresql/15/bin")
LIBRARY = Path("/usr/lib/postgresql/15/lib/citus.so")
_READY = "ready to accept"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_preload_libraries": "citus",
    "citus.node_conninfo": "sslmode=disable",
    "citus.shard_count": "8",
    "citus.enable_statistics_collection": "off",
    "fsync": "off",
}


def missing() -> str | None:
    """Why there can be no cluster on this machine; None if there can."""
    return None if LIBRARY.exists() else f"no {LIBRARY}: tests/operations/citus/build.sh makes it"


class Node:
    """A Postgres with its files in *home*. Root's runs as the account `postgres`, as Debian's does."""

    def __init__(self, home: Path, auth: str, settings: Mapping[str, str]) -> None:
        self.port = free_port()
        self.data, self._log = home / "data", home / "log"
        self._account: dict[str, Any] = (
            {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        )
        self._settings = {**settings, "port": str(self.port)}
        self._process: subprocess.Popen[bytes] | None = None
        home.mkdir(mode=0o711)
        if self._account:
            subprocess.run(["chown", "postgres", home], check=True)
        password = home / "password"
        password.write_text(PASSWORD)
        init = [f"--auth={auth}", f"--pwfile={password}", "--username=postgres", "--encoding=UTF8", "--no-sync"]
        command = [str(BINARIES / "initdb"), *init, "--locale=C.UTF-8", str(self.data)]
        subprocess.run(command, check=True, capture_output=True, cwd="/", **self._account)

    def start(self) -> None:
        """Start it, and return when it takes connections."""
        flags = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        before = self.log.count(_READY)
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [BINARIES / "postgres", "-D", self.data, *flags], stderr=output, cwd="/", **self._account
            )
        wait_until(lambda: self.log.count(_READY) > before, "no Postgres")

    def stop(self) -> None:
        """Stop it, without waiting for its clients."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)

    def kill(self) -> None:
        """Kill all its processes at once, as a machine that loses power does."""
        assert self._process is not None
        processes = self.processes()
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.wait(30)
        wait_until(lambda: not any(Path("/proc", str(process), "exe").exists() for process in processes), "it runs")

    @property
    def runs(self) -> bool:
        """Whether it was started, and has not ended."""
        return self._process is not None and self._process.poll() is None

    def processes(self) -> list[int]:
        """Its processes, the postmaster first: without it, no others begin."""
        assert self._process is not None
        return [self._process.pid, *children_of(self._process.pid)]

    @property
    def log(self) -> str:
        """What all its starts have logged."""
        return self._log.read_text() if self._log.exists() else ""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The nodes, which are all on 127.0.0.1, and their ports."""

    nodes: tuple[Node, ...]
    """The coordinator first."""

    @property
    def coordinator(self) -> int:
        return self.nodes[0].port

    @property
    def workers(self) -> tuple[int, ...]:
        return tuple(node.port for node in self.nodes[1:])

    def url(self, port: int, database: str = "postgres") -> str:
        """The URL of *database* on the node at *port*, without a login."""
        return f"postgresql://127.0.0.1:{port}/{database}"

    def admin(self, port: int, database: str = "postgres") -> psycopg.Connection[Any]:
        """A connection as the superuser."""
        return psycopg.connect(admin_url(self.url(port, database)), autocommit=True)

    def admin_of_node_alone(self, port: int, database: str) -> psycopg.Connection[Any]:
        """A superuser's connection that propagates nothing to other nodes."""
        connection = self.admin(port, database)
        connection.execute("SET citus.enable_ddl_propagation = off")
        connection.execute("SET citus.enable_alter_role_propagation = off")
        connection.execute("SET citus.enable_manual_changes_to_shards = on")
        return connection

    @contextmanager
    def held_between_phases(self) -> Iterator[None]:
        """During the block, no commit in two phases gets to the second: the coordinator waits for a standby."""
        wait_for_standby(self, self.coordinator, "none")
        try:
            yield
        finally:
            wait_for_standby(self, self.coordinator, "")

    def create(self, database: str) -> None:
        """Create *database* on each node. It does not belong to the cluster before `join`."""
        for port in (self.coordinator, *self.workers):
            with self.admin(port) as admin:
                admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))

    def join(self, database: str) -> None:
        """Make *database*, which exists on each node, one database of the cluster."""
        for port in (self.coordinator, *self.workers):
            self.extend(port, database)
        with self.admin(self.coordinator, database) as admin:
            admin.execute("SELECT citus_set_coordinator_host('127.0.0.1', %s)", [self.coordinator])
        for port in self.workers:
            self.add(port, database)

    def extend(self, port: int, database: str) -> None:
        """Give *database* on the node at *port* the extension, and the password to log in to the other nodes."""
        with self.admin(port, database) as admin:
            admin.execute("CREATE EXTENSION citus")
            admin.execute(
                "INSERT INTO pg_dist_authinfo (nodeid, rolename, authinfo) VALUES (0, 'postgres', %s)",
                [f"password={PASSWORD}"],
            )

    def add(self, port: int, database: str) -> None:
        """Make the node at *port*, which has the extension, a worker of *database*."""
        with self.admin(self.coordinator, database) as admin:
            admin.execute("SELECT citus_add_node('127.0.0.1', %s)", [port])


def wait_for_standby(cluster: Cluster, port: int, name: str) -> None:
    """Have each commit on the node at *port* wait for the standby of that *name*; for none if it is empty."""
    with cluster.admin(port) as admin:
        admin.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'".encode())
        admin.execute("SELECT pg_reload_conf()")
        show = "SELECT setting FROM pg_settings WHERE name = 'synchronous_standby_names'"
        wait_until(lambda: admin.execute(show).fetchone() == (name,), "the setting")
        admin.execute("CHECKPOINT")  # by the checkpointer, whose own copy of the setting decides whether commits wait


@contextmanager
def folder_of_nodes() -> Iterator[Path]:
    """A folder that the account of the nodes may enter."""
    made = Path(tempfile.mkdtemp(prefix="muniment-citus-"))
    made.chmod(0o711)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def running(folder: Path, *, auth: str = "scram-sha-256", **settings: str) -> Iterator[Cluster]:
    """A cluster below *folder*, until the block ends. Its databases do not belong to it before `join`."""
    nodes = [Node(folder / name, auth, {**_SETTINGS, **settings}) for name in ("coordinator", "worker_1", "worker_2")]
    with ExitStack() as started:
        for node in nodes:
            node.start()
            started.callback(node.stop)
        yield Cluster(tuple(nodes))
