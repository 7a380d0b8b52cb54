"""The checks of `muniment doctor`. Each finding that is not good says what to do."""

from __future__ import annotations

import platform
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from os import W_OK, X_OK
from os import access as may
from pathlib import Path

import psycopg
from psycopg import conninfo as libpq

from muniment_server.admin import development
from muniment_server.admin.database import has_cluster, own_database, require_passfile, said_by
from muniment_server.admin.operator import operating
from muniment_server.embedded_postgres import EmbeddedPostgresError, conninfo_of_running, find_bindir
from muniment_server.postgres import roles
from muniment_server.runtime import databases
from muniment_server.runtime.configuration import DatabaseConfig, ServerConfig
from muniment_server.runtime.hardening import forbid_core_dumps
from muniment_server.runtime.passfile import PassfileError, with_passfile
from muniment_server.runtime.supervisor import embedder_is_installed

_OLDEST_PYTHON = (3, 11)
_CONNECT_SECONDS = "5"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    good: bool
    text: str

    def __str__(self) -> str:
        return f"{'✓' if self.good else '✗'} {self.text}"


def examine(config: DatabaseConfig) -> Iterator[Finding]:
    """All findings: the machine first, then the database."""
    yield from _machine()
    if config.url is None:
        yield from _own_database(config.data_dir)
    else:
        yield from _other_database(config, config.url)


def _machine() -> Iterator[Finding]:
    if sys.version_info >= _OLDEST_PYTHON:
        yield _good(f"Python {platform.python_version()}")
    else:
        yield _bad(f"Python {platform.python_version()}: install 3.11 or newer")
    forbid_core_dumps()
    if max(resource.getrlimit(resource.RLIMIT_CORE)) <= 1:  # bytes
        yield _good("no core dumps: a server's memory does not end in a file")
    else:
        yield _bad("core dumps cannot be turned off: run under `ulimit -Hc 1`")


def _own_database(data_dir: Path) -> Iterator[Finding]:
    try:
        yield _good(f"Postgres in {find_bindir()}")
    except EmbeddedPostgresError as error:
        yield _bad(str(error))
    yield _directory(data_dir)
    yield from _credentials(data_dir / development.FILE)
    if not has_cluster(data_dir):
        return
    try:
        yield _running(data_dir)
        with own_database(data_dir) as admin:
            yield from _database(databases.without_user(admin), admin=admin, connections=0)
    except EmbeddedPostgresError as error:
        yield _bad(str(error))


def _directory(data_dir: Path) -> Finding:
    if not data_dir.exists():
        return _good(f"{data_dir} is not there yet: `muniment serve` makes it")
    if not data_dir.is_dir() or not may(data_dir, W_OK | X_OK):
        return _bad(f"{data_dir} cannot be written: give it to this user (chown), or name another with --data-dir")
    if not has_cluster(data_dir):
        return _good(f"{data_dir} has no database yet: `muniment serve` makes it")
    return _good(f"{data_dir} holds a database and can be written")


def _credentials(file: Path) -> Iterator[Finding]:
    if not file.exists():
        return
    if file.stat().st_mode & 0o077:
        yield _bad(f"{file} holds a host key and is open to others: chmod 600 {file}, and make another key")
    else:
        yield _good(f"{file} is closed to others")


def _running(data_dir: Path) -> Finding:
    if conninfo_of_running(databases.cluster_directory(data_dir), user=databases.SUPERUSER) is None:
        return _good("no server runs here: its database is started for this look")
    return _good("a server runs here")


def _other_database(config: DatabaseConfig, url: str) -> Iterator[Finding]:
    try:
        if config.passfile is not None:
            require_passfile(config.passfile)
            yield _good(f"{config.passfile} is closed to others")
        conninfo = with_passfile(_without_login(url), config.passfile)
    except PassfileError as error:
        yield _bad(str(error))
        return
    admin = url if "user" in libpq.conninfo_to_dict(url) else None
    yield from _database(conninfo, admin=admin, connections=ServerConfig(config).connections)


def _without_login(url: str) -> str:
    given = libpq.conninfo_to_dict(url)
    return libpq.make_conninfo("", **{name: value for name, value in given.items() if name not in {"user", "password"}})


def _database(conninfo: str, *, admin: str | None, connections: int) -> Iterator[Finding]:
    closed = [problem for role in roles.SERVING for problem in _login_problem(conninfo, role)]
    yield from closed
    if not closed:
        yield _good(f"the {len(roles.SERVING)} serving roles log in")
        yield from _walls(conninfo, connections)
    yield from _ledgers(admin)


def _login_problem(conninfo: str, role: str) -> Iterator[Finding]:
    try:
        psycopg.connect(libpq.make_conninfo(conninfo, user=role, connect_timeout=_CONNECT_SECONDS)).close()
    except psycopg.Error as error:
        yield _bad(
            f"{role} does not log in ({said_by(error)}): check the address and the passfile, or `muniment migrate`"
        )


def _walls(conninfo: str, connections: int) -> Iterator[Finding]:
    try:
        problems = databases.problems_of(conninfo, connections=connections)
    except psycopg.Error as error:
        problems = [f"the walls cannot be looked at ({said_by(error)}): run `muniment migrate`"]
    yield from map(_bad, problems)
    if not problems:
        yield _good("the walls stand: schema, grants, locale, durability, connections")


def _ledgers(admin: str | None) -> Iterator[Finding]:
    if admin is None:
        yield _good("the ledgers were not looked at: name an administrator in the URL for that")
        return
    try:
        with operating(admin) as operator:
            broken, unindexed = operator.broken_ledgers(), operator.broken_index()
            waiting, outdated = operator.waiting_chunks()
    except psycopg.Error as error:
        yield _bad(
            f"the ledgers cannot be looked at ({said_by(error)}): run `muniment migrate`, or name an administrator"
        )
        return
    for level, count in broken.items():
        if count:
            yield _bad(f"{count} items at {level.name} miss versions: keep the database as it is, and restore a backup")
    if not any(broken.values()):
        yield _good("the ledgers are whole: no version is missing")
    unknown = sum(unindexed.values())
    if unknown:
        yield _bad(f"search does not know {unknown} items as they are: run `muniment reindex`")
    else:
        yield _good("search knows every item as it is")
    yield _meaning(waiting, outdated)


def _meaning(waiting: int, outdated: int) -> Finding:
    if not embedder_is_installed():
        return _good("search goes by words alone: for meaning, too, install the extra `semantic`")
    if outdated:
        return _bad(f"{outdated} pieces were embedded by another version: run `muniment reindex`")
    if waiting:
        return _good(f"search goes by words and meaning; {waiting} pieces wait for their vectors")
    return _good("search goes by words and meaning")


def _good(text: str) -> Finding:
    return Finding(True, text)


def _bad(text: str) -> Finding:
    return Finding(False, text)
