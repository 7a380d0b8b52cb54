"""Core blocks of one agent: ListBlocks, GetBlock, UpdateBlock, DeleteBlock."""

from __future__ import annotations

import threading

import pytest

from tests.support.answers import (
    CONFIDENTIAL,
    INTERNAL,
    LEVELS,
    PAIRS,
    PUBLIC,
    RESTRICTED,
    UP,
    events,
    in_future,
    invalid,
    pages,
    refusal,
)
from tests.support.labels import untrusted
from tests.support.services import failure_of

GONE = "NOT_FOUND BLOCK_NOT_FOUND"
STALE = "ABORTED ETAG_STALE"
MISMATCH = "FAILED_PRECONDITION WRITE_LEVEL_MISMATCH"
INVALID_TOKEN = "INVALID_ARGUMENT PAGE_TOKEN_INVALID"
DECOMPOSED, COMPOSED = "க\u0bc6\u0bbe", "க\u0bca"


@pytest.fixture(autouse=True)
def alice(host):
    """The agent of these tests, with one block."""
    host.create_agent(agent_id="alice", initial_blocks=[{"label": "first"}])


@pytest.fixture
def raw(shared, tenant):
    """All blocks of this tenant at a level, as they are in the table: with who wrote and who locked them last."""

    def rows(level):
        with shared.database.as_owner() as owner:
            return owner.execute(
                f"SELECT item.xmin::text, item.xmax::text, item.* FROM {untrusted(level).role}.item"
                " JOIN vault.tenant USING (tenant) WHERE tenant.name = %s AND kind = 3"
                " ORDER BY item.name, item.create_time".encode(),
                [tenant],
            ).fetchall()

    return rows


def write(session, *labels, content=None):
    for label in labels:
        session.update_block(label=label, content=label if content is None else content)


def labels(response):
    return [block.label for block in response.blocks]


def all_labels(session, **fields):
    return [label for page in pages(session.list_blocks, **fields) for label in labels(page)]


# --- Get


@pytest.mark.parametrize(("written", "reader"), PAIRS)
def test_c01_a_block_is_seen_at_its_level_and_above(at, written, reader):
    write(at(written), "plan")

    if written <= reader:
        assert at(reader).get_block(label="plan").block.classification == written
    else:
        assert refusal(at(reader).get_block, label="plan") == GONE


@pytest.mark.parametrize(("low", "high"), UP)
def test_get_returns_the_highest_visible_version(at, low, high):
    write(at(low), "plan", content="low")
    write(at(high), "plan", content="high")

    seen = {level: at(level).get_block(label="plan").block.content for level in LEVELS if level >= low}

    assert seen == {level: "high" if level >= high else "low" for level in LEVELS if level >= low}


def test_get_finds_the_own_block_under_the_own_id_too(at):
    write(at(PUBLIC), "plan")

    assert at(PUBLIC).get_block(label="plan", owner_agent_id="alice") == at(PUBLIC).get_block(label="plan")


def test_get_under_an_owner_that_shares_nothing_finds_nothing(session):
    write(session(PUBLIC, agent_id="bob"), "plan")
    alice = session(PUBLIC)
    write(alice, "plan")

    outcomes = {
        failure_of(alice.get_block, label="plan", owner_agent_id="bob"),
        failure_of(alice.get_block, label="plan", owner_agent_id="never"),
        failure_of(alice.get_block, label="never"),
        failure_of(alice.get_block, label="never", owner_agent_id="alice"),
    }

    assert len(outcomes) == 1


def test_absent_deleted_and_above_are_one_not_found(at):
    write(at(INTERNAL), "above")
    write(at(PUBLIC), "deleted")
    at(PUBLIC).delete_block(label="deleted")

    assert len({failure_of(at(PUBLIC).get_block, label=label) for label in ("absent", "deleted", "above")}) == 1


@pytest.mark.parametrize("owner", ["~a", "a b", "a" * 257, "e\u0301"])
def test_an_owner_that_can_be_no_agent_is_refused(at, owner):
    assert invalid(at(PUBLIC).get_block, label="plan", owner_agent_id=owner) == ["owner_agent_id"]


# --- Update


