"""The checks of `muniment doctor`. Each problem says what to do."""

from __future__ import annotations

import json
import os
import resource
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import click
import psycopg
from psycopg import conninfo as libpq
from psycopg import pq

from muniment_server.admin import development
from muniment_server.admin.connection import Operator, connect_operator
from muniment_server.admin.database import has_cluster, message_of, require_passfile, servers_of
from muniment_server.admin.inspection import (
    NearlyFull,
    broken_index,
    broken_ledgers,
    broken_storage,
    erasing,
    nearly_full_agents,
    remote_chunks,
    waiting_chunks,
)
from muniment_server.admin.pages import damaged_relations
from muniment_server.admin.tenants import MovingTenant, moving_tenants
from muniment_server.background.census import checksum_failures
from muniment_server.domain.classification import Label
from muniment_server.embedded_postgres import EmbeddedPostgresError, conninfo_of_running, find_bindir
from muniment_server.monitor import log_settings
from muniment_server.postgres import roles
from muniment_server.postgres.disk import LEAST_FREE, free_bytes
from muniment_server.postgres.driver_errors import AFTER_DAMAGE, storage_advice
from muniment_server.postgres.engine import silent_node
from muniment_server.postgres.epochs import EpochGuard, WrongEpoch
from muniment_server.postgres.placement import Placement
from muniment_server.postgres.pool import next_passfile
from muniment_server.process.hardening import forbid_core_dumps
from muniment_server.runtime import claims, databases, restoring, servers_file
from muniment_server.runtime.configuration import DatabaseConfig, ServerConfig
from muniment_server.runtime.passfile import PassfileError, with_passfile
from muniment_server.runtime.supervisor import embedder_is_installed

_MOST_NAMED = 10
"""How many agents that are nearly full are named for each level."""
_CONNECT_SECONDS = "5"
REINDEX = "run `muniment reindex`"
"""The advice for what is derived from the items and differs from them in a database that serves."""


class Verdict(Enum):
    """What a finding means, by its sign."""

    GOOD = "✓"
    WORTH_KNOWING = "!"
    BAD = "✗"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    verdict: Verdict
    text: str

    def __str__(self) -> str:
        return f"{self.verdict.value} {self.text}"


def report(findings: Iterable[Finding], *, as_json: bool = False) -> bool:
    """Print *findings* as they are made; return whether none is bad."""
    healthy = True
    for finding in findings:
        if as_json:
            click.echo(json.dumps({"verdict": finding.verdict.name, "text": finding.text}))
        else:
            click.secho(str(finding), fg=_COLORS[finding.verdict])
        healthy = healthy and finding.verdict is not Verdict.BAD
    return healthy


def examine(config: DatabaseConfig, *, deep: bool = False) -> Iterator[Finding]:
    """Check the machine, then the database, or each server and what all have together. For *deep*: `check_database`."""
    yield from _check_machine()
    if config.servers_file is not None:
        for name, server in servers_of(config).items():
            for finding in _check_external_database(server, deep=deep):
                yield Finding(finding.verdict, f"{name}: {finding.text}")
        yield from _check_claims(servers_file.read(config.servers_file))
    elif config.url is None:
        yield from _check_embedded_database(config, config.data_dir, deep=deep)
    else:
        yield from _check_external_database(config, deep=deep)


def _check_claims(placement: Placement) -> Iterator[Finding]:
    """Whether each tenant is at one server, where its calls go. A server that does not answer is reported elsewhere."""
    found = {}
    for name, conninfo in placement.servers.items():
        try:
            served = with_passfile(databases.without(conninfo, "user", "password"), None)
            with psycopg.connect(_login(served, roles.CONTROL)) as connection:
                found[name] = claims.claim_of(connection)
        except psycopg.Error:
            continue
    wrong = [*map(_bad, claims.problems(found)), *map(_worth_knowing, claims.warnings(found, placement))]
    yield from wrong or [_good("each tenant is at one server, where its calls go")]


