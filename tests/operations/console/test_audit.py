"""The audit log in the console: its filters, and whether it is what was sealed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import muniment
from muniment import AuditEvent, Classification, HostClient, NewMemory
from muniment_console import audit
from muniment_console.audit import Filter, audit_page
from muniment_console.received import Received, Verdict, chains_of, state_of
from muniment_server.admin.audit import checkpoint_of
from muniment_server.domain.classification import Label
from tests.clients.cli.page.looking import Element, Look
from tests.operations.admin.test_audit_export import export
from tests.operations.admin.test_audit_seals import CONFIDENTIAL_EVENT, LATER, NEW_EVENT, Log, log, sealed
from tests.operations.console.consoles import Console
from tests.support.commands import run, wait_until
from tests.support.each import for_each

__all__ = ["log", "sealed"]
PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification
_ALL = Filter()


def rows(page: Look) -> list[list[str]]:
    """The cells of each event."""
    found = [each for each in page.elements if each.tag == "tr"][1:]
    return [[" ".join(cell.text.split()) for cell in cells(page, row)] for row in found]


def cells(page: Look, row: Element) -> list[Element]:
    return [each for each in page.elements if each.tag == "td" and any(row is parent for parent in each.parents)]


def link(page: Look, start: str) -> str:
    """The first link that begins so."""
    return next(each.attributes["href"] for each in page.elements if each.attributes.get("href", "").startswith(start))


def links_of_items(page: Look) -> dict[str, str]:
    """The link from each item of an agent's page to its audit events."""
    return {
        page.texts("name", within=drawn)[0]: each.attributes["href"]
        for drawn in page.find("version")
        for each in page.elements
        if each.tag == "a" and any(drawn is parent for parent in each.parents)
    }


def test_an_auditor_finds_who_read_a_confidential_memory_last_week_and_whether_the_log_is_whole(
    dev, host, ada, host_key, folder
):
    """From the console alone."""
    with host.open_session(ada.agent_id, CONFIDENTIAL, conversation_id="payroll") as writer:
        writer.save_memories([NewMemory("salary", "52,000 a year"), NewMemory("bonus", "none")])
    reader = host.open_session(ada.agent_id, CONFIDENTIAL, conversation_id="chat-7")
    reader.get_memory("salary")
    (key_id,) = {each.host_key_id for each in host.list_audit_events(session=reader) if each.host_key_id}
    file = folder / "audit.jsonl"

    def received() -> bool:
        file.write_text(run(dev.folder, "audit", "export", "--tenant", "development", "--ceiling", "restricted",
                            "--data-dir", ".muniment").stdout)  # fmt: skip
        return reader.session_id in file.read_text() and "GetMemory" in file.read_text()

    wait_until(received, "the read is sealed and exported")
    with Console(dev.folder, dev.address, host_key, "--export", str(file)) as console:
        page = console.look(link(console.look("/audit"), "/audit?level=CONFIDENTIAL"))
        (read,) = [row for row in rows(page) if row[3] == "GetMemory" and row[5] == ada.agent_id]
        session = link(page, f"/audit?session={reader.session_id}")
        opened = console.look(session)
        seals = console.look("/seals")
        item = console.look(links_of_items(console.look(f"/agent?id={ada.agent_id}"))["salary"])
        several = console.look(link(item, f"/audit?agent={ada.agent_id}&item=several"))

    assert [row[3] for row in rows(item)] == ["GetMemory", "SaveMemories"]
    assert {(row[3], row[7]) for row in rows(several)} >= {("ListMemories", "memory 2 read")}
    assert all(row[7].endswith(" read") for row in rows(several))
    assert read[1:3] + read[4:7] == [
        "as sealed",
        "CONFIDENTIAL",
        "OK",
        ada.agent_id,
        f"session {reader.session_id[:8]}",
    ]
    assert f"of agent {ada.agent_id}, conversation chat-7" in " ".join(opened.find("card")[0].text.split())
    assert [row[6] for row in rows(opened) if row[3] == "OpenSession"] == [
        f"host key {key_id[:8]} session {reader.session_id[:8]}"
    ]
    for each in (page, opened, seals):
        assert {"whole", "behind"} & each.find("verdict")[0].classes
        assert "The log is whole" in each.texts("verdict")[0]
    reader.close()


def test_from_a_passage_an_auditor_finds_who_stored_it(console, host, ada):
    with host.open_session(ada.agent_id, INTERNAL, conversation_id="archive") as session:
        passages = [session.store_passage(text) for text in ("the first meeting", "the second meeting")]
        session_id = session.session_id
    links = links_of_items(console.look(f"/agent?id={ada.agent_id}"))

    for passage in passages:
        stored = console.look(links[passage.passage_id])
        assert [(row[2], row[5][:8]) for row in rows(stored)] == [("StorePassage", "session ")]
        of_item = console.look(link(stored, "/audit?item="))
        assert [row[2] for row in rows(of_item)] == ["StorePassage"]
        assert f"/audit?session={session_id}" in link(of_item, "/audit?session=")


