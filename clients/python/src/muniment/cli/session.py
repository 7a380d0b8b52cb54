"""`muniment session`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

import click

from muniment import Classification, HostClient, Integrity, SessionClient
from muniment.cli.connect import Caller, with_hints_for_ended_session, with_host
from muniment.cli.content import LIMIT, first
from muniment.cli.failures import Failure
from muniment.cli.groups import Group
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import DURATION, INTEGRITY, LEVEL, TEXT

_COLUMNS = (
    "session_id", "agent_id", "conversation_id", "taint", "integrity", "ceiling", "create_time", "expire_time",
    "read_only",
)  # fmt: skip
_SESSION = click.argument("session_id", metavar="[SESSION]", required=False, type=TEXT)
_REASON = click.option(
    "--reason", default="", type=TEXT, help="The reason, for the audit log. Must not contain content."
)
_INTEGRITY = click.option(
    "--integrity",
    type=INTEGRITY,
    default=Integrity.UNTRUSTED,
    help="trusted, if all that the model has seen is what you vouch for. The default is untrusted.",
)


@click.group(cls=Group)
def session() -> None:
    """Sessions: credentials for one conversation of an agent, and its taint.

    All of these commands need a host key. SESSION is an id; if it is omitted, it is the session of MUNIMENT_TOKEN.

    \b
    Examples:
      export MUNIMENT_TOKEN=$(muniment session open alice --taint internal --quiet)
      muniment session raise --taint confidential --reason "read the payroll"
      muniment session close
    """


@session.command("open")
@click.argument("agent_id", metavar="AGENT", type=TEXT)
@click.option(
    "--taint",
    type=LEVEL,
    help="The level of what the conversation has seen so far. The default is what it has, or public.",
)
@_INTEGRITY
@click.option("--conversation", type=TEXT, metavar="ID", help="The conversation. The default is a new one.")
@click.option("--ttl", type=DURATION, help="When the session expires, such as 8h. The default is 24h.")
@click.option("--read-only", is_flag=True, help="The session may only read: it stores and deletes nothing.")
@click.option("--quiet", is_flag=True, help="Print only the token.")
@with_output
@with_host
def open_(
    host: HostClient,
    output: Output,
    agent_id: str,
    taint: Classification | None,
    integrity: Integrity,
    conversation: str | None,
    ttl: timedelta | None,
    read_only: bool,
    quiet: bool,
) -> None:
    """Open a session and print its token. It cannot be shown again.

    \b
    Examples:
      muniment session open alice --taint internal
      export MUNIMENT_TOKEN=$(muniment session open alice --taint internal --quiet)
      muniment session open alice --conversation chat-42 --ttl 8h
      muniment session open alice --integrity trusted --conversation planner
    """
    opened = host.open_session(
        agent_id, taint, integrity=integrity, conversation_id=conversation, ttl=ttl, read_only=read_only
    )
    _show_token(opened, output, quiet=quiet)


@session.command("raise")
@_SESSION
@click.option("--taint", required=True, type=LEVEL, help="The level to raise to.")
@_INTEGRITY
@_REASON
@with_output
@with_host
def raise_(
    host: HostClient, output: Output, session_id: str | None, taint: Classification, integrity: Integrity, reason: str
) -> None:
    """Raise the taint of a session's conversation.

    It rises for all sessions of the conversation, and never falls. The conversation is untrusted then, unless you vouch
    for what the model will see: --integrity trusted.

    Show the model anything more sensitive only after this has succeeded.

    \b
    Examples:
      muniment session raise --taint confidential --reason "read the payroll"
      muniment session raise 5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77 --taint restricted
    """
    session_id = session_id or _own_id(host)
    before = host.get_session(session_id)
    raised = host.raise_taint(session_id, taint, reason, integrity=integrity)
    output.record(asdict(raised), _COLUMNS)
    if (raised.taint, raised.integrity) == (before.taint, before.integrity):
        never_falls = "; it never falls" if taint < raised.taint else ""
        print_note(f"Nothing changed: the taint is already {raised.taint.name}{never_falls}.")


@session.command
@_SESSION
@_INTEGRITY
@_REASON
@click.option("--quiet", is_flag=True, help="Print only the token.")
@with_output
@with_host
def reset(
    host: HostClient, output: Output, session_id: str | None, integrity: Integrity, reason: str, quiet: bool
) -> None:
    """Restart a conversation at PUBLIC.

    The command closes all its sessions, and opens one at PUBLIC.

    With this command, you state that the model's context has been cleared.

    \b
    Examples:
      export MUNIMENT_TOKEN=$(muniment session reset --quiet)
      muniment session reset 5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77 --reason "new day"
    """
    opened = host.reset_session(session_id or _own_id(host), reason, integrity=integrity)
    _show_token(opened, output, quiet=quiet)


@session.command
@_SESSION
@with_host
def close(host: HostClient, session_id: str | None) -> None:
    """Close a session. Its token is invalid from then on.

    \b
    Examples:
      muniment session close
      muniment session close 5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77
    """
    host.close_session(session_id or _own_id(host))
    print_note("Closed.")


@session.command("list")
@click.argument("agent_id", metavar="AGENT", type=TEXT)
@click.option("--all", "include_closed", is_flag=True, help="Include closed and expired sessions.")
@LIMIT
@with_output
@with_host
def list_(host: HostClient, output: Output, agent_id: str, include_closed: bool, limit: int | None) -> None:
    """List the sessions of an agent, newest first.

    \b
    Examples:
      muniment session list alice
      muniment session list alice --all --json
    """
    columns = (*_COLUMNS, "close_time") if include_closed else _COLUMNS
    sessions = host.list_sessions(agent_id, include_closed=include_closed)
    output.rows(map(asdict, first(sessions, limit)), columns)


def _own_id(host: HostClient) -> str:
    token = Caller.of_environment().token
    if token is None:
        raise Failure("no session is named", "give its id (muniment session list AGENT), or set MUNIMENT_TOKEN")
    with with_hints_for_ended_session():
        return host.session(token).session_id


def _show_token(opened: SessionClient, output: Output, *, quiet: bool) -> None:
    if quiet:
        click.echo(opened.token)
        return
    row = asdict(opened.session) | {"token": opened.token}
    output.record(row, (*_COLUMNS, "token"))
    print_note("Store the token in MUNIMENT_TOKEN now: it cannot be shown again.")