@pytest.mark.parametrize("level", LEVELS)
def test_an_update_creates_a_block_at_the_taint(at, level):
    made = at(level).update_block(label="plan", content="text").block

    assert (made.owner_agent_id, made.label, made.content, made.shared) == ("alice", "plan", "text", False)
    assert made.classification == level
    assert made.create_time == made.update_time
    assert at(level).get_block(label="plan").block == made


@pytest.mark.parametrize(("low", "high"), UP)
def test_the_level_is_forced(at, raw, low, high):
    """C10: the version is in the table of the session's level, and in no other."""
    write(at(high), "plan")

    assert [row.name for row in raw(high)] == ["plan"]
    assert "plan" not in [row.name for row in raw(low)]
    assert refusal(at(low).get_block, label="plan") == GONE


def test_an_update_replaces_the_content_and_keeps_the_create_time(at):
    first = at(PUBLIC).update_block(label="plan", content="one").block
    second = at(PUBLIC).update_block(label="plan", content="two").block

    assert (second.content, second.create_time) == ("two", first.create_time)
    assert second.update_time.ToDatetime() > first.update_time.ToDatetime()
    assert second.etag != first.etag


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("content", ["", "text"])
def test_an_update_that_changes_nothing_returns_the_stored_version(at, level, content):
    first = at(level).update_block(label="plan", content=content).block

    assert at(level).update_block(label="plan", content=content).block == first
    assert at(level).update_block(label="plan", content=content, etag=first.etag).block == first


def test_an_update_that_changes_nothing_is_no_event(at, host):
    for _ in range(3):
        write(at(PUBLIC), "plan")

    assert [event.revision for event in events(host) if event.method == "UpdateBlock"] == [1]


@pytest.mark.parametrize(("low", "high"), UP)
def test_an_update_with_the_text_of_the_lower_version_is_a_version(at, low, high):
    """It shadows: a later edit below is not seen."""
    write(at(low), "plan", content="same")

    assert at(high).update_block(label="plan", content="same").block.classification == high
    write(at(low), "plan", content="other")
    assert at(high).get_block(label="plan").block.content == "same"


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_version_over_a_lower_one_inherits_its_create_time(at, low, high):
    lower = at(low).update_block(label="plan", content="low").block
    upper = at(high).update_block(label="plan", content="high").block

    assert upper.create_time == lower.create_time
    assert upper.update_time.ToDatetime() > lower.update_time.ToDatetime()


def test_a_version_over_several_inherits_from_the_highest_of_them(at):
    for level in LEVELS[::-1]:  # so that each has its own
        write(at(level), "plan", content=level.name)
    times = {level: at(level).get_block(label="plan").block.create_time.ToDatetime() for level in LEVELS}
    at(RESTRICTED).delete_block(label="plan")
    again = at(RESTRICTED).update_block(label="plan", content="again").block

    assert len(set(times.values())) == 4
    assert again.create_time.ToDatetime() == times[CONFIDENTIAL]


@pytest.mark.parametrize(("low", "high"), UP)
def test_c11_a_version_over_a_lower_one_leaves_its_row_as_it_was(at, raw, low, high):
    """Not even locked: a lock would show in xmax, an update in xmin."""
    write(at(low), "plan", content="low")
    before = raw(low)
    write(at(high), "plan", content="high")
    at(high).edit_block(label="plan", append={"content": "more"})
    at(high).delete_block(label="plan")

    assert raw(low) == before


@pytest.mark.parametrize(("low", "high"), UP)
def test_an_update_leaves_the_higher_version_as_it_was(at, raw, low, high):
    write(at(high), "plan", content="high")
    before = raw(high)
    write(at(low), "plan", content="low")

    assert raw(high) == before


@pytest.mark.parametrize(("low", "high"), UP)
def test_c10_the_answer_to_an_update_is_the_same_whether_or_not_a_higher_version_exists(at, low, high):
    write(at(high), "above", content="high")
    above, alone = (at(low).update_block(label=label, content="low").block for label in ("above", "alone"))

    for made in (above, alone):
        assert made.create_time == made.update_time
        for unlike in ("label", "etag", "create_time", "update_time"):
            made.ClearField(unlike)
    assert above == alone


