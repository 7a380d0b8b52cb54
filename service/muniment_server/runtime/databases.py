"""How to reach the configured database, as the server and as an operator."""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
from psycopg import conninfo as libpq

from muniment_server.embedded_postgres import EmbeddedPostgres, conninfo_of_running
from muniment_server.monitor import gate
from muniment_server.postgres import pool, queries, roles
from muniment_server.postgres.engine import engine_of
from muniment_server.postgres.epochs import Epoch, EpochGuard, WrongEpoch
from muniment_server.postgres.placement import ONLY, Placement
from muniment_server.postgres.pool import NETWORK, RoleConnection, WrongRole, WrongSettings
from muniment_server.postgres.rows import values_of
from muniment_server.process.assignment import epoch_directory
from muniment_server.runtime import claims as _claims
from muniment_server.runtime import clocks, connection_budget, restoring, servers_file
from muniment_server.runtime.claims import Claim
from muniment_server.runtime.configuration import DatabaseConfig
from muniment_server.runtime.passfile import with_passfile
from muniment_server.runtime.schema import migrate

_LOG = logging.getLogger("muniment.databases")
_QUERIES = queries.load(__package__, "host_keys.sql")
SUPERUSER = "postgres"
"""The administrator of an embedded database."""
CLUSTER = "postgres"
"""The directory of the embedded database, in the data directory."""
_SYSTEM_DIRECTORY = Path("/var/lib/muniment")
_SETTINGS = {"autovacuum_naptime": "2s"}
"""Analyzes new tables within seconds. Until then, plans may use the wrong index, and imports of threads slow down."""
_SPARE_CONNECTIONS = 20
_EPOCH_ATTEMPTS = 5
_STATEMENT_SECONDS = 10
"""Limits how long a starting server waits for the database, during which it handles no signals."""

_NEEDS_SESSION_MODE = (
    "the connections go through a pooler that gives each transaction another one: set its pool_mode to session, "
    "as `service/docs/configuration.md` shows, or connect to the database itself"
)


class NotReady(RuntimeError):
    """The database must not be served in its current state. The text has one line for each problem."""


@dataclass(frozen=True, slots=True)
class ServedDatabase:
    """The databases that the server can use. There is one, unless a file names several."""

    placement: Placement
    """Each conninfo is without a user: each serving role adds its own."""
    embedded: EmbeddedPostgres | None


@contextmanager
def served_database(config: DatabaseConfig, *, connections: int) -> Iterator[ServedDatabase]:
    """The databases to serve. An embedded one is started and migrated for the block, and stopped after it.

    Raises NotReady or WrongEpoch.
    """
    if config.servers_file is not None:
        yield ServedDatabase(served_placement(config.servers_file), None)
        return
    if config.url is not None:
        yield ServedDatabase(Placement({ONLY: with_passfile(config.url, config.passfile)}), None)
        return
    require_kept(config)
    settings = {"max_connections": str(max(100, connections + _SPARE_CONNECTIONS)), **_SETTINGS}
    directory = cluster_directory(config.data_dir)
    check = partial(_require_restored_directory, directory)
    with EmbeddedPostgres(directory, roles=roles.ALL, settings=settings, before_start=check) as embedded:
        require_restored(embedded.conninfo(user=SUPERUSER))
        migrate(embedded.conninfo(user=SUPERUSER))
        yield ServedDatabase(Placement({ONLY: without(embedded.conninfo(user=SUPERUSER), "user")}), embedded)


@contextmanager
def operators_database(config: DatabaseConfig) -> Iterator[str]:
    """The administrator's conninfo. An embedded database that is not running is started and migrated for the block.

    Raises NotReady.
    """
    if config.url is not None:
        require_restored(config.url)
        yield config.url
        return
    was_running = conninfo_of_running(cluster_directory(config.data_dir), user=SUPERUSER) is not None
    with embedded_database(config.data_dir) as admin:
        require_restored(admin)
        if not was_running:
            migrate(admin)
        yield admin


def _require_restored_directory(directory: Path) -> None:
    for problem in restoring.problems_in(directory):
        raise NotReady(problem)