def _check_machine() -> Iterator[Finding]:
    forbid_core_dumps()
    if max(resource.getrlimit(resource.RLIMIT_CORE)) <= 1:  # bytes
        yield _good("core dumps are disabled: a server's memory does not reach a file")
    else:
        yield _bad("core dumps cannot be disabled: run under `ulimit -Hc 1`")


def _check_embedded_database(config: DatabaseConfig, data_dir: Path, *, deep: bool) -> Iterator[Finding]:
    try:
        yield _good(f"Postgres in {find_bindir()}")
    except EmbeddedPostgresError as error:
        yield _bad(str(error))
    try:
        databases.require_kept(config)
    except (databases.NotReady, WrongEpoch, OSError) as gone:
        yield _bad(str(gone))
        return
    yield _check_directory(data_dir)
    yield from _check_world_writable([data_dir, databases.cluster_directory(data_dir), config.epoch_directory])
    yield from _check_credentials(data_dir / development.FILE)
    if not has_cluster(data_dir):
        return
    yield _check_disk(databases.cluster_directory(data_dir))
    try:
        runs = conninfo_of_running(databases.cluster_directory(data_dir), user=databases.SUPERUSER) is not None
        yield _good(
            f"{'a' if runs else 'no'} server is running here{'' if runs else ': this check starts its database'}"
        )
        with databases.embedded_database(data_dir) as admin:
            conninfo = databases.without(admin, "user")
            yield from _check_epoch(config, conninfo)
            yield from check_database(conninfo, admin=admin, connections=0, deep=deep)
    except (EmbeddedPostgresError, databases.NotReady) as error:
        yield _bad(str(error))


def _check_directory(data_dir: Path) -> Finding:
    if not data_dir.exists():
        return _worth_knowing(
            f"{data_dir} does not exist yet: `muniment serve` creates it. To check another, give --data-dir; "
            "to check a Postgres of your own, --database-url"
        )
    if not data_dir.is_dir() or not os.access(data_dir, os.W_OK | os.X_OK):
        return _bad(f"{data_dir} is not writable: give it to this user (chown), or choose another with --data-dir")
    if not has_cluster(data_dir):
        return _worth_knowing(f"{data_dir} has no database yet: `muniment serve` creates it")
    return _good(f"{data_dir} contains a database and is writable")


def _check_world_writable(directories: Iterable[Path | None]) -> Iterator[Finding]:
    """Whether any of the *directories* is writable by every user."""
    for each in directories:
        if each is not None and each.exists() and each.stat().st_mode & stat.S_IWOTH:
            yield _bad(f"any user can replace what is in {each}: chmod o-w {each}, and find out whether one did")