@pytest.mark.parametrize(("seen", "level"), [(low, high) for low, high in PAIRS if low <= high])
def test_an_etag_is_checked_against_the_version_that_get_returns(at, seen, level):
    etag = at(seen).update_block(label="plan", content="one").block.etag
    made = at(level).update_block(label="plan", content="two", etag=etag).block

    assert (made.content, made.classification) == ("two", level)


@pytest.mark.parametrize(("low", "high"), UP)
def test_the_etag_of_a_shadowed_version_is_stale(at, low, high):
    shadowed = at(low).update_block(label="plan", content="low").block.etag
    write(at(high), "plan", content="high")

    assert refusal(at(high).update_block, label="plan", content="new", etag=shadowed) == STALE
    assert at(high).get_block(label="plan").block.content == "high"


@pytest.mark.parametrize(("low", "high"), UP)
def test_c15_the_etag_of_a_higher_version_is_as_stale_as_one_that_never_existed(at, low, high):
    write(at(low), "plan")
    above = at(high).update_block(label="plan", content="high").block.etag
    elsewhere = at(low).update_block(label="other", content="low").block.etag

    assert failure_of(at(low).update_block, label="plan", content="x", etag=above) == failure_of(
        at(low).update_block, label="plan", content="x", etag=elsewhere
    )


def test_a_stale_etag_is_refused_even_with_the_same_text(at):
    first = at(PUBLIC).update_block(label="plan", content="1").block.etag
    at(PUBLIC).update_block(label="plan", content="2", etag=first)

    assert refusal(at(PUBLIC).update_block, label="plan", content="2", etag=first) == STALE


def test_an_etag_where_nothing_is_there_is_stale(at):
    etag = at(PUBLIC).update_block(label="plan", content="1").block.etag
    at(PUBLIC).delete_block(label="plan")

    assert refusal(at(PUBLIC).update_block, label="plan", content="2", etag=etag) == STALE
    assert refusal(at(PUBLIC).update_block, label="never", content="2", etag=etag) == STALE


def test_over_a_deleted_block_a_new_one_starts(at):
    first = at(PUBLIC).update_block(label="plan", content="1").block
    at(PUBLIC).delete_block(label="plan")
    second = at(PUBLIC).update_block(label="plan", content="1").block

    assert second.create_time == second.update_time
    assert second.create_time.ToDatetime() > first.create_time.ToDatetime()
    assert second.etag[:21] != first.etag[:21]


def test_every_version_is_in_the_ledger(shared, tenant, at):
    for content in ("one", "", "two", "two"):
        at(INTERNAL).update_block(label="plan", content=content)
    at(INTERNAL).delete_block(label="plan")
    with shared.database.as_owner() as owner:
        kept = owner.execute(
            "SELECT revision, content FROM muniment_internal.revision JOIN vault.tenant USING (tenant)"
            " WHERE tenant.name = %s ORDER BY revision",
            [tenant],
        ).fetchall()

    assert kept == [(1, "one"), (2, ""), (3, "two")]


@pytest.mark.parametrize(
    "content", ["", "x", "x" * 65536, "€" * 21845 + "x", "e\u0301\r\n\t\u202e\ufeff\x01\n", "### a\n§"]
)
def test_a_block_holds_up_to_64_kib_byte_for_byte(at, content):
    assert at(PUBLIC).update_block(label="plan", content=content).block.content == content
    assert at(PUBLIC).get_block(label="plan").block.content == content


@pytest.mark.parametrize("content", ["x" * 65537, "€" * 21846, "a\0b"])
def test_another_content_is_refused(at, content):
    assert invalid(at(PUBLIC).update_block, label="plan", content=content) == ["content"]


# --- Labels over the network


@pytest.mark.parametrize("label", ["நினைவு", "a" * 64, "_x.y-z", "漢字", "0", COMPOSED * 32])
def test_a_label_of_any_script_is_kept(at, label):
    write(at(PUBLIC), label)

    assert at(PUBLIC).get_block(label=label).block.label == label