@contextmanager
def embedded_database(
    data_dir: Path, before_start: Callable[[Path], None] = _require_restored_directory
) -> Iterator[str]:
    """The administrator's conninfo of the built-in database in *data_dir*, without migrating it."""
    directory = cluster_directory(data_dir)
    running = conninfo_of_running(directory, user=SUPERUSER)
    if running is not None:
        before_start(directory)
        yield running
        return
    with EmbeddedPostgres(directory, roles=roles.ALL, before_start=partial(before_start, directory)) as embedded:
        yield embedded.conninfo(user=SUPERUSER)


def require_kept(config: DatabaseConfig) -> None:
    """Raise NotReady if a server has used the built-in database, and it is gone: an empty one would replace it.

    Raises WrongEpoch, or OSError, if it cannot be known whether a server has used it.
    """
    data = cluster_directory(config.data_dir) / "data"
    if not (data.is_dir() and any(data.iterdir())) and EpochGuard(config.epoch_directory).highest() is not None:
        raise NotReady(
            f"{data} is gone, and a server has used it: put it back, or restore a backup into another data directory"
        )


def require_restored(admin: str) -> None:
    """Raise NotReady if a restore into the database of the conninfo *admin* has not ended."""
    with psycopg.connect(admin, autocommit=True) as connection:
        for problem in restoring.problems(connection):
            raise NotReady(problem)


def served_placement(file: Path) -> Placement:
    """The placement that *file* states, as the serving roles reach the servers. Raises ConfigError or PassfileError."""
    return servers_file.as_served(servers_file.read(file))


def require_ready(placement: Placement, *, connections: int, epochs: Path) -> None:
    """Verify each server as the control role. Raises NotReady.

    Of several servers, those that do not answer are left to the workers: the tenants of the others must not wait.
    """
    problems, claims = [], {}
    for name, conninfo in placement.servers.items():
        try:
            found = _problems_of_server(conninfo, name, connections=connections, epochs=epochs)
            problems += [f"{name}: {problem}" if name else problem for problem in found]
            claims.update({} if found else {name: _claim_of(conninfo)})
        except psycopg.OperationalError:
            if len(placement.servers) == 1:
                raise
            _LOG.error("the server %s does not answer: its tenants are refused until it does", name)
    if not claims and not problems:
        raise NotReady("no server answers: check that they run, and the URLs in the file of servers")
    problems += _claims.problems(claims)
    if problems:
        raise NotReady("\n".join(problems))
    for warning in _claims.warnings(claims, placement):
        _LOG.warning("%s", warning)


def _problems_of_server(conninfo: str, name: str, *, connections: int, epochs: Path) -> list[str]:
    if refusal := _refusal(conninfo):  # before the epoch of a worker is kept
        return [refusal]
    _admit_one(conninfo, EpochGuard(epoch_directory(epochs, name)))
    return problems_of(conninfo, connections=connections)


def _refusal(conninfo: str) -> str | None:
    """Why the database cannot be served, of what its engine knows."""
    with _logged_in(conninfo, roles.CONTROL) as connection:
        return engine_of(connection).refusal(connection)


def _claim_of(conninfo: str) -> Claim:
    with _logged_in(conninfo, roles.CONTROL) as connection:
        return _claims.claim_of(connection)


def _admit_one(conninfo: str, epochs: EpochGuard) -> None:
    """Find a server that *epochs* admits. Of several hosts, each attempt tries another one first. Raises NotReady."""
    for attempts_left in reversed(range(_EPOCH_ATTEMPTS)):
        try:
            epochs.admit(epoch_of(conninfo))
        except WrongEpoch as refused:
            if not attempts_left:
                raise NotReady(f"the database server must not be used: {refused}") from None
        else:
            return


def epoch_of(conninfo: str) -> Epoch:
    """The epoch of the server that the serving roles reach through *conninfo*."""
    with _logged_in(conninfo, roles.CONTROL) as connection:
        return pool.epoch_of(connection)


