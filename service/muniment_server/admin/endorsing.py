"""`muniment agent endorse`: what somebody has read of an agent becomes trusted, by the release desk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import click

from muniment import TLS, HostClient, Integrity, ItemKind, MunimentError, ReleasedText, connect, content_sha256
from muniment.cli.connect import Caller, ServerOptions, find_server, report_server_errors
from muniment.cli.failures import Failure
from muniment.cli.output import Output, with_output
from muniment.cli.parameters import FILE, TEXT
from muniment.cli.transfer import formats, lines
from muniment.cli.transfer.gather import everything
from muniment.cli.transfer.items import Item
from muniment.cli.transfer.sessions import sessions_to_the_ceiling
from muniment_server.admin.connection import Operator
from muniment_server.admin.database import chosen_database, operator_of, server_option, with_database
from muniment_server.admin.host_keys import create_host_key, revoke_host_key
from muniment_server.admin.tenants import tenant_limits
from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import RandomIds
from muniment_server.runtime.configuration import DatabaseConfig

_LIFETIME = timedelta(hours=12)
"""When its keys expire if it is killed."""


@click.command
@click.argument("agent_id", metavar="NAME", type=TEXT)
@click.argument("path", metavar="FILE", type=FILE)
@click.option("--tenant", required=True, type=TEXT, help="The tenant of the agent.")
@click.option("--reason", required=True, type=TEXT, help="Why the items are good. The audit log shows it.")
@with_database(servers=True)
@server_option
@with_output
def endorse(
    output: Output, config: DatabaseConfig, server: str | None, agent_id: str, path: Path, tenant: str, reason: str
) -> None:
    """Make the items in FILE trusted, each at its level.

    FILE is what `muniment export` wrote of the agent, without the items that are not good: somebody has read it. An
    item that is no longer as it is in FILE is refused, since no one has read what it is now. `-` is standard input.

    It is for items that were stored before there was integrity. An operator stands for all who would ask and approve:
    the command makes keys for that, calls the server at MUNIMENT_ADDRESS or in --data-dir, and revokes the keys. What
    is trusted already is left out, so it may be repeated.

    \b
    Examples:
      muniment export alice -o alice.jsonl
      muniment agent endorse alice alice.jsonl --tenant acme --reason "reviewed by Grace"
    """
    with operator_of(chosen_database(config, server)) as operator, report_server_errors(), ExitStack() as stack:
        operator.agent(tenant, agent_id)
        items = formats.read(formats.Source(path, agent_id, lines.FORMAT, edited=True)).items
        address, tls = _server(config)
        keys = stack.enter_context(_keys(operator, tenant))
        hosts = [stack.enter_context(connect(address, host_key=key, tls=tls)) for key in keys]
        failed, trusted = 0, _trusted(hosts[0], agent_id)
        for item in items:
            if item in trusted:
                continue
            outcome = _release(hosts, agent_id, item, reason)
            failed += outcome != "OK"
            row = {"kind": item.kind, "level": item.level, "name": item.name, "outcome": outcome}
            output.line(row, tuple(row))
    if failed:
        raise Failure(f"not endorsed: {failed}", "their outcomes say why; afterwards, run the command again")


def _server(config: DatabaseConfig) -> tuple[str, TLS | bool]:
    """Where the server is, as the environment says, or the file of one in development."""
    address = Caller.of_environment().address
    named = ServerOptions(address, None if address else config.data_dir, tls=False)
    ca, certificate, key = (os.environ.get(f"MUNIMENT_TLS_{each}") for each in ("CA", "CERT", "KEY"))
    tls = TLS(*(Path(each) if each else None for each in (ca, certificate, key)))
    return find_server(named).address, tls if ca or certificate else False


@contextmanager
def _keys(operator: Operator, tenant: str) -> Iterator[list[str]]:
    """A key that asks and as many as must approve. Their audit events name the operator."""
    needed = 1 + tenant_limits(operator, tenant).release_approvals
    with ExitStack() as revoking:
        made = []
        for _ in range(needed):
            host_key_id, key = create_host_key(
                operator,
                tenant=tenant,
                ceiling=Classification.RESTRICTED,
                name="agent endorse",
                lifetime=_LIFETIME,
                may=["endorse"],
                ids=RandomIds(),
            )
            revoking.callback(revoke_host_key, operator, host_key_id)
            made.append(key)
        yield made


def _trusted(host: HostClient, agent_id: str) -> set[Item]:
    """The items of the agent that are trusted."""
    with sessions_to_the_ceiling(host, agent_id, integrity=Integrity.TRUSTED) as sessions:
        return {*everything(sessions, agent_id, lambda _: None)}


def _release(hosts: Sequence[HostClient], agent_id: str, item: Item, reason: str) -> str:
    """Release *item* to TRUSTED if the server has it as it is. Returns OK, or the reason of the refusal."""
    digest = content_sha256(item.content)
    source, target = ((item.level, integrity) for integrity in Integrity)
    (asks, *approvers), asked = hosts, None
    try:
        asked = asks.request_release(
            agent_id,
            ItemKind[item.kind.upper()],
            item.name,
            content_sha256=digest,
            source=source,
            target=target,
            reason=reason,
        )
        if asks.get_release(asked.release_id).text != _text(item):
            asks.reject_release(asked.release_id, "agent endorse")
            return "RELEASE_SOURCE_CHANGED"
        for each in approvers:
            each.approve_release(asked.release_id, digest)
    except MunimentError as error:
        if not error.reason:
            raise
        if asked is not None:
            asks.reject_release(asked.release_id, "agent endorse")
        return error.reason
    return "OK"


def _text(item: Item) -> ReleasedText:
    """What an approver would see of the item."""
    return ReleasedText(
        name=item.name,
        content=item.content,
        tags=getattr(item, "tags", ()),
        thread=getattr(item, "thread", None),
        author=getattr(item, "author", None),
        tier=getattr(item, "tier", None),
        event_time=getattr(item, "event_time", None),
        expire_time=getattr(item, "expire_time", None),
    )
