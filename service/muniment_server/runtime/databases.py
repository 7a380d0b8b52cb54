"""How to reach the database that a configuration names: as the server, and as an operator."""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from psycopg import conninfo as libpq
from psycopg.rows import namedtuple_row

from muniment_server.embedded_postgres import EmbeddedPostgres, conninfo_of_running
from muniment_server.monitor import grants
from muniment_server.postgres import migrate, pool, roles
from muniment_server.postgres.passfile import with_passfile
from muniment_server.postgres.pool import RoleConnection, WrongRole
from muniment_server.runtime.configuration import DatabaseConfig

_LOG = logging.getLogger("muniment.access")
SUPERUSER = "postgres"
"""The administrator of a database of our own."""
CLUSTER = "postgres"
"""Where it is kept, below the data directory."""
_SYSTEM_DIRECTORY = Path("/var/lib/muniment")
_SPARE_CONNECTIONS = 20
_PATIENCE = "-c statement_timeout=10s"
"""A server that starts does not hear signals while it waits for the database."""


class NotReady(RuntimeError):
    """The database may not be served as it is. The text has a line for each problem."""


@dataclass(frozen=True, slots=True)
class Served:
    """A database that is ready to be served."""

    conninfo: str
    """For any serving role, once `user` is added."""
    embedded: EmbeddedPostgres | None


@contextmanager
def served_database(config: DatabaseConfig, *, connections: int) -> Iterator[Served]:
    """The database to serve: one of our own is started and migrated, and stopped afterwards."""
    if config.url is not None:
        yield Served(with_passfile(config.url, config.passfile), None)
        return
    with _embedded(config.data_dir, {"max_connections": str(max(100, connections + _SPARE_CONNECTIONS))}) as embedded:
        migrate.migrate(embedded.conninfo(user=SUPERUSER))
        yield Served(without_user(embedded.conninfo(user=SUPERUSER)), embedded)


@contextmanager
def operators_database(config: DatabaseConfig) -> Iterator[str]:
    """The administrator's conninfo: of the database that runs, or else of one started for as long as it is needed."""
    if config.url is not None:
        yield config.url
        return
    running = conninfo_of_running(cluster_directory(config.data_dir), user=SUPERUSER)
    if running is not None:
        yield running
        return
    with _embedded(config.data_dir, {}) as embedded:
        migrate.migrate(embedded.conninfo(user=SUPERUSER))
        yield embedded.conninfo(user=SUPERUSER)


def require_ready(conninfo: str, *, connections: int) -> None:
    """Look at the walls as the control role. Raises NotReady."""
    problems = problems_of(conninfo, connections=connections)
    if problems:
        raise NotReady("\n".join(problems))


def problems_of(conninfo: str, *, connections: int) -> list[str]:
    """What is wrong with the database that the serving roles reach by *conninfo*.

    Raises psycopg.OperationalError when a role does not log in.
    """
    for role in roles.SERVING:
        with _logged_in(conninfo, role) as connection:
            try:
                pool.verify(connection, role)
            except WrongRole:
                return [f"{role} logs in as another role, or as one with too much power: run `muniment migrate`"]
    with _logged_in(conninfo, roles.CONTROL) as connection:
        return grants.problems(connection, connections=connections)


def _logged_in(conninfo: str, role: str) -> RoleConnection:
    patient = libpq.make_conninfo(conninfo, user=role, options=_PATIENCE, **pool.NETWORK)
    return RoleConnection.connect(patient, autocommit=True, row_factory=namedtuple_row)


def without_user(conninfo: str) -> str:
    """*conninfo* with the user left out."""
    given = {name: value for name, value in libpq.conninfo_to_dict(conninfo).items() if name != "user"}
    return libpq.make_conninfo("", **given)


def cluster_directory(data_dir: Path) -> Path:
    """Where a database of our own is kept: `DIR/postgres`.

    Root's Postgres runs as another account. Where that cannot enter DIR (below /root, say), `DIR/postgres` becomes a
    link to a directory of the system's, rather than anybody's rights being changed.
    """
    kept = data_dir.absolute() / CLUSTER
    if os.geteuid() != 0 or kept.exists() or _others_may_enter(kept.parent):
        return kept.resolve()
    _SYSTEM_DIRECTORY.mkdir(mode=0o711, parents=True, exist_ok=True)
    elsewhere = Path(
        tempfile.mkdtemp(prefix=f"{kept.parent.parent.name}-", dir=_SYSTEM_DIRECTORY)
    )  # never an old one's
    elsewhere.chmod(0o711)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.symlink_to(elsewhere)
    _LOG.warning("%s may not be entered by the account that Postgres runs as: it is kept in %s", kept.parent, elsewhere)
    return elsewhere


def _others_may_enter(directory: Path) -> bool:
    existing = [path for path in (directory, *directory.parents) if path.exists()]
    return all(path.stat().st_mode & stat.S_IXOTH for path in existing)


def _embedded(data_dir: Path, settings: Mapping[str, str]) -> EmbeddedPostgres:
    return EmbeddedPostgres(cluster_directory(data_dir), roles=roles.ALL, settings=settings)
