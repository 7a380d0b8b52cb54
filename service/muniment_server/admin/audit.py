"""`muniment audit`."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import click
from google.protobuf.json_format import ParseDict, ParseError

from muniment.cli.content import confirm
from muniment.cli.failures import Failure
from muniment.cli.groups import Group
from muniment.cli.output import Output, print_note, with_output
from muniment.cli.parameters import DURATION, TEXT
from muniment.v1 import audit_pb2
from muniment_server.admin.database import with_operator
from muniment_server.admin.input_files import read_file
from muniment_server.admin.operator import Operator
from muniment_server.admin.sealing import Checkpoint
from muniment_server.domain.classification import Classification

_COLUMNS = (
    "time", "classification", "method", "outcome", "agent_id", "session_id", "kind", "result_count", "reason",
    "host_key_id", "item_id", "revision",
)  # fmt: skip
_CHECKPOINT = ("tenant", "classification", "seal_number", "event_count", "head_hash")
_VERIFIED = ("classification", "seals", "events", "removed", "unsealed", "problems")
_SHORTEST = timedelta(days=30)


@click.group(cls=Group)
def audit() -> None:
    """Read, verify and shorten the audit log. It never contains content.

    \b
    Examples:
      muniment audit list --tenant acme
      muniment audit verify --tenant acme
    """


@audit.command("list")
@click.option("--tenant", required=True, type=TEXT, help="The tenant whose log to read.")
@click.option("--agent", type=TEXT, metavar="NAME", help="Only rows of this agent.")
@click.option("--session", type=click.UUID, metavar="ID", help="Only rows of this session.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="How many rows.")
@with_output
@with_operator
def list_(operator: Operator, output: Output, tenant: str, agent: str | None, session: UUID | None, limit: int) -> None:
    """List the audit log of a tenant, at every level, newest first.

    \b
    Examples:
      muniment audit list --tenant acme --limit 20
      muniment audit list --tenant acme --agent alice --json
      muniment audit list --tenant acme --session 5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77
    """
    events = operator.audit_events(tenant=tenant, agent_id=agent, session_id=session, limit=limit)
    output.rows(map(asdict, events), _COLUMNS)


@audit.command()
@click.option("--tenant", required=True, type=TEXT, help="The tenant whose log to read.")
@with_output
@with_operator
def checkpoint(operator: Operator, output: Output, tenant: str) -> None:
    """Print the last seal of the audit log at each level.

    Keep the output where whoever can change the database cannot write: `muniment audit verify --checkpoint` compares
    the log with it. A host with the highest ceiling gets the same from GetAuditCheckpoint.

    \b
    Examples:
      muniment audit checkpoint --tenant acme --json > today.jsonl
    """
    output.rows(({"tenant": tenant, **asdict(one)} for one in operator.audit_checkpoints(tenant)), _CHECKPOINT)


@audit.command()
@click.option("--tenant", required=True, type=TEXT, help="The tenant whose log to verify.")
@click.option(
    "--checkpoint",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Checkpoints of this tenant, a line of JSON each, to compare with. Repeatable.",
)
@with_output
@with_operator
def verify(operator: Operator, output: Output, tenant: str, files: tuple[Path, ...]) -> None:
    """Check that the audit log is as it was sealed.

    Finds events that were changed, added or removed. No server needs to run. Servers seal events within seconds. A log
    that was rewritten as a whole is found only with a checkpoint that was kept elsewhere. Items that were moved to
    another level are found, too. Exits with 1 if there is a problem.

    Columns in a pipe: classification, seals, events, removed, unsealed, problems.

    \b
    Examples:
      muniment audit verify --tenant acme
      muniment audit verify --tenant acme --checkpoint checkpoints.jsonl
    """
    lines = (line for file in files for line in read_file(file).decode().splitlines() if line.strip())
    given = (checkpoint_of(line, tenant) for line in lines)
    kept = [checkpoint for checkpoint in given if checkpoint is not None and checkpoint.seal_number > 0]
    found = list(operator.verify_audit(tenant, kept))
    output.rows(({**asdict(one), "problems": len(one.problems)} for one in found), _VERIFIED)
    for one in found:
        for note in one.notes:
            print_note(f"! {one.classification.name}: {note}")
        for problem in one.problems:
            print_note(f"✗ {one.classification.name}: {problem}")
    if any(one.problems for one in found):
        raise Failure(
            "the audit log is not what was sealed", "keep the database as it is, and find out who could write to it"
        )
    compared = (
        f"checkpoints compared: {len(kept)}" if kept else "no checkpoint was given, so a rewritten log is not found"
    )
    print_note(f"The audit log is as it was sealed; {compared}.")


@audit.command()
@click.option("--tenant", required=True, type=TEXT, help="The tenant whose events to remove.")
@click.option("--older-than", required=True, type=DURATION, help="The minimum age, such as 400d or 104w.")
@click.option("--force", count=True, help="Given twice, allows less than 30 days.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@with_output
@with_operator
def purge(operator: Operator, output: Output, tenant: str, older_than: timedelta, force: int, yes: bool) -> None:
    """Permanently remove old events of sessions, at every level.

    Their age is counted from when they were sealed. Their seals stay, and so do events of hosts and operators. An audit
    event says up to which seal events were removed.

    \b
    Examples:
      muniment audit purge --tenant acme --older-than 400d
    """
    if older_than < _SHORTEST and force < 2:
        raise Failure("events are kept for at least 30 days", "choose a longer time, or give --force twice")
    if warnings := operator.clock_warnings():
        raise Failure("events are removed by their age, and the time is in doubt", warnings[0])
    before = datetime.now(UTC) - older_than
    print_note(f"Events of sessions of {tenant} sealed before {before:%Y-%m-%d %H:%M}Z will be removed, at all levels.")
    if not yes:
        confirm("Remove them?")
    output.rows(map(asdict, operator.remove_audit_events(tenant, before=before)), ("classification", "events"))


def checkpoint_of(line: str, tenant: str) -> Checkpoint | None:
    """A checkpoint as this command prints it, or as protobuf's JSON has that of GetAuditCheckpoint.

    None if it is of another tenant than *tenant*.
    """
    try:
        given = {**json.loads(line)}
        if given.get("classification") in Classification.__members__:
            given["classification"] = Classification[given["classification"]].value
        message = ParseDict(given, audit_pb2.AuditCheckpoint(), ignore_unknown_fields=True)
        level = Classification(message.classification)
    except (ValueError, TypeError, ParseError):
        raise Failure(
            "a line is not a checkpoint", "give what `muniment audit checkpoint --tenant NAME --json` printed"
        ) from None
    if given.get("tenant", tenant) != tenant:
        return None
    return Checkpoint(level, message.seal_number, message.event_count, message.head_hash.lower())
