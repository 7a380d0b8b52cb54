"""`muniment block`: the commands for sessions. Those for hosts are in `sharing`."""

from __future__ import annotations

from dataclasses import asdict

import click

from muniment import ItemKind, SessionClient
from muniment.cli.connect import with_session
from muniment.cli.content import CONTENT, ETAG, LIMIT, STANDARD_INPUT, first, print_deleted, read_content, shown
from muniment.cli.failures import Discreet
from muniment.cli.groups import Group
from muniment.cli.output import Output, with_output
from muniment.cli.parameters import LINE, TEXT
from muniment.cli.sharing import SHARING
from muniment.cli.versions import versions_of

_LIST_COLUMNS = ("label", "owner_agent_id", "shared", "classification", "update_time", "content")
_COLUMNS = ("label", "owner_agent_id", "shared", "classification", "update_time", "etag")

_LABEL = click.argument("label", type=TEXT)


@click.group(cls=Group)
def block() -> None:
    """Core blocks: text that is always in the prompt.

    Sessions read their agent's blocks and those attached to it, and write their agent's own: by MUNIMENT_TOKEN, or
    with --agent and --taint. Hosts share them: share, unshare, attach, detach, consumers.

    \b
    Examples:
      muniment block update personality "Kind, and brief." --agent alice --taint public
      muniment block share alice house_rules "No shoes."
      muniment block attach alice house_rules bob
    """


@block.command("list", cls=Discreet)
@LIMIT
@with_output
@with_session
def list_(session: SessionClient, output: Output, limit: int | None) -> None:
    """List the visible blocks by label.

    For the same label, the agent's own block comes first. Each is shown at its highest visible level.

    \b
    Examples:
      muniment block list
      muniment block list --agent alice --taint internal --json
    """
    output.rows(map(asdict, first(session.list_blocks(), limit)), _LIST_COLUMNS)


@block.command(cls=Discreet)
@_LABEL
@click.option(
    "--owner",
    type=TEXT,
    metavar="AGENT",
    help="The owner of the block. The default is the agent's own block, otherwise the first shared one.",
)
@with_output
@with_session
def get(session: SessionClient, output: Output, label: str, owner: str | None) -> None:
    """Show a block at its highest visible level. In a pipe: only the content, byte for byte, and no line end after it.

    \b
    Examples:
      muniment block get personality
      muniment block get house_rules --owner alice --agent bob --taint internal
      muniment block get personality > personality.txt
    """
    output.document(shown(session.get_block(label, owner_agent_id=owner)), _COLUMNS)


@block.command(cls=Discreet)
@_LABEL
@CONTENT
@ETAG
@with_output
@with_session
def update(session: SessionClient, output: Output, label: str, content: str, etag: str | None) -> None:
    """Create or replace a block at the session's own level.

    CONTENT is read from standard input if it is omitted or `-`. It may be empty: "".

    \b
    Examples:
      muniment block update personality "Kind, and brief." --agent alice --taint public
      muniment block update personality < personality.txt
    """
    output.record(asdict(session.update_block(label, read_content(content), etag=etag)), _COLUMNS)


@block.command(cls=Discreet)
@_LABEL
@CONTENT
@ETAG
@with_output
@with_session
def append(session: SessionClient, output: Output, label: str, content: str, etag: str | None) -> None:
    """Add lines at the end, after a line break.

    Every edit starts from the version that the session sees, and writes the one at its own level. CONTENT is read from
    standard input if it is omitted or `-`.

    \b
    Examples:
      muniment block append current_state "Writing the report."
      muniment block append current_state < today.txt
    """
    output.record(asdict(session.append_to_block(label, read_content(content), etag=etag)), _COLUMNS)


@block.command(cls=Discreet)
@_LABEL
@click.argument("line", type=LINE)
@CONTENT
@ETAG
@with_output
@with_session
def insert(session: SessionClient, output: Output, label: str, line: int, content: str, etag: str | None) -> None:
    """Insert lines after a line.

    LINE is the number of a line; 0 is before the first. CONTENT is read from standard input if it is omitted or `-`.

    \b
    Examples:
      muniment block insert current_state 0 "It is Monday."
      muniment block insert current_state 2 < details.txt
    """
    output.record(asdict(session.insert_into_block(label, line, read_content(content), etag=etag)), _COLUMNS)


@block.command(cls=Discreet)
@_LABEL
@click.argument("old", type=TEXT)
@click.argument("new", required=False, default=STANDARD_INPUT, type=TEXT)
@ETAG
@with_output
@with_session
def replace(session: SessionClient, output: Output, label: str, old: str, new: str, etag: str | None) -> None:
    """Replace the only occurrence of OLD with NEW.

    NEW is read from standard input if it is omitted or `-`. It may be empty: "".

    \b
    Examples:
      muniment block replace current_state Monday Tuesday
      muniment block replace current_state "It is Monday." < today.txt
    """
    output.record(asdict(session.replace_in_block(label, old, read_content(new), etag=etag)), _COLUMNS)


@block.command(cls=Discreet)
@_LABEL
@ETAG
@with_session
def delete(session: SessionClient, label: str, etag: str | None) -> None:
    """Delete the version at the session's own level. It is kept for `muniment history`.

    \b
    Examples:
      muniment block delete current_state --agent alice --taint internal
    """
    print_deleted(session.delete_block(label, etag=etag))


for _command in SHARING:
    block.add_command(_command)
block.add_command(versions_of(ItemKind.BLOCK, "LABEL", example="personality"))