def test_two_spellings_of_one_label_are_one_block(at):
    write(at(PUBLIC), DECOMPOSED)
    edited = at(PUBLIC).edit_block(label=DECOMPOSED, append={"content": "x"}).block

    assert edited.label == at(PUBLIC).get_block(label=COMPOSED).block.label == COMPOSED
    at(PUBLIC).delete_block(label=DECOMPOSED)
    assert refusal(at(PUBLIC).get_block, label=COMPOSED) == GONE


@pytest.mark.parametrize(
    "label",
    ["", "a b", "a#", "#", "a\n", "a\0", "😀", "\u0301a", "ிa", ".a", "-", "a/b", "a" * 65, "a" * 1025, "\u202ea"],
)
@pytest.mark.parametrize("rpc", ["get_block", "update_block", "edit_block", "delete_block"])
def test_another_label_is_refused_wherever_it_is_given(at, rpc, label):
    fields = {"edit_block": {"append": {"content": "x"}}}.get(rpc, {})

    assert invalid(getattr(at(PUBLIC), rpc), label=label, **fields) == ["label"]


@pytest.mark.parametrize("rpc", ["update_block", "edit_block", "delete_block"])
@pytest.mark.parametrize("etag", ["x", "*", "e" * 65])
def test_a_malformed_etag_is_refused(at, rpc, etag):
    fields = {"edit_block": {"append": {"content": "x"}}}.get(rpc, {})

    assert invalid(getattr(at(PUBLIC), rpc), label="plan", etag=etag, **fields) == ["etag"]


# --- Delete


@pytest.mark.parametrize("level", LEVELS)
def test_a_deleted_block_is_gone(at, level):
    write(at(level), "plan")

    assert at(level).delete_block(label="plan").revealed == 0
    assert refusal(at(level).get_block, label="plan") == GONE
    assert "plan" not in labels(at(level).list_blocks())


def test_a_second_delete_finds_nothing(at):
    write(at(PUBLIC), "plan")
    at(PUBLIC).delete_block(label="plan")

    assert refusal(at(PUBLIC).delete_block, label="plan") == GONE


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_delete_says_at_which_level_a_lower_version_is_seen_again(at, low, high):
    write(at(low), "plan", content="low")
    write(at(high), "plan", content="high")

    assert at(high).delete_block(label="plan").revealed == low
    assert at(high).get_block(label="plan").block.content == "low"
    assert refusal(at(high).delete_block, label="plan") == MISMATCH


@pytest.mark.parametrize(("low", "high"), UP)
def test_a_lower_version_cannot_be_deleted_even_the_second_time(at, low, high):
    etag = at(low).update_block(label="plan", content="low").block.etag

    assert [refusal(at(high).delete_block, label="plan", etag=tag) for tag in ("", etag, "")] == [MISMATCH] * 3
    assert at(low).get_block(label="plan").block.content == "low"


@pytest.mark.parametrize(("low", "high"), UP)
def test_c13_deleting_what_exists_only_above_is_like_deleting_nothing(at, low, high):
    etag = at(high).update_block(label="plan", content="high").block.etag

    outcomes = {
        failure_of(at(low).delete_block, label="plan"),
        failure_of(at(low).delete_block, label="plan", etag=etag),
        failure_of(at(low).delete_block, label="never"),
        failure_of(at(low).delete_block, label="never", etag=etag),
    }

    assert len(outcomes) == 1
    assert at(high).get_block(label="plan").block.content == "high"


@pytest.mark.parametrize(("low", "high"), UP)
def test_c18_a_low_delete_leaves_the_higher_version(at, low, high):
    write(at(low), "plan", content="low")
    before = at(high).update_block(label="plan", content="high").block

    assert at(low).delete_block(label="plan").revealed == 0
    assert at(high).get_block(label="plan").block == before


def test_a_delete_with_a_stale_etag_is_refused(at):
    stale = at(PUBLIC).update_block(label="plan", content="1").block.etag
    current = at(PUBLIC).update_block(label="plan", content="2").block.etag

    assert refusal(at(PUBLIC).delete_block, label="plan", etag=stale) == STALE
    at(PUBLIC).delete_block(label="plan", etag=current)
    assert refusal(at(PUBLIC).get_block, label="plan") == GONE


# --- List


