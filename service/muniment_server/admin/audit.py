"""`muniment audit`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import click
from google.protobuf.json_format import ParseDict, ParseError

from muniment.cli.content import confirm
from muniment.cli.failures import Failure, report_file_errors
from muniment.cli.groups import Group
from muniment.cli.output import Output, Row, print_note, with_output
from muniment.cli.parameters import DURATION, TEXT
from muniment.v1 import audit_pb2
from muniment_server.admin.connection import Operator
from muniment_server.admin.database import LEVEL, with_operator
from muniment_server.admin.export_checking import Export
from muniment_server.admin.exporting import FORMATS, as_syslog, new_records, require_known, save_cursor
from muniment_server.admin.holds import require_none_held
from muniment_server.admin.host_keys import list_host_keys
from muniment_server.admin.purge import end_of
from muniment_server.admin.sealing import Checkpoint, RemovedEvents, Verification, Verified, remove_events
from muniment_server.audit_log import repository as audit_log
from muniment_server.audit_log.repository import AuditEvent
from muniment_server.background.sealer import last_seals
from muniment_server.domain.classification import Classification, Integrity, Label
from muniment_server.domain.ids import HostKeyId
from muniment_server.domain.principals import HostIdentity
from muniment_server.items.paging import NEWEST
from muniment_server.monitor.audit_scope import AuditScope
from muniment_server.postgres import roles
from muniment_server.process.input_files import LOG_BYTES, open_file, read_file

_COLUMNS = (
    "time", "classification", "method", "outcome", "agent_id", "session_id", "kind", "result_count", "reason",
    "host_key_id", "item_id", "revision",
)  # fmt: skip
_SHORT = ("time", "level", "method", "outcome", "agent", "caller")
_CHECKPOINT = ("tenant", "classification", "seal_number", "event_count", "head_hash")
_CHECKPOINTS = click.option(
    "--checkpoint",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Checkpoints of this tenant, a line of JSON each, to compare with. Repeatable.",
)
_CHECKED = ("classification", "first", "last", "events", "removed", "unsealed", "problems")
_POLL_SECONDS = 5.0
_VERIFIED = ("classification", "seals", "events", "removed", "unsealed", "problems")


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
@click.option("--wide", is_flag=True, help="At a terminal, show all columns.")
@with_output
@with_operator
def list_(
    operator: Operator, output: Output, tenant: str, agent: str | None, session: UUID | None, limit: int, wide: bool
) -> None:
    """List a tenant's audit log, at every level, newest first.

    At a terminal, an event is one line. Its caller is a host key, by name or by the beginning of its id; a session, by
    the beginning of its id; or an operator. A pipe gets all columns, as --wide shows them.

    \b
    Examples:
      muniment audit list --tenant acme --limit 20
      muniment audit list --tenant acme --agent alice --json
      muniment audit list --tenant acme --session 5f0c1fb2-9c2e-4a53-9d3b-0f6c2f3d1a77
    """
    events = audit_events(operator, tenant=tenant, agent_id=agent, session_id=session, limit=limit)
    if output.on_terminal and not wide:
        names = {each.host_key_id: each.name for each in list_host_keys(operator)}
        output.rows((_in_short(event, names) for event in events), _SHORT)
    else:
        output.rows(map(asdict, events), _COLUMNS)


def _in_short(event: AuditEvent, names: Mapping[HostKeyId, str | None]) -> Row:
    return {
        "time": event.time,
        "level": event.classification,
        "method": event.method,
        "outcome": event.outcome,
        "agent": event.agent_id,
        "caller": _caller(event, names),
    }


def _caller(event: AuditEvent, names: Mapping[HostKeyId, str | None]) -> str:
    """Who made a call, in few letters. A session's events that name a host key are of a host."""
    if event.host_key_id is not None:
        return f"key {names.get(event.host_key_id) or str(event.host_key_id)[:8]}"
    return "operator" if event.session_id is None else f"session {str(event.session_id)[:8]}"


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
    output.rows(({"tenant": tenant, **asdict(one)} for one in audit_checkpoints(operator, tenant)), _CHECKPOINT)


