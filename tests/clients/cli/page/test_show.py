"""`muniment agent show`: what the page says, where it goes, and what it leaves behind."""

from __future__ import annotations

import hashlib
import re
import stat
from base64 import b64encode

import grpc
import pytest

import muniment
from muniment import Classification, Integrity, NewPassage, SessionClient, Tier
from tests.support.commands import on_a_terminal, run

PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED = Classification


def test_each_level_counts_its_versions_and_fills_its_budgets(host, ada, show):
    with host.open_session(ada.agent_id, PUBLIC) as session:
        session.save_memory("plan", "by train")
        session.save_memory("tea", "Assam")
        session.add_note("likes trains")
        session.add_note("Ada", tier=Tier.USER)
        session.store_passage("Booked.")
        host.raise_taint(session, INTERNAL)
        session.save_memory("plan", "by bus")

    page = show(ada.agent_id)

    public, internal, confidential = page.find("lane")
    assert page.texts("count", within=public) == [
        "Blocks1 0 B",
        "Blocks shared with it0 0 B",
        "Notes1 12 B",
        "User profile1 3 B",
        "Memories1 shadowed 2 13 B",
        "Passages1 7 B",
    ]
    assert page.texts("count", within=internal)[4] == "Memories1 6 B"
    assert page.texts("count", within=confidential)[4] == "Memories0 0 B"
    assert page.texts("gauge", within=confidential)[:2] == [
        "Notes budget12 of 2,200 chars",
        "Profile budget3 of 1,375 chars",
    ]
    assert page.texts("gauge", within=public)[2] == "Items stored6 of 1,000,000"


def test_a_shadowed_version_stands_under_the_one_that_shadows_it(host, ada, show):
    for level, text in ((PUBLIC, "low"), (CONFIDENTIAL, "high"), (INTERNAL, "middle")):
        with host.open_session(ada.agent_id, level) as session:
            session.save_memory("plan", text, tags=[f"tag of {text}"])

    page = show(ada.agent_id)

    _, *versions = page.find("version")
    assert [page.texts("text", within=each) for each in versions] == [["high"], ["middle"], ["low"]]
    assert ["shadowed" in each.classes for each in versions] == [False, True, True]
    assert page.texts("tag") == ["tag of high", "tag of middle", "tag of low"]


def test_what_an_untrusted_session_writes_hides_no_trusted_version(host, ada, show):
    """Trusted sessions go on with the version that untrusted ones no longer see."""
    for integrity in (Integrity.TRUSTED, Integrity.UNTRUSTED):
        with host.open_session(ada.agent_id, PUBLIC, integrity=integrity) as session:
            session.save_memory("plan", integrity.name)

    page = show(ada.agent_id)

    _, *versions = page.find("version")
    assert [page.texts("text", within=each) for each in versions] == [["UNTRUSTED"], ["TRUSTED"]]
    assert ["shadowed" in each.classes for each in versions] == [False, True]
    public = page.find("lane")[0]
    assert page.texts("count", within=public)[4] == "Memories1 shadowed 2 16 B"
    assert page.texts("gauge", within=public)[2::2] == [
        "Items stored2 of 1,000,000",
        "Items stored, trusted1 of 1,000,000",
    ]


def test_a_version_says_where_a_newer_one_is(host, ada, show):
    for level in (CONFIDENTIAL, PUBLIC):
        with host.open_session(ada.agent_id, level) as session:
            session.save_memory("plan", level.name)

    assert show(ada.agent_id).texts("newer") == ["newer at PUBLIC"]


def test_blocks_that_another_agent_shares_are_named_by_their_owner(host, ada, show):
    owner = host.create_agent(ceiling=INTERNAL, initial_blocks={"rules": "Refundable fares only."})
    host.create_shared_block(owner.agent_id, "rules")
    host.attach_block(owner.agent_id, "rules", ada.agent_id)

    page = show(ada.agent_id)

    assert page.texts("name") == ["personality", f"{owner.agent_id}/rules"]
    assert page.texts("text") == ["Refundable fares only."]


def test_conversations_say_who_raised_the_taint_when_and_why(host, ada, show):
    session = host.open_session(ada.agent_id, PUBLIC, conversation_id="trip")
    host.raise_taint(session, CONFIDENTIAL, reason="read the payroll")
    host.reset_session(session, "a new day")

    page = show(ada.agent_id)

    (conversation,) = page.find("conversation")
    (key,) = {event.host_key_id for event in host.list_audit_events(agent_id=ada.agent_id) if event.host_key_id}
    (steps,) = page.texts("steps", within=conversation)
    assert page.texts("name", within=conversation) == ["trip"]
    assert [level for each in page.find("fill", within=conversation) for level in each.classes - {"fill"}] == [
        "PUBLIC",
        "CONFIDENTIAL",
        "PUBLIC",
    ]
    assert f"raised to CONFIDENTIAL read the payroll by host key {key[:8]}" in steps
    assert f"closed by the reset a new day by host key {key[:8]}" in steps