def test_each_level_lists_itself_and_what_is_below(at):
    for level in LEVELS:
        write(at(level), level.name)

    assert {level: labels(at(level).list_blocks()) for level in LEVELS} == {
        level: sorted(["first", *(lower.name for lower in LEVELS if lower <= level)]) for level in LEVELS
    }


@pytest.mark.parametrize(("low", "high"), UP)
def test_each_label_is_listed_once_at_its_highest_visible_level(at, low, high):
    write(at(low), "plan", content="low")
    write(at(high), "plan", content="high")

    assert [block.content for block in at(high).list_blocks().blocks] == ["", "high"]
    assert [block.content for block in at(low).list_blocks().blocks] == ["", "low"]


def test_what_is_listed_is_what_get_returns(at):
    for level in LEVELS[::-1]:
        write(at(level), "a", f"b{level}", content=level.name)
    for reader in map(at, LEVELS):
        for block in reader.list_blocks().blocks:
            assert reader.get_block(label=block.label).block == block


def test_blocks_are_listed_by_the_bytes_of_their_labels(at):
    names = ["b", "B", "ab", "a-b", "a.b", "a_b", "Z", "é", "நினைவு", "10", "9", "漢字", "𝟘"]
    write(at(PUBLIC), *names)

    assert labels(at(PUBLIC).list_blocks()) == sorted(["first", *names], key=str.encode)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pages_are_complete_and_in_order(at, size):
    """Also where one page meets labels of several levels, shadowed and not."""
    at(PUBLIC).delete_block(label="first")
    for number in range(14):
        write(at(LEVELS[number % 4]), f"block{number:02}")
        write(at(PUBLIC), f"block{number:02}")

    for level in (RESTRICTED, PUBLIC):
        assert all_labels(at(level), page_size=size) == [f"block{number:02}" for number in range(14)]


def test_the_last_page_has_no_token(at):
    write(at(PUBLIC), "plan")

    assert at(PUBLIC).list_blocks(page_size=2).next_page_token == ""


def test_a_negative_page_size_is_refused(at):
    assert invalid(at(PUBLIC).list_blocks, page_size=-1) == ["page_size"]


@pytest.fixture(scope="module")
def crowd(shared):
    """A session whose agent has 260 blocks."""
    session = shared.session(PUBLIC, tenant="crowd-of-blocks")
    write(session, *(f"block{number:03}" for number in range(257)))
    return session


@pytest.mark.parametrize(("asked", "given"), [(0, 50), (1, 1), (250, 250), (251, 250), (2**31 - 1, 250)])
def test_a_page_has_50_blocks_by_default_and_250_at_most(crowd, asked, given):
    assert len(crowd.list_blocks(page_size=asked).blocks) == given


def test_c52_a_page_ends_early_at_3_mib_and_everything_still_arrives(at):
    names = [f"block{number:02}" for number in range(60)]
    write(at(PUBLIC), *names, content="x" * 65536)
    found = pages(at(PUBLIC).list_blocks, page_size=250)

    assert max(page.ByteSize() for page in found) <= 3 * 1024 * 1024
    assert [label for page in found for label in labels(page)] == [*names, "first"]
    assert len(found) == 2


def test_a_page_of_long_labels_stays_under_3_mib(at):
    """64 code points are 256 bytes: what stands around a content counts too."""
    names = ["𝟘" * 62 + f"{number:02}" for number in range(60)]
    write(at(PUBLIC), *names, content="x" * 65536)
    found = pages(at(PUBLIC).list_blocks, page_size=250)

    assert max(page.ByteSize() for page in found) <= 3 * 1024 * 1024
    assert sum(len(page.blocks) for page in found) == 61


def test_c09_each_page_has_its_own_classification(at):
    write(at(RESTRICTED), "z")

    assert [page.classification for page in pages(at(RESTRICTED).list_blocks, page_size=1)] == [PUBLIC, RESTRICTED]
    assert at(RESTRICTED).list_blocks().classification == RESTRICTED


@pytest.mark.parametrize("level", LEVELS)
def test_the_classification_of_nothing_is_public(at, level):
    at(PUBLIC).delete_block(label="first")
    answer = at(level).list_blocks()

    assert (list(answer.blocks), answer.classification) == ([], PUBLIC)


