"""EditBlock: what is edited, where the result goes, and what is refused. The edits themselves: tests/calls/domain."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.support.answers import LEVELS, PAIRS, PUBLIC, RESTRICTED, UP, events, invalid, refusal
from tests.support.concurrency import in_background, locked, wait_until_blocked
from tests.support.labels import untrusted
from tests.support.services import failure_of

GONE = "NOT_FOUND BLOCK_NOT_FOUND"
REFUSED: dict[str, dict[str, Any]] = {
    "TEXT_NOT_FOUND": {"replace": {"old": "three", "new": "x"}},
    "TEXT_NOT_UNIQUE": {"replace": {"old": "o", "new": "x"}},
    "LINE_OUT_OF_RANGE": {"insert": {"line": 3, "content": "x"}},
    "BLOCK_TOO_LARGE": {"append": {"content": "x" * 65536}},
}
"""What is refused of the block `one\\ntwo`, and why."""
EDITS: dict[str, tuple[dict[str, Any], str]] = {
    "append": ({"append": {"content": "three"}}, "one\ntwo\nthree"),
    "insert": ({"insert": {"line": 1, "content": "x"}}, "one\nx\ntwo"),
    "replace": ({"replace": {"old": "two", "new": "2"}}, "one\n2"),
}
"""What becomes of the block `one\\ntwo`."""


def edit(session, label="plan", **fields):
    return session.edit_block(label=label, **fields).block


@pytest.fixture
def plan(at):
    """Writes the block `plan` at a level."""
    return lambda level=PUBLIC, content="one\ntwo": at(level).update_block(label="plan", content=content).block


@pytest.mark.parametrize("how", EDITS)
@pytest.mark.parametrize("level", LEVELS)
def test_an_edit_changes_part_of_a_block(at, plan, level, how):
    before = plan(level)
    fields, result = EDITS[how]
    after = edit(at(level), **fields)

    assert (after.content, after.classification, after.owner_agent_id) == (result, level, "alice")
    assert after.create_time == before.create_time
    assert after.etag != before.etag
    assert at(level).get_block(label="plan").block == after


@pytest.mark.parametrize("how", EDITS)
@pytest.mark.parametrize(("low", "high"), UP)
def test_an_edit_of_a_lower_version_writes_the_own_level(at, plan, low, high, how):
    before = plan(low)
    fields, result = EDITS[how]
    after = edit(at(high), **fields)

    assert (after.content, after.classification, after.create_time) == (result, high, before.create_time)
    assert at(high).get_block(label="plan").block == after
    assert at(low).get_block(label="plan").block == before


@pytest.mark.parametrize(("low", "high"), UP)
def test_an_edit_is_of_the_version_that_is_seen(at, plan, low, high):
    """Not of the one below it, and not of the one above."""
    plan(low, "low")
    plan(high, "high")

    assert edit(at(high), append={"content": "x"}).content == "high\nx"
    assert edit(at(low), append={"content": "x"}).content == "low\nx"


@pytest.mark.parametrize(("written", "editor"), [(high, low) for low, high in UP])
def test_c13_an_edit_of_what_exists_only_above_is_as_of_nothing(at, plan, written, editor):
    etag = plan(written).etag
    outcomes = {
        failure_of(at(editor).edit_block, label=label, etag=tag, append={"content": "x"})
        for label in ("plan", "never")
        for tag in ("", etag)
    }

    assert len(outcomes) == 1
    assert refusal(at(editor).edit_block, label="plan", append={"content": "x"}) == GONE


@pytest.mark.parametrize("how", EDITS)
def test_a_missing_block_is_not_edited(at, plan, how):
    plan()
    at(PUBLIC).delete_block(label="plan")

    assert refusal(at(PUBLIC).edit_block, label="plan", **EDITS[how][0]) == GONE
    assert refusal(at(PUBLIC).get_block, label="plan") == GONE


@pytest.mark.parametrize("reason", REFUSED)
@pytest.mark.parametrize(("seen", "level"), [(low, high) for low, high in PAIRS if low <= high])
def test_an_edit_that_does_not_fit_is_refused_and_changes_nothing(at, host, plan, seen, level, reason):
    before = plan(seen)

    assert refusal(at(level).edit_block, label="plan", **REFUSED[reason]) == f"FAILED_PRECONDITION {reason}"
    assert at(level).get_block(label="plan").block == before
    assert [event.outcome for event in events(host) if event.method == "EditBlock"] in ([], [reason])


@pytest.mark.parametrize("reason", REFUSED)
def test_after_a_refused_edit_the_next_write_goes_through(at, plan, reason):
    """The lock that the edit took is gone with it. One that was left would be given up after 5 s."""
    plan()
    for _ in range(12):  # more often than there are connections
        failure_of(at(PUBLIC).edit_block, label="plan", **REFUSED[reason])

    assert at(PUBLIC).update_block(label="plan", content="x").block.content == "x"


@pytest.mark.parametrize("old", ["aa", "a"])
def test_places_that_overlap_are_several(at, plan, old):
    plan(content="aaa")

    assert refusal(at(PUBLIC).edit_block, label="plan", replace={"old": old, "new": "b"}) == (
        "FAILED_PRECONDITION TEXT_NOT_UNIQUE"
    )


def test_a_replacement_is_compared_byte_by_byte(at, plan):
    plan(content="e\u0301 %_")

    assert refusal(at(PUBLIC).edit_block, label="plan", replace={"old": "é", "new": ""}).endswith("TEXT_NOT_FOUND")
    assert edit(at(PUBLIC), replace={"old": "%", "new": "\\1"}).content == "e\u0301 \\1_"


def test_a_replacement_by_nothing_takes_the_text_away(at, plan):
    plan(content="one")

    assert edit(at(PUBLIC), replace={"old": "one"}).content == ""


@pytest.mark.parametrize(
    ("content", "line", "result"),
    [
        ("", 0, "x"),
        ("a", 0, "x\na"),
        ("a", 1, "a\nx"),
        ("a\n", 1, "a\nx"),
        ("a\n\n", 2, "a\n\nx"),
        ("a\n\n", 1, "a\nx\n\n"),
    ],
)
def test_lines_are_inserted_at_the_beginning_and_at_the_end(at, plan, content, line, result):
    plan(content=content)

    assert edit(at(PUBLIC), insert={"line": line, "content": "x"}).content == result


@pytest.mark.parametrize(("content", "line"), [("", 1), ("a", 2), ("a\n", 2), ("a\n\n", 3), ("a", 2**31 - 1)])
def test_lines_are_not_inserted_beyond_the_end(at, plan, content, line):
    plan(content=content)

    assert refusal(at(PUBLIC).edit_block, label="plan", insert={"line": line, "content": "x"}) == (
        "FAILED_PRECONDITION LINE_OUT_OF_RANGE"
    )


@pytest.mark.parametrize("character", ["x", "é", "€", "😀"])
@pytest.mark.parametrize("over", [0, 1])
def test_a_block_is_filled_to_65536_bytes_and_not_beyond(at, plan, character, over):
    """Counted in bytes, also of what is put in between."""
    size = len(character.encode())
    for fields in (
        {"append": {"content": character}},
        {"insert": {"line": 0, "content": character}},
        {"replace": {"old": "o", "new": character + "\no"}},
    ):
        plan(content="o" + "x" * (65536 - 1 - size - 1 + over))
        if over:
            assert refusal(at(PUBLIC).edit_block, label="plan", **fields) == "FAILED_PRECONDITION BLOCK_TOO_LARGE"
        else:
            assert len(edit(at(PUBLIC), **fields).content.encode()) == 65536


def test_a_full_block_may_be_made_smaller(at, plan):
    plan(content="o" + "x" * 65535)

    assert len(edit(at(PUBLIC), replace={"old": "ox", "new": "o"}).content) == 65535


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, "edit"), ({"append": {}}, "append.content"), ({"insert": {"line": 0}}, "insert.content"),
        ({"insert": {"line": -1, "content": "x"}}, "insert.line"), ({"replace": {"new": "x"}}, "replace.old"),
        ({"append": {"content": "x" * 65537}}, "append.content"), ({"append": {"content": "a\0"}}, "append.content"),
        ({"insert": {"content": "é" * 32769}}, "insert.content"), ({"insert": {"content": "\0"}}, "insert.content"),
        ({"replace": {"old": "x" * 65537}}, "replace.old"), ({"replace": {"old": "o", "new": "\0"}}, "replace.new"),
        ({"replace": {"old": "o", "new": "x" * 65537}}, "replace.new"),
    ],
)  # fmt: skip
def test_a_malformed_edit_is_refused(at, plan, fields, named):
    plan()

    assert invalid(at(PUBLIC).edit_block, label="plan", **fields) in ([named], [""])


def test_an_edit_that_changes_nothing_returns_the_stored_version(at, host, plan):
    before = plan()

    assert edit(at(PUBLIC), replace={"old": "two", "new": "two"}) == before
    assert [event.method for event in events(host)].count("EditBlock") == 0


@pytest.mark.parametrize(("seen", "level"), [(low, high) for low, high in PAIRS if low <= high])
def test_an_etag_is_checked_against_the_version_that_is_edited(at, plan, seen, level):
    etag = plan(seen).etag

    assert edit(at(level), append={"content": "x"}, etag=etag).classification == level
    assert refusal(at(level).edit_block, label="plan", append={"content": "x"}, etag=etag) == "ABORTED ETAG_STALE"
    assert at(level).get_block(label="plan").block.content == "one\ntwo\nx"


@pytest.mark.parametrize("reason", REFUSED)
def test_a_stale_etag_is_refused_before_what_does_not_fit(at, plan, reason):
    """The edit was meant for another text: whether it fits this one says nothing."""
    stale = plan(content="zero").etag
    plan()

    assert refusal(at(PUBLIC).edit_block, label="plan", etag=stale, **REFUSED[reason]) == "ABORTED ETAG_STALE"


@pytest.mark.parametrize(("low", "high"), UP)
def test_the_etag_of_a_higher_version_is_as_stale_as_one_that_never_existed(at, plan, low, high):
    plan(low)
    above = plan(high).etag
    elsewhere = at(low).update_block(label="other", content="x").block.etag

    assert failure_of(at(low).edit_block, label="plan", append={"content": "x"}, etag=above) == failure_of(
        at(low).edit_block, label="plan", append={"content": "x"}, etag=elsewhere
    )


def test_a_shared_block_of_the_label_is_not_edited(host, session):
    """The consumer has no block of its own, and writes no one else's."""
    session(PUBLIC, agent_id="bob")
    reader = session(PUBLIC)
    host.create_shared_block(owner_agent_id="bob", label="plan", content="one\ntwo")
    host.attach_block(owner_agent_id="bob", label="plan", agent_id="alice")

    for fields, _ in EDITS.values():
        assert failure_of(reader.edit_block, label="plan", **fields) == failure_of(
            reader.edit_block, label="never", **fields
        )
    assert reader.get_block(label="plan").block.content == "one\ntwo"