def test_a_refused_raise_above_the_ceiling_of_the_agent_is_not_on_its_page(host, ada, show):
    """It is labeled with the level that it asked for."""
    with host.open_session(ada.agent_id, PUBLIC) as session:
        with pytest.raises(muniment.AgentCeilingExceeded):
            host.raise_taint(session, RESTRICTED)
        assert RESTRICTED in {event.classification for event in host.list_audit_events(agent_id=ada.agent_id)}

    assert "RESTRICTED" not in show(ada.agent_id).page.partition("</style>")[2]


def test_the_banner_is_the_highest_level_of_anything_on_the_page(host, ada, show):
    with host.open_session(ada.agent_id, PUBLIC) as session:
        session.save_memory("plan", "by train")
    assert show(ada.agent_id).texts("banner")[1] == "PUBLIC"

    other = host.create_agent(ceiling=CONFIDENTIAL)
    with host.open_session(other.agent_id, INTERNAL):
        pass
    page = show(other.agent_id)
    assert page.texts("banner")[1] == "INTERNAL"
    assert '@top-center { content: "INTERNAL";' in page.page  # on each printed sheet


def test_a_large_agent_is_counted_and_the_beginning_of_it_shown(host, ada, show):
    with host.open_session(ada.agent_id, PUBLIC) as session:
        session.save_memory("long", "x" * 1500)
        session.import_passages(NewPassage(f"passage {number}") for number in range(203))

    page = show(ada.agent_id)

    assert page.texts("count", within=page.find("lane")[0])[5].startswith("Passages203 ")
    assert sum(text.startswith("passage ") for text in page.texts("text")) == 200
    assert "Passages 200 of 203" in [" ".join(each.text.split()) for each in page.elements if each.tag == "h2"]
    assert {"and 3 more", "and 500 more characters"} <= set(page.texts("more"))
    assert "x" * 1000 in page.texts("text")


def test_the_reads_are_audited_and_the_sessions_are_closed(host, ada, show):
    show(ada.agent_id)

    sessions = list(host.list_sessions(ada.agent_id, include_closed=True))
    assert sorted(session.taint for session in sessions) == [
        PUBLIC,
        PUBLIC,
        INTERNAL,
        INTERNAL,
        CONFIDENTIAL,
        CONFIDENTIAL,
    ]
    assert all(session.close_time and session.conversation_id.startswith("agent-show-") for session in sessions)
    for highest in (session for session in sessions if session.taint == CONFIDENTIAL):
        reads = {event.method for event in host.list_audit_events(session=highest.session_id)}
        assert reads >= {"ListBlocks", "ListNotes", "ListMemories", "ListPassages"}


@pytest.mark.parametrize("failure", [KeyboardInterrupt, muniment.InternalError(grpc.StatusCode.INTERNAL, "", "x")])
def test_a_command_that_breaks_off_closes_its_sessions_and_leaves_the_file(
    dev, host, ada, folder, monkeypatch, failure
):
    def broken_off(*_: object, **__: object) -> object:
        raise failure

    monkeypatch.setattr(SessionClient, "list_memories", broken_off)
    file = folder / "page.html"
    file.write_text("before")

    done = run(dev.folder, "agent", "show", ada.agent_id, "--html", str(file))

    assert done.returncode == 1
    assert [session.close_time for session in host.list_sessions(ada.agent_id, include_closed=True)].count(None) == 0
    assert len(list(host.list_sessions(ada.agent_id, include_closed=True))) == 6
    assert (file.read_text(), list(folder.iterdir())) == ("before", [file])


def test_the_file_is_replaced_and_only_its_owner_may_read_it(dev, ada, folder):
    file = folder / "page.html"
    file.write_text("before")
    file.chmod(0o644)
    with file.open() as before:
        done = run(dev.folder, "agent", "show", ada.agent_id, "--html", str(file))

        assert (done.returncode, done.stdout) == (0, "")
        assert before.read() == "before"
    assert "protect it like the agent itself" in done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().startswith("<!doctype html>")
    assert list(folder.iterdir()) == [file]


def test_a_folder_is_refused_before_anything_is_read(dev, host, ada, folder):
    done = run(dev.folder, "agent", "show", ada.agent_id, "--html", str(folder))

    assert (done.returncode, "is not a regular file" in done.stderr) == (1, True)
    assert list(host.list_sessions(ada.agent_id, include_closed=True)) == []


def test_a_file_in_no_folder_is_refused_before_anything_is_read(dev, host, ada, folder):
    done = run(dev.folder, "agent", "show", ada.agent_id, "--html", str(folder / "none" / "x.html"))

    assert (done.returncode, f"{folder}/none/x.html cannot be written: there is no folder" in done.stderr) == (1, True)
    assert list(host.list_sessions(ada.agent_id, include_closed=True)) == []


def test_a_file_that_cannot_be_written_is_named_as_it_was_given(dev, ada):
    done = run(dev.folder, "agent", "show", ada.agent_id, "--html", "/proc/x.html")

    assert (done.returncode, "Error: /proc/x.html: " in done.stderr) == (1, True)
    assert "address" not in done.stderr


