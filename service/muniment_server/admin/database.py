"""How operators' commands connect to the database, and how they report its errors."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import click
import psycopg
from click.core import ParameterSource
from psycopg import conninfo as libpq
from psycopg import errors

from muniment.cli.failures import Failure, report_file_errors
from muniment_server.admin.connection import Operator, connect_operator
from muniment_server.domain.classification import Classification
from muniment_server.embedded_postgres import EmbeddedPostgresError
from muniment_server.embedder.remote.configuration import RemoteConfigError
from muniment_server.postgres import roles
from muniment_server.postgres.driver_errors import storage_advice
from muniment_server.postgres.engine import engine_of, silent_node
from muniment_server.postgres.epochs import EpochGuard, WrongEpoch
from muniment_server.postgres.migrate import CannotMigrate
from muniment_server.postgres.pool import NotCommitted, epoch_of
from muniment_server.process.assignment import epoch_directory
from muniment_server.runtime import databases, restoring
from muniment_server.runtime.child import ChildFailed
from muniment_server.runtime.configuration import ConfigError, DatabaseConfig, nearest_data_dir
from muniment_server.runtime.databases import NotReady
from muniment_server.runtime.passfile import PassfileError
from muniment_server.runtime.servers_file import is_misread
from muniment_server.runtime.servers_file import read as read_servers

Option: TypeAlias = Callable[[Callable[..., None]], Callable[..., None]]
LEVEL = click.Choice(Classification, case_sensitive=False)
"""The type of options that take a level, in upper or lower case."""
_PATH = click.Path(path_type=Path)
_EXPLAINED = (CannotMigrate, ChildFailed, ConfigError, EmbeddedPostgresError, NotReady, RemoteConfigError)
"""Errors whose text says what to do."""


def _checked_url(ctx: click.Context, param: click.Parameter, url: str | None) -> str | None:
    """Reject a password on the command line, and a URL that libpq would misread and quote in its error."""
    if url is None:
        return None
    if is_misread(url):
        raise click.BadParameter(
            "is not a connection URL: give postgresql://host:port/database, and escape special characters: %40 (@), "
            "%2F (/), %3A (:)"
        )
    on_command_line = ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
    if on_command_line and "password" in libpq.conninfo_to_dict(url):
        raise click.BadParameter(
            "every user of this machine can see a password on the command line: "
            "put the URL in MUNIMENT_DATABASE_URL, or the password in ~/.pgpass"
        )
    return url


def option(name: str, metavar: str, text: str, *names: str, **more: Any) -> Option:
    """An option that a variable of the environment may give, too: MUNIMENT_ and its name."""
    variable = f"MUNIMENT_{name.removeprefix('--').replace('-', '_').upper()}"
    return click.option(name, *names, envvar=variable, show_envvar=True, metavar=metavar, help=text, **more)


data_dir_option = option(
    "--data-dir",
    "DIR",
    "The directory of the built-in database.",
    type=_PATH,
    default=nearest_data_dir,
    show_default=".muniment if it exists here, otherwise muniment in your data home",
)
_DATABASE_URL = option("--database-url", "URL", "Use this database instead of the built-in one.", callback=_checked_url)
_PASSFILE = option(
    "--passfile", "FILE", "The passwords of the serving roles, written by `muniment migrate`.", type=_PATH
)
_STATE_DIR = option(
    "--state-dir",
    "DIR",
    "Where the server keeps the highest timeline of the database that it has seen. One directory per database.",
    type=_PATH,
)
_SERVERS = option(
    "--servers", "FILE", "Use the database servers that this file names, instead of one.", "servers_file", type=_PATH
)
server_option = click.option("--server", metavar="NAME", help="Which of the database servers that --servers names.")


def with_database(*, url: bool = True, passfile: bool = False, servers: bool = False) -> Option:
    """Give a command the options for a database, and an argument *config*. Errors of the database become Failures."""
    chosen = ((True, data_dir_option), (url, _DATABASE_URL), (passfile, _PASSFILE), (servers, _SERVERS))
    options = [*(each for is_chosen, each in chosen if is_chosen), _STATE_DIR]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(
            *,
            data_dir: Path,
            state_dir: Path | None,
            database_url: str | None = None,
            passfile: Path | None = None,
            servers_file: Path | None = None,
            **arguments: Any,
        ) -> None:
            with report_database_errors():
                command(config=DatabaseConfig(data_dir, database_url, passfile, state_dir, servers_file), **arguments)

        return with_options(run, options)

    return decorate


def with_options(command: Callable[..., None], options: Sequence[Option]) -> Callable[..., None]:
    """*command* with these options."""
    return functools.reduce(lambda wrapped, each: each(wrapped), reversed(options), command)


def with_operator(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options for a database, and an argument *operator*, connected to it."""

    @with_database(servers=True)
    @server_option
    @functools.wraps(command)
    def run(*, config: DatabaseConfig, server: str | None, **arguments: Any) -> None:
        with operator_of(chosen_database(config, server)) as operator:
            command(operator=operator, **arguments)

    return run