def test_with_an_own_and_a_shared_block_the_own_one_is_edited(host, session):
    bob, reader = session(PUBLIC, agent_id="bob"), session(PUBLIC)
    host.create_shared_block(owner_agent_id="bob", label="plan", content="bob's")
    host.attach_block(owner_agent_id="bob", label="plan", agent_id="alice")
    reader.update_block(label="plan", content="own")

    assert edit(reader, append={"content": "x"}).content == "own\nx"
    assert bob.get_block(label="plan").block.content == "bob's"


def test_another_agents_block_is_not_edited(session, at, plan):
    plan()
    bob = session(PUBLIC, agent_id="bob")

    assert refusal(bob.edit_block, label="plan", append={"content": "x"}) == GONE
    assert at(PUBLIC).get_block(label="plan").block.content == "one\ntwo"


def test_every_edit_is_in_the_ledger(shared, tenant, at, plan):
    plan(content="1")
    edit(at(PUBLIC), append={"content": "2"})
    edit(at(RESTRICTED), append={"content": "3"})
    with shared.database.as_owner() as owner:
        kept = [
            owner.execute(
                f"SELECT revision, content FROM {untrusted(level).role}.revision JOIN vault.tenant USING (tenant)"
                " WHERE tenant.name = %s AND revision.name = 'plan' ORDER BY revision".encode(),
                [tenant],
            ).fetchall()
            for level in (PUBLIC, RESTRICTED)
        ]

    assert kept == [[(1, "1"), (2, "1\n2")], [(1, "1\n2\n3")]]


