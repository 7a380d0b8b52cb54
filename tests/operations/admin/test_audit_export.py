"""`muniment audit export`, and what its receiver proves with `check-export`."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from muniment.cli.failures import Failure
from muniment_server.admin.audit import check_export
from muniment_server.admin.connection import connect_operator
from muniment_server.admin.export_checking import Checked, Export
from muniment_server.admin.exporting import FORMATS, Cursor, as_syslog, new_records, require_known
from muniment_server.admin.sealing import Checkpoint
from muniment_server.domain.classification import Classification, Label
from tests.operations.admin.test_audit_seals import LATER, Log, log, sealed
from tests.operations.tools.wheels import read_wheel
from tests.support.answers import CONFIDENTIAL, LEVELS, PUBLIC, RESTRICTED
from tests.support.each import for_each

__all__ = ["log", "sealed"]


def export(
    log: Log, ceiling: Classification = RESTRICTED, cursor: Cursor | None = None, form: str = "jsonl"
) -> list[str]:
    """The lines of an export, which moves *cursor*."""
    with connect_operator(log.database.admin) as operator:
        batches = new_records(operator, "acme", ceiling, {} if cursor is None else cursor)
        return [FORMATS[form](record) for records in batches for record in records]


def check(lines: Sequence[str], checkpoints: Sequence[Checkpoint] = ()) -> list[Checked]:
    received = Export("acme")
    received.read(lines)
    return list(received.check(checkpoints))


def problems(lines: Sequence[str], checkpoints: Sequence[Checkpoint] = ()) -> list[str]:
    return [problem for one in check(lines, checkpoints) for problem in one.problems]


def test_an_export_is_whole(log):
    found = check(export(log), log.checkpoints())

    assert [(one.classification, one.problems, one.unsealed, one.removed) for one in found] == [
        (label, [], 0, 0) for label in Label
    ]
    assert [(one.first, one.last, one.events) for one in found] == [
        (1, one.seal_number, one.event_count) for one in log.checkpoints()
    ]


@for_each("form", ["jsonl", "ocsf"])
def test_each_form_can_be_checked_in_any_order_and_with_repeated_lines(log, form):
    lines = export(log, form=form)
    framed = [as_syslog(json.loads(line), line) for line in export(log)]

    assert problems([*reversed(lines), *lines[:7]], log.checkpoints()) == []
    assert problems(framed, log.checkpoints()) == []


def test_nothing_above_the_ceiling_of_the_destination_is_exported(log):
    lines = export(log, PUBLIC)

    assert {json.loads(line)["level"] for line in lines} == {"PUBLIC_TRUSTED", "PUBLIC"}
    assert problems(lines, log.checkpoints()[:2]) == []


def test_nothing_of_what_is_stored_is_exported(log):
    session = log.service.session(CONFIDENTIAL)
    session.save_memory(key="canary-key", content="canary-content", tags=["canary-tag"])
    session.search_memories(query="canary-query")
    log.seal()

    assert "canary" not in "".join([*export(log), *export(log, form="ocsf")])


def test_an_export_goes_on_after_its_cursor(log):
    cursor: Cursor = {}
    before = export(log, cursor=cursor)
    sent = [*cursor.values()]
    assert export(log, cursor=cursor) == []
    log.write(keys=("f", "g"))
    log.seal()
    after = export(log, cursor=cursor)

    assert problems([*before, *after], log.checkpoints()) == []
    (last,) = (one for one in sent if one.classification is Label.CONFIDENTIAL)
    (found,) = check(after, [last])
    assert (found.first, found.problems) == (last.seal_number + 1, [])
    assert check(after, [replace(last, head_hash="00" * 32)])[0].problems != []
    assert problems(before, log.checkpoints()) != []


def test_the_cursor_is_that_of_what_was_taken(log):
    """So a program that writes first, and keeps the cursor then, repeats its last batch at most."""
    cursor: Cursor = {}
    with connect_operator(log.database.admin) as operator:
        for records in new_records(operator, "acme", RESTRICTED, cursor):
            seal = records[-1]
            last = cursor[Label[seal["level"]]]
            assert (last.seal_number, last.head_hash) == (seal["number"], seal["hash"])
    assert [*cursor.values()] == log.checkpoints()


def last_seal(lines: Sequence[str]) -> int:
    """The number of the last seal at CONFIDENTIAL."""
    records = map(json.loads, lines)
    return max(int(one["number"]) for one in records if (one["type"], one["level"]) == ("seal", "CONFIDENTIAL"))


def without_the_last_seal(lines: list[str]) -> list[str]:
    return [line for line in lines if not _is(line, "seal", last_seal(lines))]


Change = Callable[[list[str]], list[str]]


def without(kind: str, number: int) -> Change:
    """Without one line of the chain CONFIDENTIAL."""

    def change(lines: list[str]) -> list[str]:
        (found, *_) = (line for line in lines if _is(line, kind, number))
        return [line for line in lines if line is not found]

    return change


def _is(line: str, kind: str, number: int) -> bool:
    record = json.loads(line)
    return (record["type"], record["level"], record["number"]) == (kind, "CONFIDENTIAL", number)


def with_field(kind: str, **changed: object) -> Change:
    """With another value in one line."""

    def change(lines: list[str]) -> list[str]:
        (index, *_) = (index for index, line in enumerate(lines) if _is(line, kind, 1))
        return [*lines[:index], json.dumps(json.loads(lines[index]) | changed), *lines[index + 1 :]]

    return change


def forged(number: int) -> Change:
    """With another event."""

    def change(lines: list[str]) -> list[str]:
        (found, *_) = (json.loads(line) for line in lines if _is(line, "event", 1))
        return [*lines, json.dumps(found | {"number": number, "event_id": "00000000-0000-0000-0000-000000000009"})]

    return change


_WRONG = "seals whose events are not those that they cover: 1"
TAMPERED: dict[str, tuple[Change, str]] = {
    "an event is missing": (without("event", 1), _WRONG),
    "the first seal is missing": (without("seal", 1), _WRONG),
    "the last seal is missing": (without_the_last_seal, "the export ends with seal"),
    "an outcome was changed": (with_field("event", outcome="DENIED"), _WRONG),
    "a time was changed": (with_field("event", time="2020-01-01T00:00:00+00:00"), _WRONG),
    "the hash of a seal was changed": (with_field("seal", hash="00" * 32), "does not follow"),
    "the hash of events was changed": (with_field("seal", events_hash="00" * 32), _WRONG),
    "a seal counts less": (with_field("seal", event_count=1), "does not follow"),
    "an event was added to a seal": (forged(1), _WRONG),
    "all events of a seal are missing": (
        lambda lines: [line for line in lines if not _is(line, "event", 1)], _WRONG
    ),
}  # fmt: skip


@for_each("name", TAMPERED)
def test_what_was_tampered_with_is_found(log, name):
    change, problem = TAMPERED[name]

    assert any(problem in found for found in problems(change(export(log)), log.checkpoints()))


def test_a_gap_between_seals_is_found(log):
    log.write(keys=("f",))
    log.seal()
    lines = [line for line in export(log) if not (_is(line, "seal", 2) or _is(line, "event", 2))]
    assert last_seal(lines) > 2

    assert problems(lines) == ["1 seals are missing"]


def test_events_after_the_last_seal_prove_nothing_and_are_counted(log):
    found = {one.classification: one for one in check(forged(9)(export(log)))}

    assert (found[Label.CONFIDENTIAL].unsealed, found[Label.CONFIDENTIAL].problems) == (1, [])


def test_what_a_purge_has_removed_is_proved_by_a_sealed_event_alone(log):
    """It is at the highest level: for a destination below, nothing proves why events are missing."""
    log.purge(before=datetime.now(UTC) + LATER)
    log.seal()
    whole, below = export(log), export(log, CONFIDENTIAL)

    assert problems(whole, log.checkpoints()) == []
    assert sum(one.removed for one in check(whole)) > 0
    assert problems(below) != []
    assert problems([line for line in whole if '"audit purge"' not in line]) != []


def test_after_the_log_was_rewritten_an_export_does_not_go_on(log):
    cursor: Cursor = {}
    last = last_seal(export(log, cursor=cursor))
    with connect_operator(log.database.admin) as operator:
        require_known(operator, "acme", cursor)
        changed = f"UPDATE muniment_auditor.seal SET hash = '\\x00' WHERE level = 3 AND number = {last}"
        assert log.tamper(changed) == 1
        with pytest.raises(Failure, match=f"seal {last} of CONFIDENTIAL that was exported"):
            require_known(operator, "acme", cursor)


def test_the_log_of_another_tenant_is_left_out(log):
    received = Export("globex")
    received.read(export(log))

    assert list(received.check([])) == []


@for_each("line", ["", "no JSON", "[]", "{}", '{"tenant_name": "acme"}', '{"unmapped": 1}', "{" * 100_000, "\0"])
def test_a_line_of_something_else_is_named(line):
    with pytest.raises(Failure, match="line 1 is not of an exported audit log"):
        Export("acme").read([line])


@for_each("names", [("none", "whole"), ("whole", "none"), ("program", "whole")])
def test_a_file_that_cannot_be_read_is_named(tmp_path, names):
    (tmp_path / "whole").touch()
    (tmp_path / "program").write_bytes(b"\x7fELF\xd0\n")
    file, checkpoints = (str(tmp_path / name) for name in names)

    done = CliRunner().invoke(check_export, [file, "--tenant", "acme", "--checkpoint", checkpoints])

    assert done.exit_code == 1
    assert ("none: No such file" if "none" in names else "line 1 is not of an exported audit log") in done.output


def test_a_line_of_syslog_is_one_of_rfc_5424(log):
    form = r"<10[59]|<110>1 \S+T\S+\+00:00 \S{1,255} muniment - (event|seal) - \{[\x20-\x7e]+\}"

    for line in export(log):
        assert re.fullmatch(form, as_syslog(json.loads(line), line))


@pytest.mark.proof
def test_ocsf_accepts_every_line(log, request, monkeypatch):
    """By its own schema, as the library ocsf-json-schema makes it."""
    wheel = read_wheel(request.config.cache.mkdir("wheels"), "ocsf_json_schema")
    monkeypatch.syspath_prepend(str(wheel.filename))
    library = importlib.import_module("ocsf_json_schema.embedded")
    made = library.OcsfJsonSchemaEmbedded(json.loads(wheel.read("ocsf_json_schema/ocsf/1.6.0.json")))
    validator = Draft202012Validator(made.get_class_schema(class_name="api_activity", profiles=[]))
    lines = export(log, form="ocsf")

    assert len(lines) > len(LEVELS)
    assert [error.message for line in lines for error in validator.iter_errors(json.loads(line))] == []
    assert list(validator.iter_errors({**json.loads(lines[0]), "severity_id": "low"})) != []
