"""`muniment host-key`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import timedelta
from uuid import UUID

import click

from muniment.cli.failures import Failure
from muniment.cli.groups import Group
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import DURATION, TEXT
from muniment_server.admin.connection import Operator
from muniment_server.admin.database import (
    LEVEL,
    chosen_database,
    operator_of,
    server_option,
    servers_of,
    with_database,
    with_operator,
)
from muniment_server.admin.host_keys import create_host_key, list_host_keys, revoke_host_key
from muniment_server.admin.sessions import close_sessions_of_host_key, close_twice, sessions_of_host_key
from muniment_server.domain import tokens
from muniment_server.domain.classification import Classification, Integrity
from muniment_server.domain.ids import RandomIds, TenantNumber
from muniment_server.postgres.pool import NotCommitted
from muniment_server.runtime import servers_file
from muniment_server.runtime.claims import tenants_of
from muniment_server.runtime.configuration import DatabaseConfig

_COLUMNS = (
    "host_key_id", "tenant", "ceiling", "only_service", "integrity", "may_declassify", "may_endorse", "create_time",
    "expire_time", "freeze_time", "revoke_time", "name",
)  # fmt: skip
_UNTRUSTED_ONLY = "sessions"
SERVICES = {
    "agents": "AgentService",
    "sessions": "SessionService",
    "releases": "ReleaseService",
    "audit": "AuditService",
}
RIGHTS = ("declassify", "endorse")


class NameType(click.ParamType[str]):
    """A name that fits a column of a table: 1 to 64 printable characters."""

    name = "name"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not (text.isprintable() and 1 <= len(text.strip()) == len(text) <= 64):
            self.fail("is not a name: give 1 to 64 printable characters, with no space at the ends", param, ctx)
        return text


close_option = click.option(
    "--close-sessions/--keep-sessions",
    "close",
    default=None,
    help="Close the sessions that were opened by it, or leave them open. By default, a terminal is asked.",
)


integrity_option = click.option(
    "--integrity",
    type=click.Choice(Integrity, case_sensitive=False),
    default=Integrity.TRUSTED,
    help="untrusted: the key opens no trusted session, and reaches no session of other keys. Implies --only sessions.",
)

may_option = click.option(
    "--may",
    type=click.Choice(RIGHTS),
    multiple=True,
    help="A right at the release desk: to a lower level (declassify), or to TRUSTED (endorse). Repeatable.",
)


def service_for(only: str | None, integrity: Integrity, may: tuple[str, ...]) -> str | None:
    """The service that `--only` names. A key for untrusted sessions manages nothing that trusted sessions see."""
    if integrity is Integrity.UNTRUSTED:
        if may:
            raise click.UsageError("--integrity untrusted is for sessions only: leave out --may")
        if only not in {None, _UNTRUSTED_ONLY}:
            raise click.UsageError(f"--integrity untrusted implies --only {_UNTRUSTED_ONLY}: leave out --only {only}")
        only = _UNTRUSTED_ONLY
    return SERVICES[only] if only is not None else None


@click.group(cls=Group)
def host_key() -> None:
    """Host keys: the credentials of the runtimes around models.

    A key belongs to a tenant and reaches up to its ceiling. A tenant may have several: to rotate one, create another,
    give it to the hosts, and revoke the first.

    \b
    Examples:
      muniment host-key create --tenant acme --ceiling confidential --name support
      muniment host-key create --tenant acme --ceiling internal --only audit --expires-in 30d
      muniment host-key list
    """


@host_key.command
@click.option(
    "--tenant", required=True, type=TEXT, help="The tenant that the key belongs to. It is created if it does not exist."
)
@click.option("--ceiling", required=True, type=LEVEL, help="The highest level it may open or raise a session to.")
@click.option(
    "--name", type=NameType(), help="What the key is for, such as chatbot. Lists of keys and of events show it."
)
@click.option(
    "--expires-in", "lifetime", type=DURATION, help="How long it is valid, such as 90d. The default is forever."
)
@click.option("--only", type=click.Choice(list(SERVICES)), help="The one thing it is for. The default is everything.")
@integrity_option
@may_option
@click.option("--quiet", is_flag=True, help="Print only the key.")
@with_database(servers=True)
@server_option
@with_output
def create(
    output: Output,
    config: DatabaseConfig,
    tenant: str,
    ceiling: Classification,
    name: str | None,
    lifetime: timedelta | None,
    only: str | None,
    integrity: Integrity,
    may: tuple[str, ...],
    quiet: bool,
    server: str | None,
) -> None:
    """Create a key and print it. It cannot be shown again.

    With --servers, --server says where a new tenant is created; it gets a number that no other server gives.

    \b
    Examples:
      muniment host-key create --tenant acme --ceiling confidential
      muniment host-key create --tenant acme --ceiling internal --only audit --expires-in 30d
      muniment host-key create --tenant acme --ceiling internal --integrity untrusted
      muniment host-key create --tenant acme --ceiling internal --only releases --may endorse
      muniment host-key create --tenant acme --ceiling internal --servers servers.toml --server b
      export MUNIMENT_HOST_KEY=$(muniment host-key create --tenant acme --ceiling restricted --quiet)
    """
    only_service = service_for(only, integrity, may)
    created, confirmed = None, True
    chosen = chosen_database(config, server)
    taken = taken_elsewhere(config, server, tenant)
    try:
        with operator_of(chosen) as operator:
            created = create_host_key(
                operator,
                tenant=tenant,
                ceiling=ceiling,
                name=name,
                lifetime=lifetime,
                only_service=only_service,
                integrity=integrity,
                may=may,
                taken=taken,
                ids=RandomIds(),
            )
    except NotCommitted:  # at the end, so there is a key: it will be committed, and it cannot be shown later
        confirmed = False
    assert created is not None  # the block has ended
    host_key_id, key = created
    if server is not None:
        print_line_for_file(config, server, key)
    if quiet:
        click.echo(key)
    else:
        row = {
            "host_key_id": host_key_id,
            "name": name,
            "tenant": tenant,
            "ceiling": ceiling,
            "only_service": only_service,
            "integrity": integrity,
            "may": ", ".join(may),
            "host_key": key,
        }
        output.record(row, tuple(row))
        print_note("Store the key now: it cannot be shown again.")
    if not confirmed:
        raise Failure(
            "a node of the cluster did not confirm the commit",
            "keep the key: it is accepted once the node is back and the cluster has recovered its transactions",
        )


def taken_elsewhere(config: DatabaseConfig, server: str | None, tenant: str) -> frozenset[TenantNumber]:
    """The numbers of the tenants of other servers.

    One of them may have been given by this server before it was restored from an older backup. Raises Failure if
    another server has *tenant*: the command would create a second one of the same name.
    """
    taken: frozenset[TenantNumber] = frozenset()
    for other, database in servers_of(config).items():
        if other != server:
            with operator_of(database) as operator:
                if operator.find_tenant(tenant) is not None:
                    raise Failure(f"the server {other} has that tenant", f"give --server {other}")
                taken |= tenants_of(operator.connection)
    return taken


def print_line_for_file(config: DatabaseConfig, server: str, key: str) -> None:
    """Say what the file of servers needs, if calls with *key* would not go to *server*."""
    token = tokens.parse(key)
    if config.servers_file is None or token is None:
        return
    if servers_file.read(config.servers_file).server_of(token.tenant) != server:
        print_note(f"{servers_file.line_to_write(token.tenant, server)}. The key is accepted after that.")


@host_key.command("list")
@with_output
@with_operator
def list_(operator: Operator, output: Output) -> None:
    """List all keys, including expired and revoked ones. The keys themselves are not stored.

    \b
    Examples:
      muniment host-key list
      muniment host-key list --json
    """
    output.rows(
        ({name: asdict(key)[name] for name in _COLUMNS} for key in list_host_keys(operator) if not key.issuer), _COLUMNS
    )


@host_key.command
@click.argument("host_key_id", metavar="ID", type=click.UUID)
@close_option
@with_operator
def revoke(operator: Operator, host_key_id: UUID, close: bool | None) -> None:
    """Revoke a key. Its next call fails, and so does that of a session that it opened, if you close these.

    Sessions that stay open may be used until they expire, for up to 30 days. To close those of a key that is already
    revoked, run the command again with --close-sessions.

    \b
    Examples:
      muniment host-key revoke 5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77
      muniment host-key revoke 5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77 --close-sessions
    """
    revoke_key(operator, host_key_id, close)


def revoke_key(operator: Operator, host_key_id: UUID, close: bool | None) -> None:
    """Revoke a key, and *close* the sessions that it opened, or not. None: ask at the terminal."""
    if close is None and (sys.stdin is None or not sys.stdin.isatty()):
        raise Failure(
            "nothing was done: this is not a terminal, so the command cannot ask about the key's open sessions",
            "give --close-sessions if the key was stolen, or --keep-sessions if it is replaced",
        )
    is_new = revoke_host_key(operator, host_key_id)
    if not is_new and all(each.host_key_id != host_key_id for each in list_host_keys(operator)):
        raise Failure("there is no such key", "list the keys: muniment host-key list")
    print_note("Revoked." if is_new else "It was already revoked.")
    count = len(sessions_of_host_key(operator, host_key_id))
    if count and not close:
        print_note(f"Sessions that it opened and that are still open: {count}. --close-sessions closes them.")
    if close is None and count:
        close = click.confirm("Close them now?", err=True)
    if close is not False:
        closed = close_twice(lambda: close_sessions_of_host_key(operator, host_key_id))
        print_note(f"Closed sessions: {closed}." if closed else "No session that it opened is open.")