@pytest.mark.parametrize(("low", "high"), UP)
def test_an_edit_is_of_what_is_seen_after_a_raise(session, host, at, plan, low, high):
    own = session(low)
    plan(low, "low")
    plan(high, "high")
    host.raise_taint(session_id=own.session_id, taint=high)

    assert edit(own, append={"content": "x"}).content == "high\nx"
    assert at(low).get_block(label="plan").block.content == "low"


def test_concurrent_edits_all_count(session, at, plan):
    """Each reads under the lock: none is lost, and no one needs an etag."""
    plan(content="")
    sessions = [session(PUBLIC) for _ in range(6)]

    def append(own, name):
        for number in range(5):
            edit(own, append={"content": f"{name}{number}"})

    threads = [threading.Thread(target=append, args=pair) for pair in zip(sessions, "abcdef", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    lines = at(PUBLIC).get_block(label="plan").block.content.split("\n")
    assert sorted(lines) == sorted(f"{name}{number}" for name in "abcdef" for number in range(5))


def test_an_edit_waits_for_the_write_lock_and_sees_what_the_other_writer_wrote(service):
    """Were the version read before the lock, the update in between would be lost."""
    session, other = service.session(PUBLIC), service.session(PUBLIC)
    session.update_block(label="plan", content="one")
    with locked(service, session):
        waiting, done = in_background(session.edit_block, label="plan", append={"content": "three"})
        wait_until_blocked(service)
        other.update_block(label="plan", content="one\ntwo")
    waiting.join(20)

    assert done[0].block.content == "one\ntwo\nthree"
