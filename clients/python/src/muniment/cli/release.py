"""`muniment release`."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import timedelta

import click

from muniment import Classification, HostClient, Integrity, ItemKind, Release, ReleaseState, content_sha256
from muniment.cli.connect import with_host
from muniment.cli.content import CONTENT, LIMIT, first, read_content
from muniment.cli.failures import Discreet
from muniment.cli.groups import Group
from muniment.cli.output import Output, Row, print_note, with_output
from muniment.cli.parameters import DURATION, LEVEL, TEXT

_KINDS = {kind.name.lower(): kind for kind in ItemKind}
_COLUMNS = ("release_id", "agent_id", "kind", "source", "target", "state", "approvals", "expire_time", "reason")
_RECORD = (*_COLUMNS, "refusal", "item_id", "revision", "requester_host_key_id", "content_sha256")
_SHOWN = (*_RECORD, "name", "tags", "thread", "author", "tier", "event_time", "item_expire_time", "content")
_REPLACED = ("replaces", "replaced_tags", "replaced_tier", "replaced_expire_time", "replaced_content")
_RELEASE = click.argument("release_id", metavar="RELEASE", type=TEXT)


class _HashType(click.ParamType[str]):
    name = "hash"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if re.fullmatch("[0-9a-f]{64}", str(value)) is None:
            self.fail("is not a hash: give the 64 digits that `muniment release show` prints", param, ctx)
        return str(value)


@click.group(cls=Group)
def release() -> None:
    """The release desk: the way of an item to a lower level, or to what is trusted.

    One host key asks, and another one approves the text by its hash. The operator gives keys the right: muniment
    host-key create --may. How many must approve is the tenant's.

    \b
    Examples:
      muniment release request alice plan "ship on Friday" --from public --to public --trusted
      muniment release list
      muniment release show 5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77
    """


@release.command(cls=Discreet)
@click.argument("agent_id", metavar="AGENT", type=TEXT)
@click.argument("name", type=TEXT)
@CONTENT
@click.option("--kind", type=click.Choice(list(_KINDS)), default="memory", show_default=True, help="The kind of item.")
@click.option("--from", "source", required=True, type=LEVEL, help="The level of the item.")
@click.option("--from-trusted", is_flag=True, help="The item is trusted.")
@click.option("--to", "target", required=True, type=LEVEL, help="The level to release it to.")
@click.option("--trusted", is_flag=True, help="Release it to what trusted sessions see.")
@click.option("--reason", default="", type=TEXT, help="The reason, for who approves. Must not contain content.")
@click.option("--ttl", type=DURATION, help="How long it can be approved, such as 12h. The default is 7d.")
@with_output
@with_host
def request(
    host: HostClient,
    output: Output,
    agent_id: str,
    name: str,
    content: str,
    kind: str,
    source: Classification,
    from_trusted: bool,
    target: Classification,
    trusted: bool,
    reason: str,
    ttl: timedelta | None,
) -> None:
    """Ask for the release of an item.

    NAME is the key of a memory, the id of a note or passage, or the label of a block. CONTENT is its text to the byte,
    or - for standard input; only its hash is sent.

    \b
    Examples:
      muniment release request alice plan "ship on Friday" --from public --to public --trusted
      muniment release request alice plan - --from restricted --to internal --reason "cleared by legal" < plan.txt
    """
    asked = host.request_release(
        agent_id,
        _KINDS[kind],
        name,
        content_sha256=content_sha256(read_content(content)),
        source=(source, Integrity(from_trusted)),
        target=(target, Integrity(trusted)),
        reason=reason,
        ttl=ttl,
    )
    output.record(_row(asked), _RECORD)


@release.command("list")
@click.option("--agent", "agent_id", type=TEXT, metavar="NAME", help="Only those of this agent.")
@click.option("--all", "include_closed", is_flag=True, help="Those that are no longer open, too.")
@LIMIT
@with_output
@with_host
def list_(host: HostClient, output: Output, agent_id: str | None, include_closed: bool, limit: int | None) -> None:
    """List releases, newest first.

    \b
    Examples:
      muniment release list
      muniment release list --agent alice --all
    """
    releases = host.list_releases(agent_id=agent_id, include_closed=include_closed)
    output.rows(map(_row, first(releases, limit)), _COLUMNS)


@release.command
@_RELEASE
@with_output
@with_host
def show(host: HostClient, output: Output, release_id: str) -> None:
    """Show a release and, while it is open, its text.

    It also shows the item that the release replaces. Only the key that asked and keys with the rights see these. To
    show them is audited as reads.

    \b
    Examples:
      muniment release show 5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77
    """
    found = host.get_release(release_id)
    columns = (*_SHOWN, *(_REPLACED if found.replaced else ())) if found.text else _RECORD
    output.record(_row(found), columns)
    if found.replaced:
        print_note(f"! It replaces an item: {_effect(found)}.")
    elif found.text is None and found.state is ReleaseState.OPEN:
        print_note("No text: the item has changed, or this key neither asked for the release nor has the rights.")
    if output.on_terminal and found.text:
        print_note(f"To approve it: muniment release approve {found.release_id} --hash {found.content_sha256}")


@release.command
@_RELEASE
@click.option("--hash", "sha256", required=True, type=_HashType(), help="The hash of the text that you have seen.")
@with_output
@with_host
def approve(host: HostClient, output: Output, release_id: str, sha256: str) -> None:
    """Approve a release.

    That takes another key than the one that asked. The last approval that is needed writes the item. `muniment release
    show` prints the hash.

    \b
    Examples:
      muniment release approve 5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77 \\
          --hash 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    """
    approved = host.approve_release(release_id, sha256)
    output.record(_row(approved), _RECORD)
    missing = approved.required_approvals - len(approved.approver_host_key_ids)
    print_note(f"Approvals that it still needs: {missing}." if missing > 0 else "Released.")


@release.command
@_RELEASE
@click.option("--reason", default="", type=TEXT, help="The reason, for the audit log. Must not contain content.")
@with_output
@with_host
def reject(host: HostClient, output: Output, release_id: str, reason: str) -> None:
    """Reject a release, or withdraw your own.

    \b
    Examples:
      muniment release reject 5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77 --reason "not on the card"
    """
    output.record(_row(host.reject_release(release_id, reason)), _RECORD)


def _row(release: Release) -> Row:
    """A release, with its labels and approvals as people read them."""
    row = asdict(release)
    text, replaced = row.pop("text"), row.pop("replaced")
    return {
        **({**text, "item_expire_time": text["expire_time"]} if text else {}),
        **({f"replaced_{name}": value for name, value in replaced["text"].items()} if replaced else {}),
        "replaces": release.replaced and _label(release.replaced.classification, release.replaced.integrity),
        **row,
        "source": _label(release.source_classification, release.source_integrity),
        "target": _label(release.classification, release.integrity),
        "approvals": f"{len(release.approver_host_key_ids)} of {release.required_approvals}",
    }


def _effect(release: Release) -> str:
    """What becomes of the item that it replaces."""
    assert release.replaced is not None
    target = (release.classification, release.integrity)
    own = (release.replaced.classification, release.replaced.integrity)
    if own == target:
        return f"it overwrites the one of this name at {_label(*target)}"
    return f"sessions at {_label(*target)} will no longer see the one of this name at {_label(*own)}"


def _label(level: Classification, integrity: Integrity) -> str:
    return f"{level.name} {integrity.name}"
