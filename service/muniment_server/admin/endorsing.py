"""`muniment agent endorse`: makes what was stored before there was integrity trusted, through the release desk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import click

from muniment import TLS, HostClient, Integrity, ItemKind, MunimentError, connect, content_sha256
from muniment.cli.connect import Caller, ServerOptions, find_server, report_server_errors
from muniment.cli.failures import Failure
from muniment.cli.output import Output, with_output
from muniment.cli.parameters import TEXT
from muniment.cli.transfer.gather import everything
from muniment.cli.transfer.items import KINDS, Item
from muniment.cli.transfer.sessions import sessions_to_the_ceiling
from muniment_server.admin.connection import Operator
from muniment_server.admin.database import chosen_database, operator_of, server_option, with_database
from muniment_server.admin.host_keys import create_host_key, revoke_host_key
from muniment_server.admin.tenants import tenant_limits
from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import RandomIds
from muniment_server.runtime.configuration import DatabaseConfig

_LIFETIME = timedelta(hours=12)
"""How long its keys are valid if the command is killed before it revokes them."""


@click.command
@click.argument("agent_id", metavar="NAME", type=TEXT)
@click.option("--tenant", required=True, type=TEXT, help="The tenant of the agent.")
@click.option("--reason", required=True, type=TEXT, help="Why the items are good. The audit log shows it.")
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only items of this kind. Repeatable.")
@click.option("--key", "names", type=TEXT, multiple=True, help="Only items of this key, label or id. Repeatable.")
@click.option("--tag", "tags", type=TEXT, multiple=True, help="Only items with this tag. Repeatable: with any of them.")
@click.option("--all", "is_all", is_flag=True, help="All items of the agent.")
@with_database(servers=True)
@server_option
@with_output
def endorse(
    output: Output,
    config: DatabaseConfig,
    server: str | None,
    agent_id: str,
    tenant: str,
    reason: str,
    kinds: Sequence[str],
    names: Sequence[str],
    tags: Sequence[str],
    is_all: bool,
) -> None:
    """Make what an agent has trusted, at its level.

    It is for items known to be good that were stored before there was integrity. An operator stands for all who would
    ask and approve: the command makes keys for that, calls the server at MUNIMENT_ADDRESS or in --data-dir, and revokes
    the keys. What is trusted already is left out, so it may be repeated.

    \b
    Examples:
      muniment agent endorse alice --tenant acme --kind block --kind note --reason "written by us in 2025"
      muniment agent endorse alice --tenant acme --all --reason "reviewed by Grace"
    """
    if is_all == bool(kinds or names or tags):
        raise click.UsageError("say which items: --kind, --key and --tag, or --all alone")
    with operator_of(chosen_database(config, server)) as operator, report_server_errors(), ExitStack() as stack:
        operator.agent(tenant, agent_id)
        address, tls = _server(config)
        keys = stack.enter_context(_keys(operator, tenant))
        hosts = [stack.enter_context(connect(address, host_key=key, tls=tls)) for key in keys]
        failed = 0
        for item in _untrusted(hosts[0], agent_id):
            if not _is_chosen(item, kinds, names, tags):
                continue
            outcome = _release(hosts, agent_id, item, reason)
            failed += outcome != "OK"
            row = {"kind": item.kind, "level": item.level, "name": item.name, "outcome": outcome}
            output.line(row, tuple(row))
    if failed:
        raise Failure(f"not endorsed: {failed}", "their outcomes say why; afterwards, run the command again")


def _is_chosen(item: Item, kinds: Sequence[str], names: Sequence[str], tags: Sequence[str]) -> bool:
    """Whether an item is of one of the kinds, has one of the names, and has any of the tags. Empty ones allow all."""
    return (
        (not kinds or item.kind in kinds)
        and (not names or item.name in names)
        and (not tags or not {*tags}.isdisjoint(getattr(item, "tags", ())))
    )


def _server(config: DatabaseConfig) -> tuple[str, TLS | bool]:
    """The address of the server and its TLS: from the environment, or from the file of a server in development."""
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


def _untrusted(host: HostClient, agent_id: str) -> list[Item]:
    """The untrusted items of the agent, except those that equal a trusted version."""
    found = {}
    for integrity in Integrity:
        with sessions_to_the_ceiling(host, agent_id, integrity=integrity) as sessions:
            found[integrity] = everything(sessions, agent_id, lambda _: None)
    trusted = {*found[Integrity.TRUSTED]}
    return [item for item in found[Integrity.UNTRUSTED] if item not in trusted]


def _release(hosts: Sequence[HostClient], agent_id: str, item: Item, reason: str) -> str:
    """Release an item to TRUSTED. Returns OK, or the reason of the refusal."""
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
        for each in approvers:
            each.approve_release(asked.release_id, digest)
    except MunimentError as error:
        if not error.reason:
            raise
        if asked is not None:
            asks.reject_release(asked.release_id, "agent endorse")
        return error.reason
    return "OK"