@audit.command()
@click.option("--tenant", required=True, type=TEXT, help="The tenant whose log to verify.")
@_CHECKPOINTS
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
    given = _checkpoints(files, tenant)
    if files and not given:
        raise Failure(
            f"no file has a checkpoint of {tenant}: nothing was compared", "give other files, or no --checkpoint"
        )
    kept = [checkpoint for checkpoint in given if checkpoint.seal_number > 0]
    found = list(verify_audit(operator, tenant, kept))
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
@click.option("--tenant", required=True, type=TEXT, help="The tenant whose log to export.")
@click.option("--ceiling", required=True, type=LEVEL, help="Export nothing above this level.")
@click.option(
    "--format", "form", type=click.Choice([*FORMATS]), default="jsonl", show_default=True, help="How events look."
)
@click.option("--syslog", is_flag=True, help="Put each into a line of RFC 5424.")
@click.option("--follow", is_flag=True, help="Go on with what is sealed later, until it is ended.")
@click.option(
    "--cursor",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Begin after the seals in this file, and keep it up to date.",
)
@with_operator
def export(
    operator: Operator, tenant: str, ceiling: Classification, form: str, syslog: bool, follow: bool, file: Path | None
) -> None:
    """Write the sealed events, and the seal of each batch.

    Each is a line on standard output. After an interruption, an export with the same --cursor goes on; its last batch
    may come twice. Whoever has received it proves with `muniment audit check-export` that nothing is missing.

    \b
    Examples:
      muniment audit export --tenant acme --ceiling restricted > audit.jsonl
      muniment audit export --tenant acme --ceiling internal --format ocsf --follow --cursor sent.jsonl >> audit.jsonl
    """
    cursor = {each.classification: each for each in _checkpoints([file] if file and file.exists() else [], tenant)}
    require_known(operator, tenant, cursor)
    while True:
        for records in new_records(operator, tenant, ceiling, cursor):
            lines = ((record, FORMATS[form](record)) for record in records)
            sys.stdout.writelines(f"{as_syslog(record, line) if syslog else line}\n" for record, line in lines)
            sys.stdout.flush()
            if file is not None:
                save_cursor(file, tenant, cursor)
        if not follow:
            return
        time.sleep(_POLL_SECONDS)


