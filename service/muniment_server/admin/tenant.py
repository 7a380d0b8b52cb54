"""`muniment tenant`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict

import click
import psycopg
from rich.console import Console

from muniment.cli.content import confirm
from muniment.cli.failures import Failure
from muniment.cli.groups import Group
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import TEXT
from muniment_server.admin import sessions
from muniment_server.admin.connection import Operator
from muniment_server.admin.database import (
    chosen_database,
    message_of,
    operator_of,
    servers_of,
    with_database,
    with_operator,
)
from muniment_server.admin.host_keys import freeze_host_keys, thaw_host_keys
from muniment_server.admin.moving import Move, Plan
from muniment_server.admin.sessions import close_twice
from muniment_server.admin.tenants import limit_tenant, tenant_limits
from muniment_server.postgres.engine import silent_node
from muniment_server.runtime import servers_file
from muniment_server.runtime.configuration import DatabaseConfig

_LIMIT = click.IntRange(-1, 2**63 - 1)


@click.group(cls=Group)
def tenant() -> None:
    """Limit what a tenant may take, cut it off, or move it to another database server.

    \b
    Examples:
      muniment tenant limits acme --max-agents 500 --max-bytes 2199023255552
      muniment tenant freeze acme
      muniment tenant close-sessions acme --agent alice
      muniment tenant move acme --to b --servers servers.toml
    """


@tenant.command
@click.argument("name", metavar="TENANT", type=TEXT)
@with_output
@with_operator
def freeze(operator: Operator, output: Output, name: str) -> None:
    """Cut a tenant off until `thaw`.

    The command refuses all host keys of the tenant from now on, and closes its sessions. Nothing is deleted.

    Callers get UNAUTHENTICATED, as with a revoked key. `muniment tenant thaw` ends it; sessions stay closed. A key that
    is created meanwhile is not frozen.

    \b
    Examples:
      muniment tenant freeze acme
    """
    keys = freeze_host_keys(operator, name)
    closed = close_twice(lambda: sessions.close_sessions(operator, "tenant freeze", tenant=name))
    row = {"tenant": name, "frozen_keys": keys, "closed_sessions": closed}
    output.record(row, tuple(row))


@tenant.command
@click.argument("name", metavar="TENANT", type=TEXT)
@with_output
@with_operator
def thaw(operator: Operator, output: Output, name: str) -> None:
    """Accept the host keys of a tenant again.

    \b
    Examples:
      muniment tenant thaw acme
    """
    row = {"tenant": name, "thawed_keys": thaw_host_keys(operator, name)}
    output.record(row, tuple(row))


@tenant.command("close-sessions")
@click.argument("name", metavar="TENANT", type=TEXT)
@click.option("--agent", type=TEXT, metavar="NAME", help="Only the sessions of this agent.")
@with_output
@with_operator
def close_sessions(operator: Operator, output: Output, name: str, agent: str | None) -> None:
    """Close all open sessions of a tenant, at every level. Its hosts may open new ones.

    \b
    Examples:
      muniment tenant close-sessions acme
      muniment tenant close-sessions acme --agent alice
    """
    closed = sessions.close_sessions(operator, "tenant close-sessions", tenant=name, agent_id=agent)
    row = {"tenant": name, "closed_sessions": closed}
    output.record(row, tuple(row))
    print_note("Their next calls fail.")


@tenant.command
@click.argument("name", metavar="TENANT", type=TEXT)
@click.option("--max-agents", type=_LIMIT, help="How many agents it may have.")
@click.option("--calls-per-second", type=_LIMIT, help="The calls a second that its agents may be given together.")
@click.option("--max-items", type=_LIMIT, help="The items that its agents may be given together.")
@click.option("--max-bytes", type=_LIMIT, help="The bytes that its agents may be given together.")
@click.option(
    "--release-approvals",
    type=click.IntRange(1, 16),
    help="How many host keys beside the one that asks must approve a release. The default is 1.",
)
@with_output
@with_operator
def limits(operator: Operator, output: Output, name: str, **given: int | None) -> None:
    """Show a tenant's limits, after setting those given.

    They bound what its hosts may give to its agents together by CreateAgent and UpdateAgent, and refuse no session. An
    agent's limit holds for each of the four levels, and counts here once; without one, the default counts: 2,000 calls
    a second, 1,000,000 items, 4 GiB. What agents already have stays, even if it is more. Nor do they bound what is
    stored: an agent keeps what it has stored when a host lowers its limits and gives the rest to another. -1 removes a
    limit. Approvals that are missing for an open release count as they are set when it is approved.

    \b
    Examples:
      muniment tenant limits acme
      muniment tenant limits acme --max-agents 500 --max-bytes 2199023255552
      muniment tenant limits acme --max-agents -1
    """
    if any(limit is not None for limit in given.values()):
        limit_tenant(operator, name, given)
    row = asdict(tenant_limits(operator, name))
    output.record(row, tuple(row))


@tenant.command
@click.argument("name", metavar="TENANT", type=TEXT)
@click.option("--to", "target", required=True, metavar="SERVER", help="The server that is to have the tenant.")
@click.option("--dry-run", is_flag=True, help="Change nothing; only print how many rows would move.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@with_database(url=False, servers=True)
@with_output
def move(output: Output, config: DatabaseConfig, name: str, target: str, dry_run: bool, yes: bool) -> None:
    """Move a tenant to another database server.

    All its data moves. Its sessions are closed, and its host keys are revoked: create new ones afterwards,
    at the new server. Its calls fail until they go there. The other tenants go on.

    If the command is interrupted, run it again: it ends what it began. To cancel a move before the tenant has left,
    run it again with --to and the tenant's present server.

    \b
    Examples:
      muniment tenant move acme --to b --servers servers.toml --dry-run
      muniment tenant move acme --to b --servers servers.toml
    """
    if config.servers_file is None:
        raise Failure("a tenant moves between several servers", "name them: --servers FILE")
    chosen_database(config, target)
    with ExitStack() as stack:
        operators = {server: _operator_at(stack, server, where) for server, where in servers_of(config).items()}
        moving = Move({server: each.connection for server, each in operators.items()}, name)
        _move(moving, output, target, dry_run, yes)


def _operator_at(stack: ExitStack, server: str, where: DatabaseConfig) -> Operator:
    """An operator at one server, until the end of *stack*. Raises Failure if it cannot be reached, as `operator_of`."""
    try:
        return stack.enter_context(operator_of(where))
    except psycopg.OperationalError as error:
        if silent_node(error):
            raise
        raise Failure(
            f"the server {server} cannot be reached: {message_of(error)}",
            "start it; if the tenant is not there, and does not move there, take the server out of the file until the "
            "move has ended",
        ) from None


def _move(moving: Move, output: Output, target: str, dry_run: bool, yes: bool) -> None:
    plan = moving.plan(target)
    if plan is None:
        print_note(f"Nothing to do: {target} has the tenant.")
        return
    if dry_run:
        rows = [{"table": step.table, "rows": step.rows} for step in moving.rows(plan) if step.rows]
        output.rows(rows, ("table", "rows"))
        print_note("A dry run: nothing was changed.")
        return
    if not yes:
        print_note("Its sessions will be closed, and its host keys revoked.")
        confirm("Move the tenant?")
    copied = _carry_out(moving, plan)
    row = {"tenant": plan.tenant, "server": plan.source if plan.gives_up else plan.target, "copied_rows": copied}
    output.record(row, tuple(row))
    if plan.gives_up:
        print_note("The move was given up. Create new host keys: the old ones are revoked.")
        return
    print_note(
        f"{servers_file.line_to_write(plan.tenant, target)}. Then create new host keys: "
        f"muniment host-key create --server {target}."
    )


def _carry_out(moving: Move, plan: Plan) -> int:
    """Do what is left; return how many rows were copied. Raises Failure at Ctrl-C, with what is left then."""
    copied, done = 0, ""
    try:
        with Console(stderr=True).status("Moving…") as status:
            total = sum(step.rows for step in moving.rows(plan))
            for step in moving.run(plan):
                copied, done = copied + step.rows, step.name
                status.update(f"Moving: {step.name}, {copied:,} of {total:,} rows are copied")
    except KeyboardInterrupt:
        raise Failure(*_interrupted(plan, done)) from None
    return copied


def _interrupted(plan: Plan, done: str) -> tuple[str, str]:
    """What an interruption leaves after the step *done*, and what to do. The next step may have been committed."""
    if not done and plan.source is not None:
        return "interrupted", "if `muniment doctor` says that the tenant is moving, no server serves it: run this again"
    left = "interrupted: no server serves the tenant until this command has ended"
    if done in {"close", "copy", "compare"}:
        return left, f"run it again, or give the move up: --to {plan.source}"
    return left, "run it again"
