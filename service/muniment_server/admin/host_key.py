"""`muniment host-key`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from uuid import UUID

import click

from muniment.cli.failures import Failure
from muniment.cli.groups import Group
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import DURATION, TEXT
from muniment_server.admin.database import with_operator
from muniment_server.admin.levels import LEVEL
from muniment_server.admin.operator import Operator
from muniment_server.domain.classification import Classification
from muniment_server.domain.ids import RandomIds

_COLUMNS = (
    "host_key_id", "tenant", "ceiling", "only_service", "create_time", "expire_time", "freeze_time", "revoke_time",
)  # fmt: skip
_SERVICES = {"agents": "AgentService", "sessions": "SessionService", "audit": "AuditService"}


@click.group(cls=Group)
def host_key() -> None:
    """Host keys: the credentials of the runtimes around models.

    A key belongs to a tenant and reaches up to its ceiling. A tenant may have several: to rotate one, create another,
    give it to the hosts, and revoke the first.

    \b
    Examples:
      muniment host-key create --tenant acme --ceiling confidential
      muniment host-key create --tenant acme --ceiling internal --only audit --expires-in 30d
      muniment host-key list
    """


@host_key.command
@click.option(
    "--tenant", required=True, type=TEXT, help="The tenant that the key belongs to. It is created if it does not exist."
)
@click.option("--ceiling", required=True, type=LEVEL, help="The highest level it may open or raise a session to.")
@click.option(
    "--expires-in", "lifetime", type=DURATION, help="How long it is valid, such as 90d. The default is forever."
)
@click.option("--only", type=click.Choice(list(_SERVICES)), help="The one thing it is for. The default is everything.")
@click.option("--quiet", is_flag=True, help="Print only the key.")
@with_output
@with_operator
def create(
    operator: Operator,
    output: Output,
    tenant: str,
    ceiling: Classification,
    lifetime: timedelta | None,
    only: str | None,
    quiet: bool,
) -> None:
    """Create a key and print it. It cannot be shown again.

    \b
    Examples:
      muniment host-key create --tenant acme --ceiling confidential
      muniment host-key create --tenant acme --ceiling internal --only audit --expires-in 30d
      export MUNIMENT_HOST_KEY=$(muniment host-key create --tenant acme --ceiling restricted --quiet)
    """
    only_service = _SERVICES[only] if only is not None else None
    host_key_id, key = operator.create_host_key(
        tenant=tenant,
        ceiling=ceiling,
        lifetime=lifetime,
        only_service=only_service,
        ids=RandomIds(),
    )
    if quiet:
        click.echo(key)
        return
    row = {
        "host_key_id": host_key_id,
        "tenant": tenant,
        "ceiling": ceiling,
        "only_service": only_service,
        "host_key": key,
    }
    output.record(row, tuple(row))
    print_note("Store the key now: it cannot be shown again.")


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
    output.rows(map(asdict, operator.host_keys()), _COLUMNS)


@host_key.command
@click.argument("host_key_id", metavar="ID", type=click.UUID)
@with_operator
def revoke(operator: Operator, host_key_id: UUID) -> None:
    """Revoke a key. Its next call fails; sessions that it opened stay open.

    \b
    Examples:
      muniment host-key revoke 5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77
    """
    if not operator.revoke_host_key(host_key_id):
        raise Failure("there is no such key, or it is already revoked", "list the keys: muniment host-key list")
    print_note("Revoked.")