def test_c31_the_page_token_of_another_session_is_refused(at, session):
    write(at(PUBLIC), "plan")
    token = at(PUBLIC).list_blocks(page_size=1).next_page_token

    assert refusal(session(PUBLIC).list_blocks, page_token=token) == INVALID_TOKEN


def test_c31_the_page_token_of_another_method_is_refused(at):
    write(at(PUBLIC), "plan")
    for key in ("a", "b"):
        at(PUBLIC).save_memory(key=key, content="x")
    token = at(PUBLIC).list_memories(page_size=1).next_page_token

    assert refusal(at(PUBLIC).list_blocks, page_token=token) == INVALID_TOKEN


@pytest.mark.parametrize(("low", "high"), UP)
def test_c31_a_page_token_from_before_a_raise_says_so(session, host, low, high):
    reader = session(low)
    write(reader, "plan")
    token = reader.list_blocks(page_size=1).next_page_token
    host.raise_taint(session_id=reader.session_id, taint=high)

    assert refusal(reader.list_blocks, page_token=token) == "ABORTED TAINT_CHANGED"


@pytest.mark.parametrize(("low", "high"), UP)
def test_c30_a_page_is_the_same_bytes_whatever_is_above(at, low, high):
    write(at(low), "a", "c", "e")
    before = [page.SerializeToString(deterministic=True) for page in pages(at(low).list_blocks, page_size=2)]
    write(at(high), "a", "b", "c", "d", "f")

    assert [page.SerializeToString(deterministic=True) for page in pages(at(low).list_blocks, page_size=2)] == before


def test_a_list_continues_after_a_block_that_was_deleted_meanwhile(at):
    write(at(PUBLIC), "a", "b")
    token = at(PUBLIC).list_blocks(page_size=1).next_page_token
    at(PUBLIC).delete_block(label="a")

    assert labels(at(PUBLIC).list_blocks(page_token=token)) == ["b", "first"]


# --- Audit


@pytest.mark.parametrize("level", LEVELS)
def test_each_write_is_one_event_at_the_level_of_the_session(at, host, level):
    session = at(level)
    session.update_block(label="plan", content="one")
    session.edit_block(label="plan", append={"content": "two"})
    session.delete_block(label="plan")
    found = [event for event in events(host) if event.session_id == session.session_id and event.kind]

    assert [(event.method, event.classification, event.outcome, event.kind, event.revision) for event in found] == [
        ("UpdateBlock", level, "OK", 3, 1),
        ("EditBlock", level, "OK", 3, 2),
        ("DeleteBlock", level, "OK", 3, 2),
    ]
    assert len({event.item_id for event in found}) == 1