@contextmanager
def operator_of(config: DatabaseConfig) -> Iterator[Operator]:
    """An operator, connected to a database. Raises Failure, WrongEpoch, NotReady or psycopg.Error."""
    with existing_database(config) as admin, connect_operator(admin) as operator:
        yield operator


def servers_of(config: DatabaseConfig) -> dict[str, DatabaseConfig]:
    """The databases of the servers in the file of *config*, by name and in its order. Raises ConfigError or OSError.

    The serving roles have a passfile there, and operators their own passwords.
    """
    if config.servers_file is None:
        return {}
    if config.url is not None:
        raise ConfigError(
            "a file of servers and a URL are given: omit --database-url and unset MUNIMENT_DATABASE_URL, or omit "
            "--servers and unset MUNIMENT_SERVERS"
        )
    return {name: _server(config, name, url) for name, url in read_servers(config.servers_file).servers.items()}


def _server(config: DatabaseConfig, name: str, url: str) -> DatabaseConfig:
    passfile = libpq.conninfo_to_dict(url).get("passfile")
    if "PGUSER" in os.environ:  # libpq's own variable: `doctor` must know whether there is an administrator
        url = libpq.make_conninfo(url, user=os.environ["PGUSER"])
    state_dir = None if config.state_dir is None else epoch_directory(config.state_dir, name)
    without = databases.without(url, "passfile")
    return DatabaseConfig(config.data_dir, without, Path(str(passfile)) if passfile else None, state_dir)


def chosen_database(config: DatabaseConfig, server: str | None) -> DatabaseConfig:
    """The one database of the options of a command. Raises ConfigError, or OSError for a missing file."""
    if config.servers_file is None:
        if server is not None:
            raise ConfigError("--server needs --servers, the file that names the servers")
        return config
    servers = servers_of(config)
    if server is None:
        raise ConfigError(f"this command is for one server: give --server, one of {', '.join(servers)}")
    if server not in servers:
        raise ConfigError(f"there is no server {server}: choose one of {', '.join(servers)}")
    return servers[server]


@contextmanager
def existing_database(config: DatabaseConfig, *, overtaken_too: bool = False) -> Iterator[str]:
    """The administrator's conninfo. Raises Failure if there is no database, rather than create one; and NotReady.

    Raises WrongEpoch if `serve` would refuse the server, unless *overtaken_too*.
    """
    if config.url is None:
        databases.require_kept(config)
    if config.url is None and not has_cluster(config.data_dir):
        raise Failure(
            f"there is no database in {config.data_dir}",
            "choose another with --data-dir or --database-url, or create one: muniment serve",
        )
    with databases.operators_database(config) as admin:
        if overtaken_too:
            require_coordinator(admin)
        else:
            require_newest_server(admin, config)
        yield admin