@pytest.mark.parametrize("only", ["agents", "sessions", "audit"])
def test_a_key_for_one_thing_is_refused_with_what_to_do(ada, key_of, attempt, only):
    done = attempt(ada.agent_id, key=key_of("development", CONFIDENTIAL, "--only", only))

    assert (done.returncode, done.stdout) == (1, "")
    assert "created without --only" in done.stderr


def test_a_terminal_gets_no_page(dev, ada):
    status, shown = on_a_terminal(dev.folder, "agent", "show", ada.agent_id, "--html", "-")

    assert (status, "standard output is a terminal" in shown) == (2, True)


def test_an_agent_above_the_ceiling_of_the_key_is_an_unknown_one(ada, key_of, attempt):
    key = key_of("development", INTERNAL)

    above, unknown = attempt(ada.agent_id, key=key), attempt("nobody", key=key)

    assert (above.returncode, above.stdout, above.stderr) == (1, "", unknown.stderr)
    assert "AGENT_NOT_FOUND" in unknown.stderr


def test_the_style_sheet_is_the_only_thing_that_the_policy_allows(ada, show):
    page = show(ada.agent_id)

    (style,) = [each.text for each in page.elements if each.tag == "style"]
    (policy,) = [
        each.attributes["content"]
        for each in page.elements
        if each.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert not any("style" in each.attributes for each in page.elements)


def test_two_worlds_that_differ_above_the_key_give_the_same_page(key_of, connected, show):
    """Ids and times are masked, because they differ in any case; order, counts and places are not."""
    keys = [(key_of(tenant, INTERNAL), key_of(tenant, RESTRICTED)) for tenant in ("world-1", "world-2")]
    for low, high in keys:
        with connected(low).open_session(_agent(connected(low), "ada"), PUBLIC, conversation_id="trip") as session:
            session.save_memory("plan", "by train")
            if high == keys[1][1]:
                _work_above(connected(high), session)
            connected(low).raise_taint(session, INTERNAL, reason="read the calendar")
            session.save_memory("plan", "by bus")
            session.add_note("likes trains")

    one, other = (_masked(show("ada", key=low).page) for low, _ in keys)

    assert "by bus" in one
    assert one == other


def test_a_key_below_the_ceiling_gets_the_page_of_an_agent_that_it_knows(host, key_of, connected, show):
    """Its conversation is another one than that of the same name above it."""
    name = host.create_agent(known_from=PUBLIC).agent_id
    with host.open_session(name, CONFIDENTIAL, conversation_id="trip") as above:
        above.save_memory("plan", "secret")
    low = key_of("development", INTERNAL)
    with connected(low).open_session(name, INTERNAL, conversation_id="trip") as session:
        session.save_memory("plan", "by bus")

    seen, all_of_it = show(name, key=low), show(name)

    assert ("by bus" in seen.page, "secret" in seen.page, "secret" in all_of_it.page) == (True, False, True)
    assert [each.split(" ", 3)[:3] for each in seen.texts("conversation")] == [["trip", "INTERNAL", "closed"]]
    of_low, of_host = [each for each in all_of_it.texts("conversation") if each.startswith("trip ")]
    assert of_low.startswith("trip INTERNAL closed · up to INTERNAL")
    assert of_host.startswith("trip CONFIDENTIAL closed 20")


def test_the_items_of_an_agent_that_a_lower_key_knows_are_exported_up_to_the_key(dev, host, key_of):
    name = host.create_agent(known_from=PUBLIC).agent_id
    for level in (PUBLIC, CONFIDENTIAL):
        with host.open_session(name, level) as session:
            session.save_memory("plan", level.name)

    environment = {"MUNIMENT_ADDRESS": dev.address, "MUNIMENT_HOST_KEY": key_of("development", PUBLIC)}
    done = run(dev.folder, "export", name, **environment)

    assert (done.returncode, "PUBLIC" in done.stdout, "CONFIDENTIAL" in done.stdout) == (0, True, False), done.stderr


def _agent(host: muniment.HostClient, agent_id: str) -> str:
    return host.create_agent(agent_id).agent_id


def _work_above(host: muniment.HostClient, session: SessionClient) -> None:
    """What a host with a higher ceiling does beside a session, and to it."""
    with host.open_session(_agent(host, "boss"), RESTRICTED, conversation_id="trip") as above:
        above.save_memory("plan", "secret")
        above.add_note("secret")
    with pytest.raises(muniment.AgentCeilingExceeded):
        host.raise_taint(session, CONFIDENTIAL, reason="secret")
    with pytest.raises(muniment.AgentCeilingExceeded):
        host.open_session("ada", RESTRICTED)


def _masked(page: str) -> str:
    """*page* with its ids numbered in the order in which they appear, and without times."""
    ids: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return ids.setdefault(found[0][:8], f"id{len(ids)}")

    page = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<=>)[0-9a-f]{8}(?=</code>)", number, page)
    page = re.sub(r"<time.*?</time>", "<time>", page)
    return re.sub(r'(<rect class="fill \w+") x="[0-9.]+" width="[0-9.]+"', r"\1", page)