def test_refusals_of_writes_are_events_and_a_delete_of_nothing_is_none(at, host):
    low = at(PUBLIC).get_block(label="first").block.etag
    stale = at(INTERNAL).update_block(label="plan", content="1").block.etag
    write(at(INTERNAL), "plan")
    failure_of(at(INTERNAL).update_block, label="plan", content="3", etag=stale)
    failure_of(at(INTERNAL).edit_block, label="plan", append={"content": "3"}, etag=stale)
    failure_of(at(INTERNAL).delete_block, label="plan", etag=low)
    failure_of(at(INTERNAL).delete_block, label="first")
    failure_of(at(INTERNAL).delete_block, label="never")

    assert [(event.method, event.outcome) for event in events(host) if event.outcome != "OK"] == [
        ("UpdateBlock", "ETAG_STALE"),
        ("EditBlock", "ETAG_STALE"),
        ("DeleteBlock", "ETAG_STALE"),
        ("DeleteBlock", "WRITE_LEVEL_MISMATCH"),
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_reads_are_recorded_from_confidential_up_and_not_below(at, host, level):
    session = at(level)
    write(session, "plan")
    session.get_block(label="plan")
    failure_of(session.get_block, label="never")
    session.list_blocks()
    found = [(event.method, event.kind, event.result_count) for event in events(host)]
    reads = [("GetBlock", 3, 1), ("GetBlock", 3, 0), ("ListBlocks", 3, 2)]

    assert [event for event in found if event[0] in ("GetBlock", "ListBlocks")] == (
        reads if level >= CONFIDENTIAL else []
    )


def test_a_read_of_one_page_counts_what_the_page_holds(at, host):
    write(at(CONFIDENTIAL), "a", "b")
    pages(at(CONFIDENTIAL).list_blocks, page_size=2)

    assert [event.result_count for event in events(host) if event.method == "ListBlocks"] == [2, 1]


def test_a_read_of_one_block_names_its_version(at, host):
    write(at(CONFIDENTIAL), "plan")
    at(CONFIDENTIAL).update_block(label="plan", content="two")
    at(CONFIDENTIAL).get_block(label="plan")
    *_, written, read = [event for event in events(host) if event.kind]

    assert (read.method, read.item_id, read.revision) == ("GetBlock", written.item_id, 2)


def test_no_audit_row_no_effect(service):
    session = service.session(PUBLIC)
    before = session.update_block(label="plan", content="one").block
    with service.database.as_owner() as owner:
        owner.execute("REVOKE INSERT ON muniment_public.audit FROM muniment_public")

    answers = [
        refusal(session.update_block, label="plan", content="two"),
        refusal(session.edit_block, label="plan", append={"content": "two"}),
        refusal(session.delete_block, label="plan"),
        refusal(session.update_block, label="new", content="x"),
    ]

    assert answers == ["INTERNAL INTERNAL"] * 4
    assert session.get_block(label="plan").block == before
    assert refusal(session.get_block, label="new") == GONE


# --- Sessions


@pytest.mark.parametrize(("low", "high"), UP)
def test_c40_what_is_written_after_a_raise_is_at_the_new_level(session, host, raw, low, high):
    """Also through a server that remembers the session as it was."""
    own = session(low)
    write(own, "before")
    host.raise_taint(session_id=own.session_id, taint=high)

    assert own.update_block(label="after", content="x").block.classification == high
    assert own.edit_block(label="before", append={"content": "x"}).block.classification == high
    assert refusal(own.delete_block, label="first") == MISMATCH
    assert [row.content for row in raw(low) if row.name == "before"] == ["before"]


@pytest.mark.parametrize("level", LEVELS)
def test_c03_agents_do_not_see_each_others_blocks(session, level):
    write(session(level, agent_id="alice"), "plan", content="alice's")
    bob = session(level, agent_id="bob")

    assert refusal(bob.get_block, label="plan") == GONE
    assert refusal(bob.delete_block, label="plan") == GONE
    assert refusal(bob.edit_block, label="plan", append={"content": "x"}) == GONE
    assert "plan" not in labels(bob.list_blocks())
    assert bob.update_block(label="plan", content="bob's").block.owner_agent_id == "bob"
    assert session(level).get_block(label="plan").block.content == "alice's"


def test_an_etag_of_another_agent_looks_like_one_that_never_existed(session):
    foreign = session(PUBLIC).update_block(label="plan", content="text").block.etag
    bob = session(PUBLIC, agent_id="bob")
    write(bob, "plan")
    made_up = bob.update_block(label="other", content="text").block.etag

    for call, fields in ((bob.update_block, {"content": "x"}), (bob.delete_block, {})):
        assert failure_of(call, label="plan", etag=foreign, **fields) == failure_of(
            call, label="plan", etag=made_up, **fields
        )


def test_concurrent_updates_with_etags_all_count(session):
    sessions = [session(PUBLIC) for _ in range(4)]
    write(sessions[0], "counter", content="0")
    counted = []

    def increment(own):
        for _ in range(5):
            while True:
                seen = own.get_block(label="counter").block
                answer = own.observe("UpdateBlock", label="counter", content=str(int(seen.content) + 1), etag=seen.etag)
                counted.append(answer.code.name)
                if answer.code.name == "OK":
                    break

    threads = [threading.Thread(target=increment, args=(own,)) for own in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sessions[0].get_block(label="counter").block.content == "20"
    assert set(counted) <= {"OK", "ABORTED"}


def test_blocks_do_not_expire(at):
    """There is no field for it."""
    with pytest.raises(ValueError, match="expire_time"):
        at(PUBLIC).update_block(label="plan", expire_time=in_future(days=1))