@audit.command("check-export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--tenant", required=True, type=TEXT, help="The tenant whose log was exported.")
@_CHECKPOINTS
@with_output
def check_export(output: Output, file: Path, tenant: str, files: tuple[Path, ...]) -> None:
    """Check that an export is whole, by its seals.

    Needs no database. Takes what `muniment audit export` wrote, in each of its forms; lines may be repeated, and in any
    order. Without a checkpoint, nothing says what came after the last seal. Exits with 1 if there is a problem.

    Columns in a pipe: classification, first, last, events, removed, unsealed, problems.

    \b
    Examples:
      muniment audit check-export audit.jsonl --tenant acme --checkpoint checkpoints.jsonl
    """
    received = Export(tenant)
    with report_file_errors(), open_file(file) as opened:
        received.read(line.decode(errors="replace") for line in opened if line.strip())
        found = list(received.check(_checkpoints(files, tenant)))
    output.rows(({**asdict(one), "problems": len(one.problems)} for one in found), _CHECKED)
    for one in found:
        if one.first > 1:
            print_note(f"! {one.classification.name}: begins with seal {one.first}; what came before is elsewhere")
        if one.removed:
            print_note(
                f"! {one.classification.name}: a sealed event says that those of {one.removed} seals were removed"
            )
        for problem in one.problems:
            print_note(f"✗ {one.classification.name}: {problem}")
    if not found or any(one.problems for one in found):
        raise Failure(
            "the export is not what was sealed" if found else f"the file has nothing of {tenant}",
            "compare it with another export of the same log",
        )
    print_note("The export is whole, from the first to the last seal of each level.")


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
    event says up to which seal events were removed. While an agent of the tenant is held, nothing is removed.

    \b
    Examples:
      muniment audit purge --tenant acme --older-than 400d
    """
    require_none_held(operator, tenant)
    before = end_of(operator, "events", older_than, force=force)
    print_note(f"Events of sessions of {tenant} sealed before {before:%Y-%m-%d %H:%M}Z will be removed, at all levels.")
    if not yes:
        confirm("Remove them?")
    output.rows(map(asdict, remove_audit_events(operator, tenant, before=before)), ("classification", "events"))


def _checkpoints(files: Sequence[Path], tenant: str) -> list[Checkpoint]:
    lines = (line for file in files for line in read_file(file, LOG_BYTES).decode().splitlines() if line.strip())
    return [each for line in lines if (each := checkpoint_of(line, tenant)) is not None]


def checkpoint_of(line: str, tenant: str) -> Checkpoint | None:
    """A checkpoint as this command prints it, or as protobuf's JSON has that of GetAuditCheckpoint.

    None if it is of another tenant than *tenant*.
    """
    try:
        given = {**json.loads(line)}
        if (label := Label.__members__.get(given.get("classification", ""))) is not None:
            given.update(classification=label.level.value, integrity=label.integrity.value)
        message = ParseDict(given, audit_pb2.AuditCheckpoint(), ignore_unknown_fields=True)
        label = Label.of(Classification(message.classification), Integrity(message.integrity))
        bytes.fromhex(message.head_hash)
    except (ValueError, TypeError, ParseError):
        raise Failure(
            "a line is not a checkpoint", "give what `muniment audit checkpoint --tenant NAME --json` printed"
        ) from None
    if given.get("tenant", tenant) != tenant:
        return None
    return Checkpoint(label, message.seal_number, message.event_count, message.head_hash.lower())


def audit_events(
    operator: Operator, *, tenant: str, agent_id: str | None = None, session_id: UUID | None = None, limit: int
) -> list[AuditEvent]:
    """The newest *limit* audit events of *tenant*, at every level."""
    number = operator.tenant(tenant)
    every_level = HostIdentity(number, HostKeyId(UUID(int=0)), Classification.RESTRICTED)
    with operator.connection.transaction():
        operator.execute("use_schema", schema=roles.AUDITOR)
        events, _ = audit_log.list_events(
            AuditScope(operator.connection, every_level),
            agent_id=agent_id,
            session_id=session_id,
            start_time=None,
            end_time=None,
            before=NEWEST,
            limit=limit,
        )
    return events


def audit_checkpoints(operator: Operator, tenant: str) -> list[Checkpoint]:
    """The last seal of each label with which something is sealed."""
    seals = last_seals(operator.connection, operator.tenant(tenant))
    return [
        Checkpoint(label, seals[label.chain].number, seals[label.chain].event_count, seals[label.chain].hash.hex())
        for label in Label
        if label.chain in seals
    ]


def verify_audit(operator: Operator, tenant: str, checkpoints: Sequence[Checkpoint]) -> Iterator[Verified]:
    """Verify the audit log of *tenant* against its seals and *checkpoints*, level by level."""
    number = operator.tenant(tenant)
    for level in Label:
        of_level = [checkpoint for checkpoint in checkpoints if checkpoint.classification is level]
        with operator.connection.transaction():
            operator.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            operator.execute("use_schema", schema=level.role)
            yield Verification(operator, number, level, of_level).run()


def remove_audit_events(operator: Operator, tenant: str, *, before: datetime) -> Iterator[RemovedEvents]:
    """Remove, level by level, the events of sessions that were sealed before *before*. The seals stay."""
    number = operator.tenant(tenant)
    for level in Label:
        yield remove_events(operator, number, level, before=before)