def require_newest_server(admin: str, config: DatabaseConfig) -> None:
    """Raise WrongEpoch if `serve` would refuse the server of the conninfo *admin*, and Failure for a cluster's worker.

    Every command calls it before it uses the database, except `doctor`, which reports the refusal, and `database
    adopt`, which lifts that of the epoch. On a server that was overtaken, a revoked key would stay valid on the new
    one, and the audit rows of what was read would be missing there.
    """
    require_coordinator(admin)
    with psycopg.connect(admin, autocommit=True) as connection:
        EpochGuard(config.epoch_directory).check(epoch_of(connection))


def require_coordinator(admin: str) -> None:
    """Raise Failure if the conninfo *admin* is of a cluster's worker."""
    with psycopg.connect(admin, autocommit=True) as connection:
        if wrong := engine_of(connection).wrong_node(connection):
            raise Failure(*wrong)


def has_cluster(data_dir: Path) -> bool:
    """Whether *data_dir* contains a database, or a restore into it has begun."""
    directory = data_dir / databases.CLUSTER
    return (directory / "data").exists() or bool(restoring.problems_in(directory))


def require_passfile(passfile: Path) -> None:
    """Raise PassfileError where libpq would silently ignore the file."""
    if not passfile.is_file():
        raise PassfileError(
            f"there is no passfile {passfile}: create it with muniment migrate --database-url URL --passfile {passfile}"
        )
    if passfile.stat().st_mode & 0o077:
        raise PassfileError(f"{passfile} is open to other users, so libpq would ignore it: chmod 600 {passfile}")


@contextmanager
def report_database_errors() -> Iterator[None]:
    """Turn an error of the database into a Failure."""
    try:
        with report_file_errors():
            yield
    except _EXPLAINED as error:
        raise Failure("; ".join(str(error).splitlines())) from None
    except WrongEpoch as refused:
        raise Failure(f"the database server is refused: {refused}") from None
    except NotCommitted:
        raise Failure(
            "a node of the cluster did not confirm the commit, so it may still show the old rows",
            "start the node, wait until the cluster has recovered its transactions, and run the command again: it may "
            "have missed what the node still showed",
        ) from None
    except psycopg.Error as error:
        raise _failure_of(error) from None


def _failure_of(error: psycopg.Error) -> Failure:
    message = message_of(error)
    if advice := storage_advice(error):
        return Failure(f"the database reported an error: {message}", advice)
    if node := silent_node(error):
        return Failure(
            f"the node {node} does not answer",
            "start it, and run the command again; if it runs, it refuses a login: muniment migrate --rotate",
        )
    match error:
        case errors.InsufficientPrivilege():
            return Failure(message, "connect as the administrator who ran `muniment migrate`, or a superuser")
        case errors.InvalidSchemaName() | errors.UndefinedTable() | errors.UndefinedFunction():
            return Failure(message, "prepare the database first: muniment migrate")
        case errors.DeadlockDetected() | errors.LockNotAvailable():
            return Failure(f"other transactions were in the way: {message}", "run the command again")
        case psycopg.OperationalError():
            return Failure(f"the database cannot be reached: {message}", _hint(error))
    return Failure(f"the database reported an error: {message}", "find the cause: muniment doctor")


def message_of(error: psycopg.Error) -> str:
    """The database's message, in one line, without details and statement, which may contain content."""
    return " ".join((error.diag.message_primary or str(error) or type(error).__name__).split())


def _hint(error: psycopg.Error) -> str:
    if roles.OWNER in str(error):
        return "prepare the database first: muniment migrate"
    if "password" in str(error):
        return "check user and password: the server uses --passfile, other commands ~/.pgpass or PGPASSWORD"
    return (
        "check that it is running, and that host, port and database name are right; "
        "create a database that is missing: createdb NAME"
    )