def problems_of(conninfo: str, *, connections: int) -> list[str]:
    """The problems of the database that the serving roles reach through *conninfo*.

    Raises psycopg.OperationalError if a role cannot log in.
    """
    with _logged_in(conninfo, roles.CONTROL) as connection:
        if unfinished := restoring.problems(connection):
            return unfinished
    for role in roles.SERVING:
        with _logged_in(conninfo, role) as connection:
            try:
                pool.verify(connection, role)
            except WrongRole:
                return [f"{role} logs in as another role, or as one with too many privileges: run `muniment migrate`"]
            except WrongSettings:
                return [_NEEDS_SESSION_MODE]
    with _logged_in(conninfo, roles.CONTROL) as connection:
        if _is_shared(connection, conninfo):
            return [_NEEDS_SESSION_MODE]
        connection.apply_settings()
        found = gate.problems_of(connection, connections=connections)
        return [problem for problems in found.values() for problem in problems]


def described(conninfo: str) -> str | None:
    """What is to be said of the engine of the database. None for plain Postgres."""
    with _logged_in(conninfo, roles.CONTROL) as connection:
        return engine_of(connection).described(connection)


def warnings_of_all(placement: Placement, *, connections: int) -> list[str]:
    """What may go wrong later at each server that answers: see `warnings_of`."""
    found = []
    for name, conninfo in placement.servers.items():
        try:
            warnings = warnings_of(conninfo, connections=connections)
        except psycopg.OperationalError:
            if len(placement.servers) == 1:
                raise
        else:
            found += [f"{name}: {warning}" if name else warning for warning in warnings]
    return found


def warnings_of(conninfo: str, *, connections: int) -> list[str]:
    """What may go wrong later: servers may run out of connections, clocks differ, or prepared transactions keep locks.

    *connections* is how many a server about to start may open; 0 if none is.
    """
    with _logged_in(conninfo, roles.CONTROL) as connection:
        found = [*connection_budget.warnings(connection, connections), *clocks.warnings(connection)]
        return [*found, *engine_of(connection).warnings(connection)]


def has_host_key(placement: Placement) -> bool:
    """Whether any host can call: without a valid key, none can. A server that does not answer may have one."""
    for conninfo in placement.servers.values():
        try:
            with _logged_in(conninfo, roles.CONTROL) as connection:
                if values_of(connection, _QUERIES, "has_host_key")[0]:
                    return True
        except psycopg.OperationalError:
            if len(placement.servers) == 1:
                raise
            return True
    return False


def _logged_in(conninfo: str, role: str) -> RoleConnection:
    connection = RoleConnection.connect(libpq.make_conninfo(conninfo, user=role, **NETWORK), autocommit=True)
    connection.limit(_STATEMENT_SECONDS)
    return connection


def _is_shared(connection: RoleConnection, conninfo: str) -> bool:
    """Whether *connection* shares its backend with another one, or changes it between transactions.

    A pooler in transaction mode gives each transaction a backend that is idle.
    """
    with _logged_in(conninfo, roles.CONTROL) as other:
        first, of_other, again = connection.backend(), other.backend(), connection.backend()
    return first != again or first == of_other


def without(conninfo: str, *names: str) -> str:
    """*conninfo* without the parameters *names*."""
    given = {name: value for name, value in libpq.conninfo_to_dict(conninfo).items() if name not in names}
    return libpq.make_conninfo("", **given)


def cluster_directory(data_dir: Path) -> Path:
    """The directory of the embedded database: `DIR/postgres`.

    Root's Postgres runs as another account. If that cannot enter DIR (below /root, say), `DIR/postgres` becomes a
    link to a system directory, so that no permissions have to change.
    """
    kept = data_dir.absolute() / CLUSTER
    if os.geteuid() != 0 or kept.exists() or _others_may_enter(kept.parent):
        return kept.resolve()
    _SYSTEM_DIRECTORY.mkdir(mode=0o711, parents=True, exist_ok=True)
    prefix = f"{kept.parent.parent.name}-"
    system_directory = Path(tempfile.mkdtemp(prefix=prefix, dir=_SYSTEM_DIRECTORY))  # always a new one
    system_directory.chmod(0o711)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.symlink_to(system_directory)
    _LOG.warning(
        "the account that Postgres runs as cannot enter %s: the database is in %s", kept.parent, system_directory
    )
    return system_directory


def _others_may_enter(directory: Path) -> bool:
    existing = [path for path in (directory, *directory.parents) if path.exists()]
    return all(path.stat().st_mode & stat.S_IXOTH for path in existing)