@pytest.fixture
def auditor(log: Log) -> Iterator[HostClient]:
    with muniment.connect(log.service.address, host_key=log.service.host().token) as connected:
        yield connected


@pytest.fixture
def received(log: Log, tmp_path: Path) -> Received:
    """What was exported so far."""
    file = tmp_path / "audit.jsonl"
    file.write_text("".join(f"{line}\n" for line in export(log)))
    return Received(file)


def seen(auditor: HostClient, received: Received, given: Filter = _ALL) -> tuple[str, set[Verdict], int]:
    """The state that a page shows, the verdicts on its events, and how many are missing."""
    _, found = audit_page(auditor, given, received)
    return found["state"], {*found["compared"].verdicts.values()}, len(found["compared"].missing)


def test_what_was_sealed_is_whole(log, auditor, received):
    assert seen(auditor, received) == ("whole", {Verdict.SEALED}, 0)
    assert [(each.behind, each.problems) for each in chains_of(auditor, received)] == [(0, [])] * len(Label)


def test_what_was_done_since_is_not_exported(log, auditor, received):
    log.write(keys=("f",))
    assert seen(auditor, received) == ("whole", {Verdict.SEALED, Verdict.UNKNOWN}, 0)

    log.seal()
    assert seen(auditor, received)[0] == "behind"


def test_an_export_that_grows_catches_up(log, auditor, tmp_path):
    lines = [f"{line}\n" for line in export(log)]
    file = tmp_path / "audit.jsonl"
    file.write_text("".join([*lines[:20], lines[20][:30]]))
    received = Received(file)
    assert seen(auditor, received)[0] == "behind"

    file.write_text("".join(lines))

    assert seen(auditor, received) == ("whole", {Verdict.SEALED}, 0)


@for_each("form", ["ocsf"])
def test_another_form_of_an_export_is_read(log, auditor, tmp_path, form):
    file = tmp_path / "audit.jsonl"
    file.write_text("".join(f"{line}\n" for line in export(log, form=form)))

    assert seen(auditor, Received(file)) == ("whole", {Verdict.SEALED}, 0)


