"""A Citus cluster on this machine: a coordinator and two workers, each of Debian's binaries and with passwords."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.support.commands import wait_until
from tests.support.external_postgres import PASSWORD, admin_url, free_port

BINARIES = Path("/usr/lib/postgresql/15/bin")
LIBRARY = Path("/usr/lib/postgresql/15/lib/citus.so")
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
    return None if LIBRARY.exists() else f"no {LIBRARY}: tests/citus/build.sh makes it"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The ports of the nodes, which are all on 127.0.0.1."""

    coordinator: int
    workers: tuple[int, ...]

    def url(self, port: int, database: str = "postgres") -> str:
        """The URL of *database* on the node at *port*, without a login."""
        return f"postgresql://127.0.0.1:{port}/{database}"

    def admin(self, port: int, database: str = "postgres") -> psycopg.Connection[Any]:
        """A connection as the superuser."""
        return psycopg.connect(admin_url(self.url(port, database)), autocommit=True)

    def create(self, database: str) -> None:
        """Create *database* on each node. It does not belong to the cluster before `join`."""
        for port in (self.coordinator, *self.workers):
            with self.admin(port) as admin:
                admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))

    def join(self, database: str) -> None:
        """Make *database*, which exists on each node, one database of the cluster."""
        ports = (self.coordinator, *self.workers)
        for port in ports:
            with self.admin(port, database) as admin:
                admin.execute("CREATE EXTENSION citus")
                admin.execute(  # or the nodes cannot log in to each other
                    "INSERT INTO pg_dist_authinfo (nodeid, rolename, authinfo) VALUES (0, 'postgres', %s)",
                    [f"password={PASSWORD}"],
                )
        with self.admin(self.coordinator, database) as admin:
            admin.execute("SELECT citus_set_coordinator_host('127.0.0.1', %s)", [self.coordinator])
            for port in self.workers:
                admin.execute("SELECT citus_add_node('127.0.0.1', %s)", [port])


@contextmanager
def running(folder: Path, *, auth: str = "scram-sha-256", **settings: str) -> Iterator[Cluster]:
    """A cluster below *folder*, until the block ends. Its databases do not belong to it before `join`."""
    with ExitStack() as nodes:
        ports = [
            nodes.enter_context(_node(folder / name, auth, {**_SETTINGS, **settings}))
            for name in ("coordinator", "worker_1", "worker_2")
        ]
        yield Cluster(ports[0], tuple(ports[1:]))


@contextmanager
def _node(home: Path, auth: str, settings: Mapping[str, str]) -> Iterator[int]:
    """The port of a Postgres with its files in *home*. Root's runs as the account `postgres`, as Debian's does."""
    account: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    home.mkdir(mode=0o711)
    if account:
        subprocess.run(["chown", "postgres", home], check=True)
    password, data, log = home / "password", home / "data", home / "log"
    password.write_text(PASSWORD)
    init = [f"--auth={auth}", f"--pwfile={password}", "--username=postgres", "--encoding=UTF8", "--no-sync"]
    subprocess.run(
        [BINARIES / "initdb", *init, "--locale=C.UTF-8", data], check=True, capture_output=True, cwd="/", **account
    )
    port = free_port()
    flags = [word for name, value in {**settings, "port": str(port)}.items() for word in ("-c", f"{name}={value}")]
    with log.open("wb") as output:
        server = subprocess.Popen([BINARIES / "postgres", "-D", data, *flags], stderr=output, cwd="/", **account)
        try:
            wait_until(lambda: "ready to accept" in log.read_text(), "no Postgres")
            yield port
        finally:
            server.send_signal(signal.SIGINT)  # fast: it does not wait for its clients
            server.wait(30)