def _check_disk(directory: Path) -> Finding:
    free, least = (size // 1024**2 for size in (free_bytes(directory), LEAST_FREE))
    if free >= least:
        return _good(f"the disk of {directory} has {free:,} MiB left")
    return _bad(f"the disk of {directory} has {free} MiB left, and below {least} nothing is stored: make room on it")


def _check_credentials(file: Path) -> Iterator[Finding]:
    if not file.exists():
        return
    if not file.is_file():
        yield _bad(f"{file} is not a regular file: remove it, and start `muniment serve --dev` again")
    elif file.stat().st_mode & 0o077:
        yield _bad(f"{file} contains a host key and other users can read it: chmod 600 {file}, and create another key")
    else:
        yield _good(f"{file} is closed to other users")


def _check_external_database(config: DatabaseConfig, *, deep: bool) -> Iterator[Finding]:
    assert config.url is not None
    try:
        if config.passfile is not None:
            require_passfile(config.passfile)
            yield _good(f"{config.passfile} is closed to other users")
        conninfo = with_passfile(databases.without(config.url, "user", "password"), config.passfile)
        if config.passfile is not None and next_passfile(config.passfile).exists():
            require_passfile(next_passfile(config.passfile))
            conninfo, finding = _check_rotation(conninfo, config.passfile)
            yield finding
    except PassfileError as error:
        yield _bad(str(error))
        return
    admin = config.url if "user" in libpq.conninfo_to_dict(config.url) else None
    yield from _check_epoch(config, conninfo)
    yield from check_database(conninfo, admin=admin, connections=ServerConfig(config).connections, deep=deep)


def _check_rotation(conninfo: str, passfile: Path) -> tuple[str, Finding]:
    """The conninfo with the passfile that the database accepts: the next one, once the passwords were rotated."""
    coming = next_passfile(passfile)
    rotated = libpq.make_conninfo(conninfo, passfile=str(coming))
    if any(_login_problems(conninfo, roles.CONTROL)) and not any(_login_problems(rotated, roles.CONTROL)):
        return rotated, _bad(f"the passwords were rotated: rename {coming} to {passfile.resolve()}")
    return conninfo, _good(f"{coming} has the passwords of a coming rotation")


def _check_epoch(config: DatabaseConfig, conninfo: str) -> Iterator[Finding]:
    """Whether `serve` would use the server. A database that cannot be reached is reported elsewhere."""
    if config.epoch_directory is None:
        several_hosts = "," in str(libpq.conninfo_to_dict(conninfo).get("host", ""))
        text = "not fenced: after a restart, `serve` would accept an old primary: give it a --state-dir"
        yield _bad(text) if several_hosts else _worth_knowing(text)
        return
    directory, guard = config.epoch_directory, EpochGuard(config.epoch_directory)
    try:
        guard.check(databases.epoch_of(conninfo))
    except WrongEpoch as refused:
        yield _bad(f"the database server is refused: {refused}")
    except psycopg.Error:
        return
    else:
        if (highest := guard.highest()) is not None:
            yield _good(f"an old primary is refused: {directory} has timeline {highest.timeline}")
        else:
            yield _worth_knowing(
                f"{directory} has no timeline, so an old primary would be accepted: if a server has used the "
                "directory, put back what was in it; if not, `muniment serve` keeps the highest timeline there"
            )


def check_database(conninfo: str, *, admin: str | None, connections: int, deep: bool = False) -> Iterator[Finding]:
    """Check what the serving roles reach through *conninfo*, and the ledgers as the administrator *admin*.

    With *deep*, check every table and index, too.
    """
    if silence := _silence(conninfo):
        yield silence
        return
    if unfinished := _unfinished(admin or _login(conninfo, roles.CONTROL)):
        yield from map(_bad, unfinished)
        return
    failed = [problem for role in roles.SERVING for problem in _login_problems(conninfo, role)]
    if failed and "password" in failed[0] and "passfile" not in libpq.conninfo_to_dict(conninfo):
        failed = [f"{failed[0]}; no passfile is named: give --passfile FILE, or set MUNIMENT_PASSFILE"]
    yield from _judged(failed, f"the {len(roles.SERVING)} serving roles can log in")
    if not failed:
        yield from _check_grants(conninfo, connections)
    yield from _check_ledgers(admin)
    if not failed:
        yield from _check_checksums(conninfo)  # last: the other checks may find damage
    if deep:
        yield from _check_relations(admin)


def _silence(conninfo: str) -> Finding | None:
    """That no server answers, said once instead of for each role. None if one does, even if it refuses a login."""
    try:
        psycopg.connect(_login(conninfo, roles.CONTROL)).close()
    except psycopg.Error as error:
        # Over TLS, a wrong certificate would count as no answer.
        in_clear = libpq.make_conninfo(_login(conninfo, roles.CONTROL), sslmode="disable", gssencmode="disable")
        if pq.PGconn.ping(in_clear.encode()) == pq.Ping.NO_RESPONSE:
            return _bad(
                f"the database does not answer ({message_of(error)}): start it, or correct its address, and run doctor "
                "again"
            )
    return None


def _unfinished(conninfo: str) -> list[str]:
    """That a restore has not ended, so that nothing else can be checked. A failed login is reported elsewhere."""
    try:
        with psycopg.connect(conninfo) as connection:
            return restoring.problems(connection)
    except psycopg.Error:
        return []


def _login_problems(conninfo: str, role: str) -> Iterator[str]:
    try:
        psycopg.connect(_login(conninfo, role)).close()
    except psycopg.Error as error:
        remedy = storage_advice(error) or "check the address and the passfile, or `muniment migrate`"
        yield f"{role} cannot log in ({message_of(error)}): {remedy}"


def _login(conninfo: str, role: str) -> str:
    return libpq.make_conninfo(conninfo, user=role, connect_timeout=_CONNECT_SECONDS)


def _check_grants(conninfo: str, connections: int) -> Iterator[Finding]:
    engine = None
    try:
        problems = databases.problems_of(conninfo, connections=connections)
        engine = databases.described(conninfo)
        with suppress(psycopg.errors.InvalidSchemaName):  # without a schema, which is a problem already
            problems += databases.warnings_of(conninfo, connections=0)
    except psycopg.Error as error:
        problems = [_unchecked("the grants", error, "run `muniment migrate`")]
    yield from _judged(problems, "schema, grants, locale, durability and connection limit are as required")
    if engine and not problems:
        yield _good(engine)
    yield from _check_log(conninfo, reported=problems)


def _unchecked(what: str, error: psycopg.Error, remedy: str) -> str:
    if node := silent_node(error):
        return (
            f"{what} cannot be checked, because the node {node} does not answer: start it, and run doctor again; if it "
            "runs, it refuses a login: `muniment migrate --rotate`"
        )
    return f"{what} cannot be checked ({message_of(error)}): {storage_advice(error) or remedy}"


def _check_log(conninfo: str, *, reported: Collection[str]) -> Iterator[Finding]:
    """What Postgres would log by its own settings, without those that the server makes for its connections."""
    try:
        with psycopg.connect(_login(conninfo, roles.CONTROL), autocommit=True) as connection:
            found = log_settings.findings(connection)
    except psycopg.Error as error:
        yield _bad(f"the settings of the database's log cannot be read ({message_of(error)}): run doctor again")
        return
    yield from (_bad(finding.text) for finding in found if finding.text not in reported)
    if not found:
        yield _good(
            "the database logs no parameters; and no row, whatever log_error_verbosity: no call breaks a constraint"
        )


def _check_ledgers(admin: str | None) -> Iterator[Finding]:
    if admin is None:
        yield _worth_knowing("the ledgers were not checked: that needs an administrator in the URL")
        return
    try:
        with connect_operator(admin) as operator:
            found = [*_found_by(operator)]
    except psycopg.Error as error:
        found = [_bad(_unchecked("the ledgers", error, "run `muniment migrate`, or name an administrator"))]
    yield from found


def _found_by(operator: Operator) -> Iterator[Finding]:
    """What an operator finds in the rows of a database, level by level."""
    broken = [(level, count) for level, count in broken_ledgers(operator).items() if count]
    yield from _judged(
        (f"{count} items at {level.name} are lost, or have lost versions: {AFTER_DAMAGE}" for level, count in broken),
        "the ledgers are complete: no version is missing",
    )
    remedy = AFTER_DAMAGE if broken else REINDEX
    unindexed = sum(broken_index(operator).values())
    inconsistent = [f"the search index has {unindexed} inconsistencies: {remedy}"] if unindexed else []
    yield from _judged(inconsistent, "the search index matches the items")
    yield _check_embeddings(*waiting_chunks(operator))
    waiting, made = remote_chunks(operator)
    if waiting or made:
        yield _good(
            f"{made:,} embeddings are by models at addresses, {waiting:,} more are queued, including any for models "
            "that no server uses: `muniment reindex --embeddings --remove-others` removes those"
        )
    miscounted = ((level.name, count) for level, count in broken_storage(operator).items() if count)
    wrong = (f"{n:,} agents at {level} have wrong counts of what they store: {remedy}" for level, n in miscounted)
    yield from _judged(wrong, "what each agent stores is counted right")
    yield from _check_limits(nearly_full_agents(operator))
    yield from map(_describe_move, moving_tenants(operator))
    agents, rows = erasing(operator)
    if agents:
        yield _good(f"{agents} deleted agents are being erased while a server runs: {rows} items and versions are left")


def _check_checksums(conninfo: str) -> Iterator[Finding]:
    """How often Postgres has read damaged pages."""
    with psycopg.connect(_login(conninfo, roles.CONTROL)) as connection:
        failures = checksum_failures(connection)
    if failures is None:
        yield _worth_knowing("damaged pages may stay unnoticed: stop Postgres, and run `pg_checksums --enable`")
    elif failures:
        yield _bad(f"Postgres has read damaged pages (reads: {failures:,}): {AFTER_DAMAGE}")
    else:
        yield _good("Postgres has read no damaged page")


def _check_relations(admin: str | None) -> Iterator[Finding]:
    if admin is None:
        yield _bad("the tables and indexes were not checked: that needs an administrator in the URL")
        return
    try:
        damaged = list(damaged_relations(admin))
    except psycopg.Error as error:
        damaged = [_unchecked("the tables and indexes", error, "have a superuser run `CREATE EXTENSION amcheck`")]
    yield from _judged(damaged, "every table and index of this server is undamaged")


def _check_limits(nearly_full: Mapping[Label, Sequence[NearlyFull]]) -> Iterator[Finding]:
    for level, agents in nearly_full.items():
        for agent in agents[:_MOST_NAMED]:
            yield _worth_knowing(
                f"{agent.agent_id} of {agent.tenant} is nearly full at {level.name}: {agent.items:,} of "
                f"{agent.max_items:,} items, {agent.bytes:,} of {agent.max_bytes:,} bytes; raise its limits "
                "(`muniment agent update`), or remove old versions (`muniment purge`)"
            )
        if len(agents) > _MOST_NAMED:
            yield _worth_knowing(f"{len(agents) - _MOST_NAMED:,} more agents are nearly full at {level.name}")
    if not any(nearly_full.values()):
        yield _good("no agent is nearly full")


def _describe_move(found: MovingTenant) -> Finding:
    if found.moving_to is not None:
        return _worth_knowing(
            f"the tenant {found.tenant} is moving to {found.moving_to}, and no server serves it until the move has "
            f"ended. If no command is moving it, run `muniment tenant move {found.tenant} --to {found.moving_to}`"
        )
    return _worth_knowing(
        f"this server has a copy of the tenant {found.tenant}, by a move from {found.moving_from} that has not ended. "
        f"If {found.moving_from} serves the tenant, leave it: the copy is not served. Otherwise, if no command is "
        f"moving it, run `muniment tenant move {found.tenant} --to NAME` with the name of this server"
    )


def _check_embeddings(waiting: int, outdated: int) -> Finding:
    if not embedder_is_installed():
        return _good("search uses words alone: install the extra `semantic` for semantic search")
    if outdated:
        return _bad(f"{outdated} chunks have embeddings of another version: run `muniment reindex`")
    if waiting:
        return _good(f"search uses words and embeddings; {waiting} chunks are still queued for embedding")
    return _good("search uses words and embeddings")


def _judged(problems: Iterable[str], otherwise: str) -> Iterator[Finding]:
    """Each of the *problems*; if there are none, what is good *otherwise*."""
    yield from [*map(_bad, problems)] or [_good(otherwise)]


def _good(text: str) -> Finding:
    return Finding(Verdict.GOOD, text)


def _worth_knowing(text: str) -> Finding:
    return Finding(Verdict.WORTH_KNOWING, text)


def _bad(text: str) -> Finding:
    return Finding(Verdict.BAD, text)


_COLORS = {Verdict.GOOD: None, Verdict.WORTH_KNOWING: "yellow", Verdict.BAD: "red"}
