"""`versions`, a command of `muniment memory`, `note`, `block` and `passage`."""

from __future__ import annotations

from dataclasses import asdict

import click

from muniment import ItemKind, SessionClient
from muniment.cli.connect import with_session
from muniment.cli.content import LIMIT, first
from muniment.cli.failures import Discreet
from muniment.cli.output import Output, with_output
from muniment.cli.parameters import TEXT

_COLUMNS = ("classification", "update_time", "replaced", "content")
_HELP = """List the visible versions of a {kind}, newest first.

    There is at most one at each level; other commands show the highest.{with_revisions}

    \b
    Examples:
      muniment {kind} versions {example}
      muniment {kind} versions {example}{revisions} --agent alice --taint confidential
    """
_WITH_REVISIONS = " With --revisions, what each has replaced is listed, too, except for blocks of other agents."
_REVISIONS = click.option(
    "--revisions", "with_revisions", is_flag=True, help="Also list what each version has replaced."
)
_OWNER = click.option("--owner", "owner_agent_id", type=TEXT, metavar="AGENT", help="The owner of the block.")


def versions_of(kind: ItemKind, name: str, *, example: str) -> click.Command:
    """The command for items of one kind. *name* is what it calls their names, *example* one of them."""
    has_revisions = kind is not ItemKind.PASSAGE  # passages are written once
    text = _HELP.format(
        kind=kind.name.lower(),
        example=example,
        with_revisions=_WITH_REVISIONS if has_revisions else "",
        revisions=" --revisions" if has_revisions else "",
    )

    @click.command(cls=Discreet, help=text)
    @click.argument("name", metavar=name, type=TEXT)
    @LIMIT
    @with_output
    @with_session
    def versions(
        session: SessionClient,
        output: Output,
        name: str,
        limit: int | None,
        with_revisions: bool = False,
        owner_agent_id: str | None = None,
    ) -> None:
        found = session.list_versions(kind, name, owner_agent_id=owner_agent_id, with_revisions=with_revisions)
        output.rows(map(asdict, first(found, limit)), _COLUMNS)

    command = _REVISIONS(versions) if has_revisions else versions
    return _OWNER(command) if kind is ItemKind.BLOCK else command