TAMPERED = {
    "a changed outcome": (f"UPDATE muniment_confidential.audit SET outcome = 'X' WHERE event_id = {CONFIDENTIAL_EVENT}",
                          Verdict.CHANGED, 0),
    "another session": ("UPDATE muniment_confidential.audit SET session_id = gen_random_uuid() "
                        f"WHERE event_id = {CONFIDENTIAL_EVENT}", Verdict.CHANGED, 0),
    "a changed reason": ("UPDATE muniment_control.audit SET reason = 'X' WHERE method = 'OpenSession'",
                         Verdict.CHANGED, 0),
    "a removed event": (f"DELETE FROM muniment_confidential.audit WHERE event_id = {CONFIDENTIAL_EVENT}",
                        Verdict.SEALED, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERED)
def test_what_was_changed_or_removed_is_found(log, auditor, received, name):
    statement, verdict, missing = TAMPERED[name]
    assert log.tamper(statement) > 0

    state, verdicts, count = seen(auditor, received)

    assert (state, verdict in verdicts, count) == ("broken", True, missing)


def test_an_event_that_was_added_long_after_its_time_is_found(log, auditor, tmp_path):
    """If the export has later seals: an event of the last minutes may not have been sealed yet."""
    lines = [json.loads(line) for line in export(log)]
    log.tamper(NEW_EVENT.format("now() - interval '1 day'"))
    for record in lines:
        if record["type"] == "seal":
            record["time"] = datetime.now(UTC).isoformat(timespec="microseconds")
    file = tmp_path / "audit.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    assert Verdict.ADDED in seen(auditor, Received(file))[1]


@for_each(
    "statement",
    [
        "DELETE FROM muniment_auditor.sealed_event WHERE (level, number) = "
        "(SELECT 3, max(number) FROM muniment_auditor.seal WHERE level = 3);"
        "DELETE FROM muniment_auditor.seal WHERE (level, number) = "
        "(SELECT 3, max(number) FROM muniment_auditor.seal WHERE level = 3)",
        "UPDATE muniment_auditor.seal SET hash = sha256('x') WHERE (level, number) = "
        "(SELECT 3, max(number) FROM muniment_auditor.seal WHERE level = 3)",
    ],
)
def test_a_log_that_was_cut_or_sealed_anew_is_found(log, auditor, received, statement):
    assert log.tamper(statement) == 1

    assert state_of(chains_of(auditor, received)) == "broken"


def test_events_that_were_purged_are_not_missed(log, auditor, tmp_path):
    log.purge(before=datetime.now(UTC) + LATER)
    file = tmp_path / "audit.jsonl"
    before = export(log)
    log.seal()
    file.write_text("".join(f"{line}\n" for line in [*before, *export(log)]))

    state, _, missing = seen(auditor, Received(file))

    assert (state, missing) == ("whole", 0)


def test_events_that_were_purged_after_the_export_are_not_missed(log, auditor, received, tmp_path):
    log.purge(before=datetime.now(UTC) + LATER)
    assert seen(auditor, received)[2] > 0  # that they were removed was not exported yet

    log.seal()
    with (tmp_path / "audit.jsonl").open("a") as file:
        file.writelines(f"{line}\n" for line in export(log))

    assert seen(auditor, received)[2] == 0


def test_a_file_that_is_no_export_is_named(log, auditor, tmp_path):
    (tmp_path / "audit.jsonl").write_text("{}\n")

    with pytest.raises(muniment.cli.failures.Failure, match="not of an exported audit log"):
        chains_of(auditor, Received(tmp_path / "audit.jsonl"))


def test_the_checkpoints_on_the_page_are_those_that_verify_takes(log, auditor, tmp_path):
    with Console(tmp_path, log.service.address, log.service.host().token) as console:
        page = console.look("/seals")

    (lines,) = [each.text for each in page.find("checkpoints")]
    found = [checkpoint_of(line, "acme") for line in lines.splitlines() if line]
    assert [*reversed(found)] == log.checkpoints()
    assert "Not compared." in page.texts("verdict")[0]


def test_each_filter_leaves_the_events_that_it_names(log, auditor):
    events = list(auditor.list_audit_events())
    one = next(each for each in events if each.item_id and each.classification == CONFIDENTIAL)
    other = next(each for each in events if each.host_key_id)
    middle = sorted(each.time for each in events)[len(events) // 2]
    filters = {
        "agent": (one.agent_id, lambda each: each.agent_id == one.agent_id),
        "session": (one.session_id, lambda each: each.session_id == one.session_id),
        "key": (other.host_key_id[:8], lambda each: each.host_key_id == other.host_key_id),
        "item": (one.item_id[:8], lambda each: each.item_id == one.item_id),
        "method": (one.method, lambda each: each.method == one.method),
        "outcome": ("OK", lambda each: each.outcome == "OK"),
        "level": ("confidential", lambda each: each.classification == CONFIDENTIAL),
        "start": (middle.isoformat(), lambda each: each.time >= middle),
        "end": (middle.isoformat(), lambda each: each.time < middle),
    }
    for name, (value, matches) in filters.items():
        _, found = audit_page(auditor, Filter.of({name: value}), None)
        assert found["events"] == [each for each in events if matches(each)], name
        assert found["events"], name


def test_pages_of_events_follow_each_other_without_a_gap(log, auditor, received, monkeypatch):
    monkeypatch.setattr(audit, "MAX_SHOWN", 3)
    monkeypatch.setattr(audit, "MAX_SCANNED", 7)
    events = list(auditor.list_audit_events())
    for given in ({}, {"level": "public"}, {"method": "SaveMemory", "start": "1d"}):
        found: list[AuditEvent] = []
        before: str | None = ""
        while before is not None:
            _, page = audit_page(auditor, Filter.of({**given, "before": before}), received)
            assert (page["state"], len(page["events"]) <= 3) == ("whole", True)
            found += page["events"]
            before = page["older"]
        wanted = Filter.of(given)
        assert found == [each for each in events if wanted.allows(each)]


def test_a_removed_event_is_missed_on_the_page_where_it_would_stand(log, auditor, received, monkeypatch):
    monkeypatch.setattr(audit, "MAX_SCANNED", 5)
    assert log.tamper(f"DELETE FROM muniment_confidential.audit WHERE event_id = {CONFIDENTIAL_EVENT}") == 1
    missing: list[Label] = []
    before: str | None = ""
    while before is not None:
        _, page = audit_page(auditor, Filter.of({"before": before}), received)
        missing += page["compared"].missing
        before = page["older"]

    assert missing == [Label.CONFIDENTIAL]


def test_the_level_of_a_page_is_that_of_what_was_looked_at(log, auditor):
    """How many events were looked at would otherwise tell of those above the page's level."""
    level, found = audit_page(auditor, Filter.of({"level": "public"}), None)

    assert level == RESTRICTED
    assert {each.classification for each in found["events"]} == {PUBLIC}
    assert re.fullmatch("[0-9]+", str(found["scanned"]))


def test_what_is_said_of_the_seals_goes_up_to_the_level_of_the_page(log, auditor, tmp_path):
    """Whether something is done above it would otherwise show."""
    low = log.service.session(PUBLIC)
    low.save_memory(key="f", content="one")
    log.seal()
    file = tmp_path / "audit.jsonl"
    file.write_text("".join(f"{line}\n" for line in export(log)))
    log.write(level=RESTRICTED, keys=("f",))
    log.seal()

    level, found = audit_page(auditor, Filter(session=low.session_id), Received(file))

    assert (level, found["state"]) == (PUBLIC, "whole")
    assert seen(auditor, Received(file))[0] == "behind"
